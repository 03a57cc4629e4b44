"""What the stories share: a Foreword on one port, and the filter as Open WebUI loads it."""

import asyncio
import importlib.util
import json
import logging
import os
import re
import shlex
import signal
import subprocess
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import harness
import server
from harness import expect, same, until
from processes import free_port

HERE = Path(__file__).parent
LIBRARY = HERE / "library.yaml"
ROOT = HERE.parent.parent
FILTER = ROOT / "integrations/openwebui/foreword_filter.py"
PAGE = ROOT / "docs/clients/open-webui.md"
API_KEY = "key-of-foreword-0123456789abcdef"
ADMIN_KEY = "key-of-the-administrator-0123456789"
ANN = {"id": "user-ann", "name": "Ann Ö'Neil, “PhD”", "email": "ann@example.org", "role": "user"}
BOB = {"id": "user-bob", "name": "Bob", "email": "bob@example.org", "role": "user"}


@dataclass(frozen=True)
class Setting(harness.Setting):
    """And the environment that has Open WebUI, and a browser."""

    openwebui: Path | None
    browser: str


class Foreword(server.Foreword):
    """A server with keys, which keeps its port when it is started again."""

    def __init__(self, setting: Setting, sandbox: str = "none", **environment: str):
        given = {"FOREWORD_ADMIN_KEY": ADMIN_KEY} | environment
        super().__init__(setting, library=LIBRARY, sandbox=sandbox, environment=given, key=API_KEY, port=free_port())

    def prompt(self, chat: str = "c", email: str = "", name: str = "") -> tuple[str, str]:
        """The prompt and revision of `GET /system-prompt`."""
        given = {"X-Chat-Id": chat, "X-User-Email": email, "X-User-Name": name}
        return self.session({name: value for name, value in given.items() if value})

    def output(self, chat: str, name: str, text: str) -> None:
        """A file that a model made."""
        directory = self.data / "workspaces" / chat / "outputs"
        expect(directory.is_dir(), f"chat {chat} has no workspace")
        (directory / name).write_text(text)

    def uploads(self, chat: str) -> dict[str, str]:
        return self.ok(f"/api/uploads/{chat}/manifest").json()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """It takes connections, and says nothing."""
        os.kill(self.process.pid, signal.SIGSTOP)
        threads = Path(f"/proc/{self.process.pid}/task")

        def stopped() -> bool:
            states = [(thread / "stat").read_text().rpartition(")")[2].split()[0] for thread in threads.iterdir()]
            return set(states) == {"T"}

        try:
            until(stopped, "all of its threads stand still")
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)


def run_block(having: str, **values: str) -> str:
    """Runs the one block of the page that has this in it, with these values of its variables; what it prints."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    found = [block for block in blocks if having in block]
    expect(len(found) == 1, f"{len(found)} blocks of {PAGE.name} have {having!r}")
    block = textwrap.dedent(found[0])
    for name, value in values.items():
        given = f"{name}={shlex.quote(value)}"
        block, count = re.subn(rf"^{name}=.*$", lambda _, given=given: given, block, flags=re.MULTILINE)
        expect(count == 1, f"{name} is set {count} times in {block}")
    command = ["bash", "-euo", "pipefail", "-c", block]
    shell = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    expect(shell.returncode == 0, f"{shell.returncode}: {shell.stderr} {shell.stdout[:500]}")
    return shell.stdout


def load() -> ModuleType:
    """The file of the filter, as a module that nobody else has."""
    spec = importlib.util.spec_from_file_location("function_foreword", FILTER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Chats:
    """A filter, called as Open WebUI calls it, and what it wrote into the log."""

    def __init__(self, foreword: Foreword, **valves):
        self.module = load()
        self.filter = self.module.Filter()
        self.valves = {"base_url": f"{foreword.url}/", "api_key": API_KEY, "retry_seconds": 0.2} | valves
        self.events: list[dict] = []
        self.lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.lines.append(record.getMessage())
        self.module.log.addHandler(handler)
        self.module.log.setLevel(logging.DEBUG)
        self.module.log.propagate = False

    def set(self, **valves) -> None:
        self.valves |= valves

    def refusals_are_over(self) -> None:
        """Files that were refused are to be sent again."""
        self.filter.refused = self.filter.refused.__class__((file, 0.0) for file in self.filter.refused)

    def time_is_over(self) -> None:
        """The server that did not answer is to be asked again."""
        self.filter.away = (self.filter.away[0], 0.0)

    async def emit(self, event: dict) -> None:
        self.events.append(event)

    async def inlet(
        self, messages: list[dict], chat: str = "c", user: dict = ANN, metadata: dict | None = None, **body
    ) -> list[dict]:
        """The messages as they are after the filter. What it notes in the metadata stays there if they name the chat."""
        # Open WebUI makes new valves for each call.
        self.filter.valves = self.filter.Valves(**self.valves)
        given = {"model": "gpt-5", "messages": json.loads(json.dumps(messages))} | body
        known = of_chat(chat, metadata)
        answer = await self.filter.inlet(given, __user__=dict(user), __metadata__=known, __event_emitter__=self.emit)
        return answer["messages"]

    async def request(self, messages: list[dict], metadata: dict, chat: str = "c", user: dict = ANN) -> list[dict]:
        self.filter.valves = self.filter.Valves(**self.valves)
        given = {"model": "gpt-5", "messages": json.loads(json.dumps(messages))}
        known = of_chat(chat, metadata)
        answer = await self.filter.request(given, __user__=dict(user), __metadata__=known, __event_emitter__=self.emit)
        return answer["messages"]

    async def outlet(self, content: str, chat: str = "c", user: dict = ANN, output: list | None = None) -> dict:
        """The answer as it is after the filter."""
        self.filter.valves = self.filter.Valves(**self.valves)
        answer = {"id": "2", "role": "assistant", "content": content} | ({"output": output} if output else {})
        body = {
            "model": "gpt-5",
            "chat_id": chat,
            "id": "2",
            "messages": [{"id": "1", "role": "user", "content": "Hi"}, answer],
        }
        result = await self.filter.outlet(body, __user__=dict(user), __metadata__={"chat_id": chat})
        same(result["messages"][0]["content"], "Hi")
        return result["messages"][-1]


def of_chat(chat: str, metadata: dict | None) -> dict:
    given = metadata or {}
    return given if "chat_id" in given else {"chat_id": chat} | given


async def timed(work) -> tuple[float, object]:
    started = time.monotonic()
    result = await work
    return time.monotonic() - started, result


async def longest_gap(work) -> float:
    """How long at most nothing else could run while `work` did."""
    task = asyncio.ensure_future(work)
    longest, last = 0.0, time.monotonic()
    while not task.done():
        await asyncio.sleep(0.005)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    task.result()
    return longest
