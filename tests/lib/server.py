"""The real `foreword` binary with a library, settings and a data directory of its own; it can be killed and started again."""

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import processes
from harness import Setting, expect, same, until
from wire import Caller, Stdio

LIBRARY = Path(__file__).with_name("library.yaml")
READY_WITHIN = 20
STOPPED_WITHIN = 15


class Answer(NamedTuple):
    """An answer over HTTP, whatever its status."""

    status: int
    headers: dict[str, str]
    text: str

    def json(self) -> dict:
        return json.loads(self.text)


def lowered(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class Foreword:
    """A server with a data directory of its own; the process may end and be started again."""

    def __init__(
        self,
        setting: Setting,
        connections: dict[str, dict] | None = None,
        *,
        library: Path | None = LIBRARY,
        settings: dict[str, dict] | None = None,
        sandbox: str = "none",
        environment: dict[str, str] | None = None,
        key: str = "",
        port: int | None = None,
    ):
        """`settings` are tables of its file of settings. With a `key`, `get` shows it; with a `port`, links lead there."""
        self.setting = setting
        self.data = setting.directory("data")
        self.sandbox, self.key, self.port = sandbox, key, port
        self.more_environment = environment or {}
        self.process: subprocess.Popen | None = None
        self.told_to_end = False
        if library:
            shutil.copy(library, self.library)
        if connections is not None:
            self.configure(connections)
        if settings:
            (self.data / "foreword.toml").write_text(toml(settings))

    def __enter__(self) -> "Foreword":
        self.start()
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        """Stops it unless that was done, and sees to it that nothing of it or its peers is left, whatever the story was about."""
        try:
            self.ended_as_told()
            if self.process and self.process.poll() is None:
                below = processes.descendants(self.process.pid)
                self.stop()
                processes.all_gone(below, 5)
        except BaseException as error:
            kind = type(error)
            raise
        finally:
            if kind:
                self.show_log()

    def ended_as_told(self) -> None:
        """A server that ended by itself is wrong, whatever came of it."""
        status = self.process.poll() if self.process else None
        expect(status is None or self.told_to_end, f"foreword ended by itself, with {status}")

    def start(self) -> None:
        self.ended_as_told()
        # Not at construction: between two starts another process may take the port.
        self.url = f"http://127.0.0.1:{self.port or processes.free_port()}"
        command = [self.setting.binary, "serve", "--listen", self.url.removeprefix("http://"), "--data", self.data]
        self.process = processes.start(command, self.log_file, self.environment, self.data)
        self.told_to_end = False
        try:
            ready = processes.answers(f"{self.url}/readyz")
            processes.wait_until_ready(self.process, "foreword", ready, READY_WITHIN)
        except BaseException:
            self.told_to_end = True
            self.kill()
            self.show_log()
            raise

    def stop(self) -> None:
        self.ended_as_told()
        self.told_to_end = True
        self.process.terminate()
        expect(
            processes.end(self.process, STOPPED_WITHIN), f"foreword did not stop within {STOPPED_WITHIN} s of SIGTERM"
        )
        same(self.process.returncode, 0, "foreword's status after SIGTERM")

    def kill(self) -> None:
        self.ended_as_told()
        self.told_to_end = True
        self.process.kill()
        self.process.wait()

    @property
    def environment(self) -> dict[str, str]:
        """Of its own alone: the person's settings must not decide what is tested."""
        fixed = {"FOREWORD_SANDBOX__BACKEND": self.sandbox, "NO_COLOR": "1", "HOME": str(self.data)}
        # The same after a restart on another port, so that prompts can be compared.
        fixed["FOREWORD_PUBLIC_BASE_URL"] = f"http://127.0.0.1:{self.port or 1}"
        fixed |= {"FOREWORD_API_KEY": self.key} if self.key else {}
        return fixed | {"PATH": os.environ["PATH"]} | self.more_environment

    @property
    def log_file(self) -> Path:
        return self.data.with_name(self.data.name + ".log")

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def show_log(self) -> None:
        print(f"foreword said at last:\n{self.log()[-3000:]}", file=sys.stderr, flush=True)

    def configure(self, connections: dict[str, dict] | str) -> None:
        """Writes the file of the connections in the way of most editors: beside it, and renamed over it."""
        text = connections if isinstance(connections, str) else json.dumps({"mcpServers": connections}, indent=2)
        beside = self.data / "connections.json.new"
        beside.write_text(text)
        beside.rename(self.data / "connections.json")

    @property
    def library(self) -> Path:
        return self.data / "system_prompts.yaml"

    def edit(self, old: str, new: str) -> None:
        """Changes the library, and waits until prompts show it."""
        before = self.get("/api/prompts/status").json()["revision"]
        text = self.library.read_text()
        expect(old in text, f"{old!r} is not in the library")
        beside = self.data / "library.new"
        beside.write_text(text.replace(old, new))
        beside.rename(self.library)
        until(lambda: self.get("/api/prompts/status").json()["revision"] != before, "the new library")

    def get(
        self,
        path: str,
        headers: dict[str, str] | None = None,
        body: object = None,
        timeout: float = 30,
        method: str | None = None,
    ) -> Answer:
        """A body that is not bytes is sent as JSON."""
        sent = ({"Authorization": f"Bearer {self.key}"} if self.key else {}) | (headers or {})
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not body:
            sent["Content-Type"] = "application/json"
        request = urllib.request.Request(self.url + path, data=data, headers=sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return Answer(response.status, lowered(response.headers), response.read().decode())
        except urllib.error.HTTPError as error:
            return Answer(error.code, lowered(error.headers), error.read().decode(errors="replace"))

    def ok(self, path: str, headers: dict[str, str] | None = None, body: object = None) -> Answer:
        answer = self.get(path, headers, body)
        expect(answer.status == 200, f"{path}: {answer.status} {answer.text[:300]}")
        return answer

    def upload(self, chat: str, name: str, data: bytes) -> None:
        answer = self.get(f"/api/uploads/{chat}/{name}", body=data, method="PUT")
        expect(answer.status == 201, f"{name}: {answer.status} {answer.text[:300]}")

    def session(self, headers: dict[str, str] | None = None) -> tuple[str, str]:
        """The prompt and revision of `GET /system-prompt`."""
        answer = self.ok("/system-prompt", headers)
        return answer.text, answer.headers["x-prompt-revision"]

    def prompt(self, chat: str = "c") -> str:
        return self.session({"X-Chat-Id": chat})[0]

    def caller(self, era: str = "legacy", chat: str = "c", headers: dict[str, str] | None = None) -> Caller:
        return Caller(f"{self.url}/mcp", era, {"X-Chat-Id": chat} | (headers or {}))

    def tools(self, era: str = "legacy") -> dict[str, dict]:
        return {tool["name"]: tool for tool in self.caller(era).listed("tools/list", "tools")}

    def call(self, name: str, arguments: dict | None = None, timeout: float = 40, headers: dict | None = None) -> dict:
        """The result of a tool; an error of the protocol is an error here."""
        return self.caller(headers=headers).call(name, arguments, timeout)

    @contextmanager
    def stdio(self, chat: str = "c") -> Iterator[Stdio]:
        command = [str(self.setting.binary), "stdio", "--chat", chat, "--data", str(self.data)]
        with Stdio(command, self.environment, self.log_file) as client:
            yield client

    def memory_peak(self) -> int:
        """The most bytes that were resident since it started, or since `forget_memory`."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

    def forget_memory(self) -> int:
        """Makes the peak what is resident now, and names it."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self.memory_peak()


def toml(tables: dict[str, dict]) -> str:
    lines = []
    for name, values in tables.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    return "\n".join(lines)


def marked(prompt: tuple[str, str]) -> str:
    """A prompt and its revision as they stand in a conversation."""
    text, revision = prompt
    return f"{text}\n<!-- foreword {revision} -->"
