"""Real MCP clients against the real server: does each get its chat's prompt, byte for byte, through its own API?

What a client must get is what `GET /system-prompt` answers for the same session. Every client connects for two chats in
turn within one process, so that a client's cache that mixes them up, or a server that lets it, is found; and once more
after the library was edited, so that one that keeps an old text is found too.

usage: run.py --binary FILE --current DIR --legacy DIR --node DIR [STORY…]
"""

import json
import os
import selectors
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import harness
from harness import Report, expect, options_of, run_stories, same
from processes import end, free_port
from server import Foreword
from wire import PROTOCOL

CLIENTS = Path(__file__).with_name("clients")
API_KEY = "a-key-of-the-peers"
AUTHORIZATION = {"Authorization": f"Bearer {API_KEY}"}
# Long, since the first answer of a client comes after it was loaded, on a machine that may be busy.
ANSWER_WITHIN_SECONDS = 120


@dataclass(frozen=True)
class Client:
    """A client program and what it speaks."""

    script: str
    environment: str
    eras: tuple[str, ...]
    stdio: bool = False


KNOWN = [
    Client("python_sdk.py", "current", ("legacy", "modern"), stdio=True),
    Client("python_sdk_1.py", "legacy", ("legacy",), stdio=True),
    Client("fastmcp_client.py", "current", ("legacy", "modern")),
    Client("openai_agents.py", "current", ("modern",)),
    Client("typescript_sdk.mjs", "node", ("legacy",)),
    Client("typescript_client.mjs", "node", ("legacy", "modern")),
    Client("inspector.mjs", "node", ("legacy", "modern")),
]


@dataclass(frozen=True)
class Session:
    """Whose prompt it is."""

    chat: str
    headers: dict[str, str] = field(default_factory=dict)


ALICE = Session("alice-1", {"X-User-Email": "alice@example.com"})
BOB = Session("bob-2", {"X-User-Email": "bob@example.com", "X-Profile-Id": "other"})


@dataclass(frozen=True)
class Setting(harness.Setting):
    """And the packages of the clients."""

    current: Path
    legacy: Path
    node: Path


def main() -> int:
    options = options_of(__doc__, "current", "legacy", "node").parse_args()
    stories = {client.script: partial(prompts, client) for client in KNOWN} | {"python_workspace.py": workspace}
    environments = (options.current, options.legacy, options.node)
    return run_stories("peers", stories, options.stories, lambda scratch: Setting(options.binary, scratch, *environments))


def prompts(client: Client, setting: Setting, report: Report) -> None:
    environment = getattr(setting, client.environment)
    with server(setting) as foreword, Conversation(client, environment) as conversation:

        def compare(name: str, case: dict, session: Session, era: str) -> None:
            with report.case(f"{client.script}: {era}, {name}, {session.chat}"):
                check(conversation.ask(case), foreword, session, era)

        for era in client.eras:
            for route in ("header", "path"):
                for session in (ALICE, BOB):
                    compare(f"chat in the {route}", over_http(foreword, session, route, era), session, era)
        if client.stdio:
            for era in client.eras:
                for session in (Session(ALICE.chat), Session(BOB.chat)):
                    compare("stdio", over_stdio(foreword, session, era), session, era)
        content = f"Edited while {client.script} was connected, in chat {{chat_id}}."
        foreword.ok("/api/prompts/global/update", body={"content": content})
        for era in client.eras:
            compare("after an edit", over_http(foreword, ALICE, "header", era), ALICE, era)


def workspace(setting: Setting, report: Report) -> None:
    """What a model and its user do with a workspace, through the Python SDK, over HTTP and over stdio."""
    with server(setting, sandbox="namespace") as foreword:
        for route in ("http", "stdio"):
            story = {
                "chat": f"story-{route}",
                "url": f"{foreword.url}/mcp" if route == "http" else None,
                "base": foreword.url,
                "headers": AUTHORIZATION,
                "command": stdio_command(foreword, f"story-{route}"),
                "environment": foreword.environment,
            }
            with report.case(f"python_workspace.py: {route}"):
                done = subprocess.run(
                    [setting.current / "bin/python", CLIENTS / "python_workspace.py"],
                    input=json.dumps(story).encode(),
                    capture_output=True,
                    timeout=ANSWER_WITHIN_SECONDS,
                    check=False,
                )
                expect(done.returncode == 0, done.stderr.decode()[-1500:])


def server(setting: Setting, sandbox: str = "none") -> Foreword:
    return Foreword(setting, sandbox=sandbox, key=API_KEY, port=free_port())


def over_http(foreword: Foreword, session: Session, route: str, era: str) -> dict:
    headers = AUTHORIZATION | session.headers
    if route == "header":
        return case(era, url=f"{foreword.url}/mcp", headers=headers | {"X-Chat-Id": session.chat})
    return case(era, url=f"{foreword.url}/mcp/c/{session.chat}", headers=headers)


def over_stdio(foreword: Foreword, session: Session, era: str) -> dict:
    return case(era, command=stdio_command(foreword, session.chat), environment=foreword.environment)


def stdio_command(foreword: Foreword, chat: str) -> list[str]:
    return [str(foreword.setting.binary), "stdio", "--chat", chat, "--data", str(foreword.data)]


def case(era: str, url=None, headers=None, command=None, environment=None) -> dict:
    return {
        "url": url,
        "headers": headers or {},
        "command": command,
        "environment": environment or {},
        "era": era,
    }


def check(answer: dict, foreword: Foreword, session: Session, era: str) -> None:
    expect("error" not in answer, answer.get("error"))
    prompt, _ = foreword.session(session.headers | {"X-Chat-Id": session.chat})
    other = BOB.chat if session.chat == ALICE.chat else ALICE.chat
    alone = session.chat in prompt and other not in prompt
    expect(alone, f"GET /system-prompt does not speak of {session.chat} alone: {prompt[:200]!r}")
    same(answer["protocol"], PROTOCOL[era], "protocol")
    expect("read_me" in answer["tools"], f"`read_me` is not among the tools {answer['tools']}")
    same_text(answer["instructions"], prompt, "instructions")
    same_text(answer["read_me"], prompt, "read_me")


def same_text(got: str | None, prompt: str, what: str) -> None:
    expect(got is not None, f"{what}: none")
    agreeing = len(os.path.commonprefix([got, prompt]))
    parts = f"{got[agreeing:agreeing + 80]!r}, not {prompt[agreeing:agreeing + 80]!r}"
    expect(got == prompt, f"{what}: from character {agreeing} on it is {parts}")


class Conversation:
    """A client's process: cases in, answers out, one line each."""

    def __init__(self, client: Client, environment: Path):
        script = CLIENTS / client.script
        if client.environment == "node":
            command = [environment / "node_modules/.bin/node", script]
        else:
            command = [environment / "bin/python", script]
        self.process = subprocess.Popen(
            command,
            env=os.environ | {"FOREWORD_PEERS_NODE": str(environment)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, case: dict) -> dict:
        try:
            self.process.stdin.write(json.dumps(case).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": f"the client ended with {self.process.wait()}"}
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(ANSWER_WITHIN_SECONDS):
                self.process.kill()
                return {"error": f"no answer within {ANSWER_WITHIN_SECONDS} s"}
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"the client ended with {self.process.wait()}"}

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        end(self.process)
        self.process.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
