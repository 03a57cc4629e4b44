"""A model's API for tests: it answers as OpenAI and Anthropic do, notes what it got to the byte, and misbehaves on request.

The model's name in a request says how it is answered; any other name than those below is answered well.

| Model | Answer |
|---|---|
| `slow` | a stream with a chunk each 100 ms |
| `huge` | 100 MB, in one piece or as a stream |
| `stall` | none, and the connection stays open |
| `stall-midway` | the same after two chunks of a stream |
| `no-answer` | the connection is closed without a byte |
| `breaks-off` | the connection is closed in the middle of the answer |
| `garbage` | something that is not HTTP |
| `garbage-inside` | well-formed HTTP whose body is neither JSON nor a stream of events |
| `rate-limited` | 429 with `Retry-After: 7` |
| `error-500` | 500 with a body |
| `error-page` | 503 with a page, as a proxy in front would send |
| `moved` | a redirect to what `location` names |
| `odd-head` | headers that a client wants, and some that are not for it |
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

CHUNKS = ["Grüße", " aus", " Köln", ", 🦀", "."]
SLOW_CHUNKS = 10
SLOW_SECONDS = 0.1
MEGABYTE = 1_000_000
HUGE = 100 * MEGABYTE
# Larger than the window in which a server between may hold parts back.
PIECE = "x" * 10_000
MODELS = ["gpt-5", "claude@eu", "plain"]
LIST = b'{"object": "list",  "data": [%s], "own": 1.50}' % b" ,".join(
    b'{"id":"%s", "object":"model","created": 1,"owned_by":"tests", "price": 1.0e-400}' % name.encode()
    for name in MODELS
)
RATE_LIMITED = (
    b'{"error": {"message": "slow down,  please", "type": "requests", "param": null, "code": "rate_limit_exceeded"}}'
)
ERROR_500 = b'{"error":{"message":"the model is upset","type":"server_error","param":null,"code":null},  "more": 1e400}'
ERROR_PAGE = b"<html><body>503, says the proxy</body></html>"
GARBAGE_INSIDE = b"\x00\xff{ this is: neither\n\ndata of a stream"
END = b"0\r\n\r\n"


@dataclass
class Received:
    """A request as it came, and what became of its answer. Times are those of `time.monotonic`."""

    head: bytes
    body: bytes
    came_at: float
    # When the other side closed the connection, if it did before the answer was over.
    left_at: float | None = None
    # Whether the answer was written to its end.
    complete: bool = False
    # How many bytes of the answer the other side's buffers took.
    written: int = 0
    # When each chunk of a `slow` answer was sent.
    sent_at: list[float] = field(default_factory=list)

    @property
    def method(self) -> str:
        return self.head.split(b" ", 2)[0].decode()

    @property
    def path(self) -> str:
        return self.head.split(b" ", 2)[1].decode()

    @property
    def headers(self) -> dict[str, str]:
        """By lower-case name; those that came twice are joined."""
        found: dict[str, str] = {}
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            name, separator, value = line.partition(":")
            if separator:
                name, value = name.lower(), value.strip()
                found[name] = f"{found[name]}, {value}" if name in found else value
        return found

    def json(self) -> dict:
        return json.loads(self.body) if self.body else {}

    @property
    def messages(self) -> list[dict]:
        return self.json()["messages"]


class Upstream:
    """The server, in a thread of its own."""

    def __init__(self, answer: "type[Answer] | None" = None) -> None:
        self.answer = answer or Answer
        self.changed = threading.Condition()
        self.received: list[Received] = []
        self.loop = asyncio.new_event_loop()

    def __enter__(self) -> "Upstream":
        started = threading.Event()

        async def serve() -> None:
            self.stopping = asyncio.Event()
            server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=2000)
            self.url = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
            started.set()
            await self.stopping.wait()
            server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self.thread = threading.Thread(target=self.loop.run_until_complete, args=(serve(),), daemon=True)
        self.thread.start()
        if not started.wait(10):
            raise AssertionError("the upstream did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.stopping.set)
        self.thread.join(10)

    @property
    def last(self) -> Received:
        """The request that came last."""
        with self.changed:
            if not self.received:
                raise AssertionError("the upstream got no request")
            return self.received[-1]

    @property
    def count(self) -> int:
        with self.changed:
            return len(self.received)

    def wait_for(self, probe: Callable[[], object], what: str, within: float = 10) -> None:
        with self.changed:
            if not self.changed.wait_for(probe, within):
                raise AssertionError(f"{what}: not within {within:g} s")

    def next(self, before: int, within: float = 10) -> Received:
        """The request that comes after `before` others."""
        self.wait_for(lambda: len(self.received) > before, "a request at the upstream", within)
        return self.received[before]

    def left(self, request: Received, within: float = 10) -> float:
        """When the other side left in the middle of `request`."""
        self.wait_for(lambda: request.left_at, "the other side closed the connection", within)
        return request.left_at

    def note(self, request: Received, **fields: object) -> None:
        with self.changed:
            for name, value in fields.items():
                setattr(request, name, value)
            self.changed.notify_all()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        # Cancelled when the server stops; nobody waits for this task then.
        with suppress(ConnectionError, Left, asyncio.CancelledError):
            while True:
                request = Received(*await connection.request(), came_at=time.monotonic())
                with self.changed:
                    self.received.append(request)
                    self.changed.notify_all()
                answer = self.answer(self, connection, request)
                try:
                    await connection.unless_left(answer.write())
                except (Left, ConnectionError):
                    self.note(request, left_at=connection.left_at or time.monotonic())
                    raise
                except Break:
                    break
                self.note(request, complete=True)
        connection.close()


class Left(Exception):
    """The other side closed the connection."""


class Break(Exception):
    """This side closes the connection, as the request asked."""


class Connection:
    """Reads all the time, so that it is known at once when the other side closes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer
        self.buffer = bytearray()
        self.more = asyncio.Event()
        self.gone = asyncio.Event()
        self.left_at: float | None = None
        self.pump = asyncio.create_task(self.read())

    async def read(self) -> None:
        with suppress(ConnectionError):
            while data := await self.reader.read(1 << 16):
                self.buffer += data
                self.more.set()
        self.left_at = time.monotonic()
        self.gone.set()
        self.more.set()

    def close(self) -> None:
        self.pump.cancel()
        self.writer.close()

    async def take(self, end: Callable[[bytearray], int]) -> bytes:
        """What comes up to the index that `end` gives once it is not negative."""
        while (index := end(self.buffer)) < 0:
            if self.gone.is_set():
                raise Left
            self.more.clear()
            await self.more.wait()
        taken = bytes(self.buffer[:index])
        del self.buffer[:index]
        return taken

    async def line(self, end: bytes) -> bytes:
        return await self.take(lambda buffer: found + len(end) if (found := buffer.find(end)) >= 0 else -1)

    async def exactly(self, length: int) -> bytes:
        return await self.take(lambda buffer: length if len(buffer) >= length else -1)

    async def request(self) -> tuple[bytes, bytes]:
        head = await self.line(b"\r\n\r\n")
        headers = Received(head, b"", 0).headers
        if headers.get("transfer-encoding") != "chunked":
            return head, await self.exactly(int(headers.get("content-length", 0)))
        body = b""
        while length := int(await self.line(b"\r\n"), 16):
            body += (await self.exactly(length + 2))[:-2]
        await self.line(b"\r\n")
        return head, body

    async def unless_left(self, work) -> None:
        """Does `work`, and stops in the middle of it if the other side leaves."""
        task, gone = asyncio.create_task(work), asyncio.create_task(self.gone.wait())
        try:
            await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Left
            task.result()
        finally:
            task.cancel()
            gone.cancel()


class Answer:
    """Writes what the request's model stands for."""

    def __init__(self, upstream: Upstream, connection: Connection, request: Received):
        self.upstream, self.connection, self.request = upstream, connection, request
        self.anthropic = request.path.startswith("/v1/messages")
        with suppress(ValueError):
            self.body = request.json()
        self.model = str(getattr(self, "body", {}).get("model", ""))
        self.streams = bool(getattr(self, "body", {}).get("stream"))

    async def write(self) -> None:
        if self.request.method == "GET" and self.request.path.split("?")[0] == "/v1/models":
            return await self.plain("200 OK", LIST)
        if self.request.path.split("?")[0] not in ("/v1/chat/completions", "/v1/messages"):
            return await self.plain("404 Not Found", b'{"error": {"message": "no such path", "code": "wrong_path"}}')
        await getattr(self, "model_" + self.model.replace("-", "_"), self.well)()

    async def send(self, data: bytes) -> None:
        self.connection.writer.write(data)
        self.request.written += len(data)
        await self.connection.writer.drain()

    async def plain(self, status: str, body: bytes, kind: str = "application/json", more: str = "") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        await self.send(head.encode() + body)

    async def whole(self, value: dict) -> None:
        await self.plain("200 OK", json.dumps(value, ensure_ascii=False).encode())

    async def begin(self) -> None:
        await self.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, value: dict | str) -> None:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        name = f"event: {value['type']}\n" if self.anthropic else ""
        await self.chunk(f"{name}data: {text}\n\n".encode())

    # The answers that are well.

    def wants_tool(self) -> dict | None:
        """The tool that is to be called: the first one, until the conversation holds a result after the last question."""
        tools, messages = self.body.get("tools"), self.body.get("messages")
        if not tools or not messages or '"tool_result"' in json.dumps(messages[-1]):
            return None
        return tools[0] if messages[-1]["role"] == "user" else None

    async def well(self) -> None:
        tool = self.wants_tool()
        if self.anthropic:
            await (self.anthropic_stream(tool) if self.streams else self.anthropic_whole(tool))
        else:
            await (self.openai_stream(tool) if self.streams else self.openai_whole(tool))

    def completion(self, kind: str, choice: dict) -> dict:
        own = {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": self.model}
        return own | {"choices": [{"index": 0, "finish_reason": None} | choice]}

    def call(self, tool: dict) -> dict:
        called = {"name": tool["function"]["name"], "arguments": '{"city": "Köln"}'}
        return {"id": "call_1", "type": "function", "function": called}

    async def openai_whole(self, tool: dict | None) -> None:
        message: dict = {"role": "assistant", "content": None if tool else "".join(CHUNKS)}
        if tool:
            message["tool_calls"] = [self.call(tool)]
        value = self.completion(
            "chat.completion", {"message": message, "finish_reason": "tool_calls" if tool else "stop"}
        )
        await self.whole(value | {"usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}})

    def delta(self, delta: dict, reason: str | None = None) -> dict:
        return self.completion("chat.completion.chunk", {"delta": delta, "finish_reason": reason})

    async def openai_stream(self, tool: dict | None) -> None:
        await self.begin()
        await self.event(self.delta({"role": "assistant", "content": None if tool else ""}))
        if tool:
            call = self.call(tool)
            arguments = call["function"].pop("arguments")
            await self.event(self.delta({"tool_calls": [{"index": 0} | call]}))
            for part in (arguments[:5], arguments[5:]):
                await self.event(self.delta({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}))
        else:
            for text in CHUNKS:
                await self.event(self.delta({"content": text}))
        await self.event(self.delta({}, "tool_calls" if tool else "stop"))
        if (self.body.get("stream_options") or {}).get("include_usage"):
            usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
            await self.event(self.completion("chat.completion.chunk", {}) | {"choices": [], "usage": usage})
        await self.event("[DONE]")
        await self.send(END)

    def message(self, content: list[dict], reason: str | None) -> dict:
        usage = {"input_tokens": 7, "output_tokens": 5}
        own = {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "content": content}
        return own | {"stop_reason": reason, "stop_sequence": None, "usage": usage}

    async def anthropic_whole(self, tool: dict | None) -> None:
        if tool:
            use = {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": {"city": "Köln"}}
            return await self.whole(self.message([use], "tool_use"))
        await self.whole(self.message([{"type": "text", "text": "".join(CHUNKS)}], "end_turn"))

    async def anthropic_stream(self, tool: dict | None) -> None:
        await self.begin()
        await self.event({"type": "message_start", "message": self.message([], None)})
        if tool:
            block = {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in ('{"city": ', '"Köln"}')]
        else:
            block = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": text} for text in CHUNKS]
        await self.event({"type": "content_block_start", "index": 0, "content_block": block})
        for delta in deltas:
            await self.event({"type": "content_block_delta", "index": 0, "delta": delta})
        await self.event({"type": "content_block_stop", "index": 0})
        ended = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
        await self.event({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}})
        await self.event({"type": "message_stop"})
        await self.send(END)

    def text(self, text: str) -> dict:
        """One event that carries `text`, in the shape of either API."""
        if self.anthropic:
            return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        return self.delta({"content": text})

    # And those that are not.

    async def model_slow(self) -> None:
        if not self.streams:
            await asyncio.sleep(SLOW_SECONDS * SLOW_CHUNKS)
            return await self.well()
        await self.begin()
        for number in range(SLOW_CHUNKS):
            self.request.sent_at.append(time.monotonic())
            await self.event(self.text(f"<{number}>"))
            await asyncio.sleep(SLOW_SECONDS)
        await self.event({"type": "message_stop"} if self.anthropic else "[DONE]")
        await self.send(END)

    async def model_huge(self) -> None:
        if self.streams:
            await self.begin()
            for _ in range(HUGE // len(PIECE)):
                await self.event(self.text(PIECE))
            await self.event({"type": "message_stop"} if self.anthropic else "[DONE]")
            return await self.send(END)
        choice = {"message": {"role": "assistant", "content": "@"}, "finish_reason": "stop"}
        before, after = json.dumps(self.completion("chat.completion", choice)).encode().split(b"@")
        length = len(before) + HUGE + len(after)
        await self.send(
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()
        )
        await self.send(before)
        for _ in range(HUGE // len(PIECE)):
            await self.send(PIECE.encode())
        await self.send(after)

    async def model_stall(self) -> None:
        await asyncio.Event().wait()

    async def model_stall_midway(self) -> None:
        await self.begin()
        for text in CHUNKS[:2]:
            await self.event(self.text(text))
        await asyncio.Event().wait()

    async def model_no_answer(self) -> None:
        raise Break

    async def model_breaks_off(self) -> None:
        if self.streams:
            await self.begin()
            for text in CHUNKS[:2]:
                await self.event(self.text(text))
        else:
            await self.send(
                b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"id": "chatc'
            )
        raise Break

    async def model_garbage(self) -> None:
        await self.send(b"\x00\x01 what is this?\r\n\r\n" * 3)
        raise Break

    async def model_garbage_inside(self) -> None:
        kind = "text/event-stream" if self.streams else "application/json"
        await self.plain("200 OK", GARBAGE_INSIDE, kind)

    async def model_rate_limited(self) -> None:
        await self.plain("429 Too Many Requests", RATE_LIMITED, more="Retry-After: 7\r\n")

    async def model_error_500(self) -> None:
        await self.plain("500 Internal Server Error", ERROR_500)

    async def model_error_page(self) -> None:
        await self.plain("503 Service Unavailable", ERROR_PAGE, "text/html")

    async def model_moved(self) -> None:
        await self.plain("307 Temporary Redirect", b"{}", more=f"Location: {self.body['location']}\r\n")

    async def model_odd_head(self) -> None:
        body = json.dumps(
            self.completion("chat.completion", {"message": {"role": "assistant", "content": "x"}})
        ).encode()
        more = "Openai-Processing-Ms: 12\r\nX-Ratelimit-Remaining-Requests: 99\r\n"
        more += "Set-Cookie: of=upstream\r\nKeep-Alive: timeout=9\r\n"
        await self.plain("200 OK", body, more=more)
