"""Claude Code, without a terminal (`claude -p`), with the commands of its page."""

import json

import page
from bench import KEY, Bench, Setting
from harness import Report
from page import filled


def run(setting: Setting, report: Report) -> None:
    with Bench(setting, report, "claude-code") as bench:
        claude = setting.node / "node_modules/.bin/claude"
        (bench.home / "bin/claude").symlink_to(claude)
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        direct = quiet | {"ANTHROPIC_BASE_URL": bench.model.url, "ANTHROPIC_API_KEY": "of-the-model"}

        def ask(question: str, environment: dict[str, str] = direct) -> str:
            # It asks before the first call of a tool unless it may.
            return bench.run([claude, "-p", question, "--allowedTools", "mcp__foreword__view"], environment)

        def added(holds: str, values: dict[str, str] | None = None) -> None:
            bench.run(["bash", "-ec", filled(bench.block("sh", holds), values or {})], direct)

        def removed() -> None:
            bench.run([claude, "mcp", "remove", "foreword"], direct)

        forms = bench.foreword.forms("my-project")
        added("--transport http")
        bench.count("HTTP, brief", ask, forms, "brief")
        removed()
        added("--transport http", {"?instructions=brief": ""})
        bench.count("HTTP, full", ask, forms, "full…")

        # The API of the model is Foreword too: the prompt comes by both ways.
        words = dict(word.split("=", 1) for word in bench.block("sh", "ANTHROPIC_BASE_URL").split() if "=" in word)
        through = quiet | {name: value.replace("$FOREWORD_API_KEY", KEY).strip('"') for name, value in words.items()}
        both = lambda question: ask(question, through)  # noqa: E731 - one line says it
        bench.count("HTTP, full, and /v1/messages", both, forms, "full…", "without a workspace")
        removed()
        added("--transport http", {"?instructions=brief": "?instructions=hint"})
        bench.tells("HTTP, hint", ask, forms["hint"])
        bench.count("HTTP, hint, and /v1/messages", both, forms, "without a workspace")
        removed()
        bench.count("/v1/messages", both, forms, "without a workspace", again=False)
        name, _, value = page.words("claude-code", "ANTHROPIC_CUSTOM_HEADERS=").partition("=")
        profile = through | {name: value.strip("'")}
        bench.tells("the profile of the page", lambda question: ask(question, profile), "You write code for Example Ltd, and a heron reads it.")

        (bench.work / ".mcp.json").write_text(bench.block("json"))
        settings = bench.home / ".claude/settings.json"
        settings.parent.mkdir(exist_ok=True)
        # What a person says when asked whether the project's servers may be used.
        settings.write_text(json.dumps({"enableAllProjectMcpServers": True}))
        bench.count(".mcp.json, brief", ask, forms, "brief")
        (bench.work / ".mcp.json").unlink()

        added("foreword stdio")
        # Claude Code hands its whole environment on.
        keyless = {"FOREWORD_API_KEY": ""}
        bench.count("stdio, brief", lambda question: ask(question, direct | keyless), bench.forms_on_stdio(), "brief")
