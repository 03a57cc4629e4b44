"""The MCP Inspector, with the commands of its page."""

import json
import re
import shlex

from bench import Bench, Setting
from harness import Report, expect, same

PACKAGE = "@modelcontextprotocol/inspector"


def run(setting: Setting, report: Report) -> None:
    programs = setting.peers / "node_modules/.bin"
    version = json.loads((setting.peers / f"node_modules/{PACKAGE}/package.json").read_text())["version"]
    with Bench(setting, report, "inspector") as bench:

        def asked(holds: str, *more: str) -> dict:
            command = bench.block("sh", holds)
            start = f"npx {PACKAGE}@{version} "
            expect(command.startswith(start), f"the page does not begin with {start!r}: {command}")
            # What `npx` would fetch is here already.
            script = " ".join(["exec", str(programs / "mcp-inspector"), command.removeprefix(start).rstrip(), *map(shlex.quote, more)])
            said = bench.run(["bash", "-c", script], {"PATH": f"{programs}:{bench.environment['PATH']}"})
            found = json.loads(said[said.index("{") :])
            return found.get("result", found)

        forms = bench.foreword.forms("my-project")
        initialize, call, stdio = "\n    --method initialize", "tools/call", "foreword stdio"
        with report.case("inspector: the command shows the chat's prompt, in both revisions"):
            same(asked(initialize)["instructions"], forms["full"])
            same(asked(initialize, "--protocol-era", "modern")["instructions"], forms["full"])
        with report.case("inspector: a tool works in the chat's workspace"):
            same(asked(call)["content"][0]["text"].rstrip(), forms["full"].rstrip())
        with report.case("inspector: over stdio the prompt is that of the chat that the command names"):
            expect(re.search(r"You work in chat my-project\.", asked(stdio)["instructions"]), "it is of another chat")
