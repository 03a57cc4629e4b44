"""Real MCP clients against the real server: does each get its chat's prompt, byte for byte, through its own API?

What a client must get is what `GET /system-prompt` answers for the same session. Every client connects for two chats in
turn within one process, so that a client's cache that mixes them up, or a server that lets it, is found; and once more
after the library was edited, so that one that keeps an old text is found too.

usage: run.py --binary FILE --current DIR --legacy DIR --node DIR [CLIENT…]
"""

import argparse
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import server

CLIENTS = Path(__file__).with_name("clients")
API_KEY = "a-key-of-the-peers"
# Long, since the first answer of a client comes after it was loaded, on a machine that may be busy.
ANSWER_WITHIN_SECONDS = 120
PROTOCOL = {"legacy": "2025-11-25", "modern": "2026-07-28"}


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True, help="the foreword to test")
    for environment in ("current", "legacy", "node"):
        parser.add_argument(f"--{environment}", type=Path, required=True, help="its installed packages")
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="only these, such as `inspector.mjs`")
    options = parser.parse_args()
    chosen = [client for client in KNOWN if not options.clients or client.script in options.clients]
    if len(chosen) < len(set(options.clients)):
        parser.error(f"the clients are {', '.join(client.script for client in KNOWN)}")

    passed = failed = 0
    with server.running(options.binary.resolve(), API_KEY) as foreword:
        for client in chosen:
            started = time.monotonic()
            for name, problem in exercise(client, foreword, getattr(options, client.environment)):
                passed, failed = (passed, failed + 1) if problem else (passed + 1, failed)
                print(f"{'FAIL' if problem else 'ok'}  {client.script}  {name}{problem and f': {problem}'}", flush=True)
            print(f"      {client.script} took {time.monotonic() - started:.1f} s", flush=True)
    if not options.clients:
        with server.running(options.binary.resolve(), API_KEY, sandbox="namespace") as foreword:
            for name, problem in use_the_workspace(foreword, options.current):
                passed, failed = (passed, failed + 1) if problem else (passed + 1, failed)
                print(f"{'FAIL' if problem else 'ok'}  python_workspace.py  {name}{problem and f': {problem}'}", flush=True)
    print(f"peers: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def exercise(client: Client, foreword: server.Foreword, environment: Path) -> Iterator[tuple[str, str]]:
    """Each case of `client` with what is wrong with its answer, or the empty string."""
    with Conversation(client, environment) as conversation:
        for era in client.eras:
            for route in ("header", "path"):
                for session in (ALICE, BOB):
                    name = f"{era}, chat in the {route}, {session.chat}"
                    yield name, check(conversation.ask(over_http(foreword, session, route, era)), foreword, session, era)
        if client.stdio:
            for era in client.eras:
                for session in (Session(ALICE.chat), Session(BOB.chat)):
                    name = f"{era}, stdio, {session.chat}"
                    yield name, check(conversation.ask(over_stdio(foreword, session, era)), foreword, session, era)
        edit_the_library(foreword, f"Edited while {client.script} was connected, in chat {{chat_id}}.")
        for era in client.eras:
            name = f"{era}, after an edit, {ALICE.chat}"
            yield name, check(conversation.ask(over_http(foreword, ALICE, "header", era)), foreword, ALICE, era)


def use_the_workspace(foreword: server.Foreword, environment: Path) -> Iterator[tuple[str, str]]:
    """What a model and its user do with a workspace, through the Python SDK, over HTTP and over stdio."""
    for route in ("http", "stdio"):
        story = {
            "chat": f"story-{route}",
            "url": f"{foreword.url}/mcp" if route == "http" else None,
            "base": foreword.url,
            "headers": authorization(),
            "command": [str(foreword.binary), "stdio", "--chat", f"story-{route}", "--data", str(foreword.data)],
            "environment": foreword.environment,
        }
        command = [environment / "bin/python", CLIENTS / "python_workspace.py"]
        done = subprocess.run(
            command,
            input=json.dumps(story).encode(),
            capture_output=True,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            timeout=ANSWER_WITHIN_SECONDS,
            check=False,
        )
        yield route, "" if done.returncode == 0 else done.stderr.decode()[-1500:]


def over_http(foreword: server.Foreword, session: Session, route: str, era: str) -> dict:
    headers = authorization() | session.headers
    if route == "header":
        return case(era, url=f"{foreword.url}/mcp", headers=headers | {"X-Chat-Id": session.chat})
    return case(era, url=f"{foreword.url}/mcp/c/{session.chat}", headers=headers)


def over_stdio(foreword: server.Foreword, session: Session, era: str) -> dict:
    command = [str(foreword.binary), "stdio", "--chat", session.chat, "--data", str(foreword.data)]
    return case(era, command=command, environment=foreword.environment)


def case(era: str, url=None, headers=None, command=None, environment=None) -> dict:
    return {
        "url": url,
        "headers": headers or {},
        "command": command,
        "environment": environment or {},
        "era": era,
    }


def check(answer: dict, foreword: server.Foreword, session: Session, era: str) -> str:
    """What is wrong with `answer`, or the empty string."""
    if "error" in answer:
        return answer["error"]
    headers = authorization() | session.headers | {"X-Chat-Id": session.chat}
    prompt = foreword.request("/system-prompt", headers).decode()
    other = BOB.chat if session.chat == ALICE.chat else ALICE.chat
    if session.chat not in prompt or other in prompt:
        return f"GET /system-prompt does not speak of {session.chat} alone: {prompt[:200]!r}"
    if answer["protocol"] != PROTOCOL[era]:
        return f"it negotiated {answer['protocol']}, not {PROTOCOL[era]}"
    if "read_me" not in answer["tools"]:
        return f"`read_me` is not among the tools {answer['tools']}"
    return differs("instructions", answer["instructions"], prompt) or differs("read_me", answer["read_me"], prompt)


def differs(what: str, got: str | None, prompt: str) -> str:
    if got == prompt:
        return ""
    if got is None:
        return f"{what}: none"
    same = len(os.path.commonprefix([got, prompt]))
    return f"{what}: from character {same} on it is {got[same:same + 80]!r}, not {prompt[same:same + 80]!r}"


def edit_the_library(foreword: server.Foreword, content: str) -> None:
    headers = authorization() | {"Content-Type": "application/json"}
    foreword.request("/api/prompts/global/update", headers, json.dumps({"content": content}).encode())


def authorization() -> dict[str, str]:
    return {"Authorization": f"Bearer {API_KEY}"}


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
            env=os.environ | {"FOREWORD_PEERS_NODE": str(environment), "PYTHONDONTWRITEBYTECODE": "1"},
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
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
