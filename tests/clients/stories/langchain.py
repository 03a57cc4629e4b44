"""LangChain's agent on `langchain-mcp-adapters`, with the program of its page."""

from bench import QUESTION, Bench, Setting
from harness import Report
from page import filled


def run(setting: Setting, report: Report) -> None:
    with Bench(setting, report, "langchain") as bench:
        program = bench.block("python")

        def ask(question: str, text: str = program) -> str:
            file = bench.work / "agent.py"
            file.write_text(filled(text, {QUESTION: question}))
            return bench.run([setting.agents / "bin/python", file])

        forms = bench.foreword.forms("chat-1")
        bench.count("the program of the page", ask, forms, "full")
        bare = filled(program, {", system_prompt=instructions": ""})
        bench.count("without system_prompt=", lambda question: ask(question, bare), forms, again=False)
