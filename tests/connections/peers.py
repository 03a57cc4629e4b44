"""The servers that Foreword is connected to: how each is configured, and processes that can be struck and started again."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import server
from harness import Setting, until

SERVERS = Path(__file__).with_name("servers")


def everything(setting: Setting) -> dict:
    return packaged(setting, "server-everything", "stdio")


def filesystem(setting: Setting, root: Path) -> dict:
    return packaged(setting, "server-filesystem", str(root))


def packaged(setting: Setting, package: str, *arguments: str) -> dict:
    packages = setting.node / "node_modules"
    program = packages / "@modelcontextprotocol" / package / "dist/index.js"
    return {"command": str(packages / ".bin/node"), "args": [str(program), *arguments]}


def raw(mode: str = "plain", record: Path | None = None, control: Path | None = None, order: int | None = None, **more) -> dict:
    """Our own server over stdio; `more` are settings of the connection."""
    options = {"--record": record, "--control": control, "--order": order}
    arguments = [text for name, value in options.items() if value is not None for text in (name, str(value))]
    # Without the packages of the environment, so that a start takes no longer than Python itself.
    return {"command": sys.executable, "args": ["-I", "-S", "-B", str(SERVERS / "raw.py"), mode, *arguments]} | more


class HttpPeer:
    """A server over HTTP in a process of its own, which is started again at the same address."""

    def __init__(self, python: Path, program: str, *arguments: str, log: Path | None = None, path: str = "/mcp"):
        self.command = [python / "bin/python", "-B", SERVERS / program, *arguments]
        self.port = server.free_port()
        self.url = f"http://127.0.0.1:{self.port}{path}"
        self.log = log
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> "HttpPeer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        with open(self.log or os.devnull, "ab") as output:
            self.process = subprocess.Popen(
                [*self.command, "--port", str(self.port)], stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
        until(self.listens, f"{self.command[2]} listens", 60)

    def listens(self) -> bool:
        if self.process.poll() is not None:
            raise SystemExit(f"{self.command[2]} ended with {self.process.returncode}")
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
