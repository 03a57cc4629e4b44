"""What the stories share: a Foreword with an upstream behind it, clients of it, and requests that are written byte by byte."""

import json
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import anthropic
import harness
import openai
import server
from harness import expect, same
from upstream import SLOW_SECONDS, Received, Upstream

LIBRARY = Path(__file__).with_name("library.yaml")
# What Foreword is given to show to the upstream, and what a client shows to Foreword unless a story is about keys.
UPSTREAM_KEY = "key-of-the-upstream"
ANTHROPIC_KEY = "key-of-the-other-upstream"
CLIENT_KEY = "key-of-nobody"
ASK = {"role": "user", "content": "What is the weather in Köln?"}


@dataclass(frozen=True)
class Setting(harness.Setting):
    """And the gateway's packages."""

    litellm: Path


class Foreword(server.Foreword):
    """A server whose chat endpoints have `upstream` behind them unless `settings` say otherwise."""

    def __init__(
        self,
        setting: Setting,
        upstream: Upstream | None = None,
        settings: dict[str, dict] | None = None,
        environment: dict[str, str] | None = None,
    ):
        tables = {}
        if upstream:
            tables["chat.upstream"] = {"base_url": f"{upstream.url}/v1", "api_key": UPSTREAM_KEY}
            tables["chat.anthropic"] = {"base_url": upstream.url, "api_key": ANTHROPIC_KEY}
        for name, values in (settings or {}).items():
            tables[name] = tables.get(name, {}) | values
        super().__init__(setting, library=LIBRARY, settings=tables, environment=environment)

    def openai(self, **options) -> openai.OpenAI:
        """The package, without attempts of its own: each error is to be seen."""
        given = {"api_key": CLIENT_KEY, "max_retries": 0, "timeout": 30} | options
        return openai.OpenAI(base_url=f"{self.url}/v1", **given)

    def anthropic(self, **options) -> anthropic.Anthropic:
        given = {"api_key": CLIENT_KEY, "max_retries": 0, "timeout": 30} | options
        return anthropic.Anthropic(base_url=self.url, **given)

    def composed(self, **request) -> tuple[str, str]:
        """The prompt and revision that the API of prompts gives for the same request."""
        answer = self.ok("/api/prompts/compose", body=request).json()
        return answer["system_prompt"], answer["revision"]


@contextmanager
def behind(setting: Setting, **options) -> Iterator[tuple[Foreword, Upstream]]:
    """A Foreword with an upstream."""
    with Upstream() as upstream, Foreword(setting, upstream, **options) as foreword:
        yield foreword, upstream


def is_prompt(message: dict, prompt: tuple[str, str], role: str = "system") -> None:
    """The message must be the prompt as it is, with the mark of its revision as a last line."""
    same(message["role"], role)
    same(set(message), {"role", "content"}, "fields")
    text, revision = prompt
    lines = message["content"].split("\n")
    same(lines[-1], f"<!-- foreword {revision} -->", "the last line")
    same("\n".join(lines[:-1]).removesuffix("\n"), text, "the prompt")


class Response:
    """An answer as it came; `chunks` are its pieces with the times of their coming."""

    def __init__(self, status: int, headers: list[tuple[str, str]]):
        self.status = status
        self.all_headers = headers
        self.chunks: list[tuple[float, bytes]] = []
        # How the body ended: "whole", or "cut" if the connection was closed before.
        self.end = "whole"

    @property
    def headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.all_headers}

    @property
    def body(self) -> bytes:
        return b"".join(data for _, data in self.chunks)

    def json(self) -> dict:
        return json.loads(self.body)

    def events(self) -> list[tuple[str, str]]:
        """The name and data of each event; comments are left out."""
        found = []
        for block in self.body.decode().replace("\r\n", "\n").split("\n\n"):
            name, data = "", []
            for line in block.split("\n"):
                key, _, value = line.partition(":")
                if key == "event":
                    name = value.strip()
                elif key == "data":
                    data.append(value.removeprefix(" "))
            if data:
                found.append((name, "\n".join(data)))
        return found


class Wire:
    """A connection on which exactly the given bytes are sent."""

    def __init__(self, url: str, timeout: float = 30):
        address = urlsplit(url)
        self.host = address.netloc
        self.socket = socket.create_connection((address.hostname, address.port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> float:
        """Leaves, whatever is still to come, and says when."""
        now = time.monotonic()
        # The file holds the socket open, and `close` alone would wait for a thread that reads.
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.file.close()
        self.socket.close()
        return now

    def post(self, path: str, body: bytes | dict, headers: dict[str, str] | None = None, method: str = "POST") -> None:
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        given = {"Host": self.host, "Content-Type": "application/json", "Content-Length": str(len(data))} | (
            headers or {}
        )
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.socket.sendall(head.encode("latin-1") + b"\r\n" + data)

    def head(self) -> Response:
        """The status and headers, as soon as they come."""
        line = self.file.readline()
        expect(line.startswith(b"HTTP/1.1 "), f"no answer: {line!r}")
        headers = []
        while line_of_head := self.file.readline().strip():
            name, _, value = line_of_head.decode("latin-1").partition(":")
            headers.append((name, value.strip()))
        return Response(int(line.split()[1]), headers)

    def pieces(self, response: Response) -> Iterator[bytes]:
        """The body, piece by piece as it comes."""
        if response.headers.get("transfer-encoding") == "chunked":
            while size := self.file.readline():
                length = int(size, 16)
                data = self.file.read(length + 2)[:-2]
                if not length:
                    return
                yield data
            response.end = "cut"
            return
        left = int(response.headers.get("content-length", 0))
        while left:
            data = self.file.read1(min(left, 1 << 16))
            if not data:
                response.end = "cut"
                return
            left -= len(data)
            yield data

    def read(self) -> Response:
        """The whole answer."""
        response = self.head()
        for data in self.pieces(response):
            response.chunks.append((time.monotonic(), data))
        return response


def exchange(
    foreword: Foreword, path: str, body: bytes | dict, headers: dict | None = None, method: str = "POST"
) -> Response:
    """One request and its whole answer."""
    with Wire(foreword.url) as wire:
        wire.post(path, body, headers, method)
        return wire.read()


def chat(foreword: Foreword, model: str = "gpt-5", headers: dict | None = None, **fields) -> Response:
    """One request to the endpoint of OpenAI's shape."""
    body = {"model": model, "messages": [ASK]} | fields
    return exchange(foreword, "/v1/chat/completions", body, headers)


def in_time(came: list[float], request: Received) -> None:
    """Chunks of a `slow` answer must come when they are sent; held back, they would come with the next one at the earliest."""
    same(len(came), len(request.sent_at), "chunks")
    late = [arrived - sent for arrived, sent in zip(came, request.sent_at, strict=True)]
    expect(statistics.median(late) < SLOW_SECONDS / 2, f"late by {', '.join(f'{seconds:.3f}' for seconds in late)} s")
