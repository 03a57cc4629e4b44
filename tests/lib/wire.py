"""MCP without an SDK: what is sent and received is exactly what stands here.

Over HTTP in both eras (`legacy` is 2025-11-25, `modern` is 2026-07-28), and over the standard streams of a program.
"""

import itertools
import json
import os
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from processes import end

PROTOCOL = {"legacy": "2025-11-25", "modern": "2026-07-28"}
CLIENT = {"name": "connections", "version": "1"}


class RpcError(Exception):
    """An error of the protocol."""

    def __init__(self, error: dict):
        super().__init__(f"{error.get('code')} {error.get('message')}")
        self.error = error


def in_era(era: str, method: str, parameters: dict) -> dict:
    """The parameters as a client of `era` would send them."""
    if era == "legacy":
        if method == "initialize":
            return {"protocolVersion": PROTOCOL[era], "capabilities": {}, "clientInfo": CLIENT} | parameters
        return parameters
    meta = {
        "io.modelcontextprotocol/protocolVersion": PROTOCOL[era],
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return parameters | {"_meta": meta | parameters.get("_meta", {})}


class Caller:
    """A client over HTTP, which keeps nothing between requests but an id of a session if it is given one."""

    def __init__(self, url: str, era: str = "legacy", headers: dict[str, str] | None = None):
        self.url, self.era, self.headers = url, era, headers or {}
        self.ids = itertools.count(1)

    def post(self, method: str, parameters: dict | None = None, timeout: float = 40):
        """An open response."""
        parameters = in_era(self.era, method, parameters or {})
        message = {"jsonrpc": "2.0", "method": method, "params": parameters}
        if not method.startswith("notifications/"):
            message["id"] = next(self.ids)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"} | self.headers
        if method != "initialize":
            headers["MCP-Protocol-Version"] = PROTOCOL[self.era]
        if self.era == "modern":
            headers["Mcp-Method"] = method
            if "name" in parameters:
                headers["Mcp-Name"] = parameters["name"]
        request = urllib.request.Request(self.url, data=json.dumps(message).encode(), headers=headers)
        try:
            return urllib.request.urlopen(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            # Errors of the protocol come with statuses of their own.
            return error

    def greet(self) -> "Caller":
        """Begins a session, for a server that wants one."""
        with self.post("initialize") as response:
            response.read()
            self.headers = self.headers | {"Mcp-Session-Id": response.headers["Mcp-Session-Id"]}
        self.post("notifications/initialized").close()
        return self

    def request(self, method: str, parameters: dict | None = None, timeout: float = 40) -> dict:
        """The result; what came before it on a stream is in `heard`."""
        self.heard: list[dict] = []
        with self.post(method, parameters, timeout) as response:
            for message in messages(response):
                if "id" in message and "method" not in message:
                    if "error" in message:
                        raise RpcError(message["error"])
                    return message["result"]
                self.heard.append(message)
        raise AssertionError(f"{method}: the answer ended without a result")

    def call(self, name: str, arguments: dict | None = None, timeout: float = 40, meta: dict | None = None) -> dict:
        parameters = {"name": name, "arguments": arguments or {}} | ({"_meta": meta} if meta else {})
        return self.request("tools/call", parameters, timeout)

    def listed(self, method: str, key: str) -> list[dict]:
        """All pages of a list."""
        return list(pages(self.request, method, key))

    def instructions(self) -> str:
        return self.request("initialize" if self.era == "legacy" else "server/discover").get("instructions", "")

    @contextmanager
    def listening(self, **notifications: bool) -> Iterator[list[dict]]:
        """What a listener of 2026-07-28 hears, as it comes."""
        heard: list[dict] = []
        response = self.post("subscriptions/listen", {"notifications": notifications}, timeout=60)

        def listen() -> None:
            with suppress(OSError, ValueError, AttributeError):
                for message in messages(response):
                    heard.append(message)

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield heard
        finally:
            # `close` alone would wait for the thread that reads.
            with suppress(OSError, AttributeError):
                response.fp.raw._sock.shutdown(socket.SHUT_RDWR)


def messages(response) -> Iterator[dict]:
    """The messages of an answer, whether it is one JSON text or a stream of events."""
    if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
        body = response.read()
        try:
            yield json.loads(body)
        except ValueError:
            raise AssertionError(f"{response.status}: {body[:300]!r}") from None
        return
    data: list[str] = []
    for line in response:
        line = line.decode().rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            text, data = "\n".join(data), []
            if text:
                yield json.loads(text)


def pages(request, method: str, key: str) -> Iterator[dict]:
    cursor: dict = {}
    while True:
        page = request(method, dict(cursor))
        yield from page[key]
        if page.get("nextCursor") is None:
            return
        cursor = {"cursor": page["nextCursor"]}


class Stdio:
    """A client over the standard streams of a program that it starts."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path, era: str = "legacy"):
        self.era = era
        self.ids = itertools.count(1)
        self.heard: list[dict] = []
        self.changed = threading.Condition()
        self.ended = False
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        threading.Thread(target=self.read, daemon=True).start()

    def __enter__(self) -> "Stdio":
        if self.era == "legacy":
            self.greeting = self.request("initialize")
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, within: float = 10) -> None:
        if not self.process.stdin.closed:
            self.process.stdin.close()
        end(self.process, within)

    def read(self) -> None:
        for line in self.process.stdout:
            with self.changed:
                self.heard.append(json.loads(line))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def begin(self, method: str, parameters: dict | None = None) -> int:
        """Sends a request and names its id."""
        id = next(self.ids)
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": in_era(self.era, method, parameters or {})})
        return id

    def request(self, method: str, parameters: dict | None = None, timeout: float = 40) -> dict:
        return self.result(self.begin(method, parameters), timeout)

    def result(self, id: int, timeout: float = 40) -> dict:
        message = self.hear(lambda message: message.get("id") == id and "method" not in message, timeout)
        if "error" in message:
            raise RpcError(message["error"])
        return message["result"]

    def hear(self, wanted, timeout: float = 40) -> dict:
        """The first message that is as `wanted`, among all that came and come."""
        deadline = time.monotonic() + timeout
        with self.changed:
            seen = 0
            while True:
                for message in self.heard[seen:]:
                    if wanted(message):
                        return message
                seen = len(self.heard)
                if self.ended:
                    raise AssertionError("the program ended")
                if not self.changed.wait(deadline - time.monotonic()) and time.monotonic() > deadline:
                    raise AssertionError(f"not heard within {timeout:g} s")

    def call(self, name: str, arguments: dict | None = None, timeout: float = 40, meta: dict | None = None) -> dict:
        parameters = {"name": name, "arguments": arguments or {}} | ({"_meta": meta} if meta else {})
        return self.request("tools/call", parameters, timeout)

    def listed(self, method: str, key: str) -> list[dict]:
        return list(pages(self.request, method, key))


def minimal_environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8"} | more
