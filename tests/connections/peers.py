"""The servers that Foreword is connected to: how each is configured, and processes that can be struck and started again."""

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import harness
import processes
from harness import expect, until
from processes import alive, command_line, descendants
from serving import Foreword

SERVERS = Path(__file__).with_name("servers")


@dataclass(frozen=True)
class Setting(harness.Setting):
    """And the packages of the servers."""

    current: Path
    legacy: Path
    node: Path


def everything(setting: Setting) -> dict:
    return packaged(setting, "server-everything", "stdio")


def filesystem(setting: Setting, root: Path) -> dict:
    return packaged(setting, "server-filesystem", str(root))


def packaged(setting: Setting, package: str, *arguments: str) -> dict:
    packages = setting.node / "node_modules"
    program = packages / "@modelcontextprotocol" / package / "dist/index.js"
    return {"command": str(packages / ".bin/node"), "args": [str(program), *arguments]}


def raw(
    mode: str = "plain", record: Path | None = None, control: Path | None = None, order: int | None = None, **more
) -> dict:
    """Our own server over stdio; `more` are settings of the connection."""
    options = {"--record": record, "--control": control, "--order": order}
    arguments = [text for name, value in options.items() if value is not None for text in (name, str(value))]
    # Without the packages of the environment, so that a start takes no longer than Python itself.
    return {"command": sys.executable, "args": ["-I", "-S", "-B", str(SERVERS / "raw.py"), mode, *arguments]} | more


class HttpPeer:
    """A server over HTTP in a process of its own, which is started again at the same address."""

    def __init__(self, python: Path, program: str, *arguments: str, path: str = "/mcp"):
        self.command = [python / "bin/python", "-B", SERVERS / program, *arguments]
        self.port = processes.free_port()
        self.url = f"http://127.0.0.1:{self.port}{path}"
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> "HttpPeer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        command = [*self.command, "--port", str(self.port)]
        self.process = processes.start(command, Path(os.devnull))
        processes.wait_until_ready(self.process, str(self.command[2]), self.listens, 60)

    def listens(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), 2):
            return True

    def kill(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


def fast(setting: Setting, record: Path | None = None) -> HttpPeer:
    return HttpPeer(setting.current, "fast.py", *(["--record", str(record)] if record else []))


def notifying(setting: Setting) -> HttpPeer:
    return HttpPeer(setting.current, "notifying.py")


def older(setting: Setting, transport: str = "streamable-http", record: Path | None = None) -> HttpPeer:
    path = "/sse" if transport == "sse" else "/mcp"
    recorded = ["--record", str(record)] if record else []
    return HttpPeer(setting.legacy, "older.py", "--transport", transport, *recorded, path=path)


def words(result: dict) -> str:
    """All text of a tool's result."""
    return "\n".join(block.get("text", "") for block in result["content"])


def failed(result: dict, name: str) -> None:
    """The result must be an error that names the server."""
    expect(result.get("isError") is True, f"no error: {str(result)[:300]}")
    expect(name in words(result), f"does not name {name}: {words(result)[:300]}")


def records(file: Path, event: str | None = None) -> list[dict]:
    """What a peer noted."""
    if not file.exists():
        return []
    lines = [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
    return [line for line in lines if event in (None, line["event"])]


def peer_processes(foreword: Foreword, word: str) -> list[int]:
    """The processes of a peer below Foreword, without the supervisor, whose arguments hold `word` too."""
    below = [pid for pid in descendants(foreword.process.pid) if alive(pid)]
    lines = {pid: command_line(pid) for pid in below}
    return [pid for pid, line in lines.items() if any(word in part for part in line) and "child-init" not in line]


def peer_process(foreword: Foreword, word: str) -> int:
    return until(lambda: peer_processes(foreword, word), f"a process of {word}")[-1]
