"""The OpenAI Agents SDK, with the program of its page."""

from bench import QUESTION, Bench, Setting
from harness import Report
from page import filled


def run(setting: Setting, report: Report) -> None:
    with Bench(setting, report, "openai-agents") as bench:
        program = bench.block("python")

        def ask(question: str, text: str = program) -> str:
            file = bench.work / "agent.py"
            file.write_text(filled(text, {QUESTION: question}))
            # Traces would go to the vendor.
            return bench.run([setting.current / "bin/python", file], {"OPENAI_AGENTS_DISABLE_TRACING": "1"})

        forms = bench.foreword.forms("chat-1")
        bench.count("the program of the page", ask, forms, "full")
        bare = filled(program, {"instructions=server.session.instructions, ": ""})
        bench.count("without instructions=", lambda question: ask(question, bare), forms, again=False)
        short = filled(program, {"/mcp\"": "/mcp?instructions=hint\""})
        bench.tells("hint", lambda question: ask(question, short), forms["hint"])
