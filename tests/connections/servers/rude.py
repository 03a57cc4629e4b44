"""HTTP servers that answer as no MCP server should, each at a path of its own, in a thread of the test.

The methods under "Manners" below are the paths. What came is kept in `requests`, so that a test can see what was sent where.
"""

import json
import threading
import time
import zlib
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = b"x" * (1 << 16)
PIECES = 4800
TOOL = {"name": "thing", "description": "Does a thing.", "inputSchema": {"type": "object"}}


class Rude:
    """The servers, while they are entered: one at `url`, another that is not the same origin at `elsewhere`."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.servers = [ThreadingHTTPServer(("127.0.0.1", 0), self.handler()) for _ in range(2)]
        self.url, self.elsewhere = (f"http://127.0.0.1:{server.server_address[1]}" for server in self.servers)

    def __enter__(self) -> "Rude":
        for server in self.servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def handler(self) -> type[BaseHTTPRequestHandler]:
        rude = self

        class Handler(Manners):
            others = rude

        return Handler


class Manners(BaseHTTPRequestHandler):
    """One request."""

    others: Rude
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.others.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        self.message = json.loads(body) if body else {}
        # Clients that hang up are what many of these are for.
        with suppress(OSError):
            getattr(self, self.path.strip("/").split("?")[0].replace("-", "_"))()

    def do_GET(self) -> None:
        self.say(405, b"", "text/plain")

    do_DELETE = do_GET

    def log_message(self, *_: object) -> None:
        pass

    def say(self, status: int, body: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def result(self, result: dict) -> None:
        answer = {"jsonrpc": "2.0", "id": self.message["id"], "result": result}
        self.say(200, json.dumps(answer).encode(), "application/json")

    def greet(self) -> bool:
        """Answers what comes before a list of tools, as a server of 2025-11-25."""
        method = self.message.get("method")
        if method == "initialize":
            server = {"name": "rude", "version": "1"}
            self.result({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server})
        elif "id" not in self.message:
            self.say(202, b"", "text/plain")
        elif method == "tools/list" and self.path != "/endless-list":
            self.result({"tools": [TOOL]})
        elif method not in ("tools/list", "tools/call"):
            error = {"code": -32601, "message": "Method not found"}
            answer = {"jsonrpc": "2.0", "id": self.message["id"], "error": error}
            self.say(200, json.dumps(answer).encode(), "application/json")
        else:
            return False
        return True

    def flood(self, kind: str, start: bytes) -> None:
        """Three hundred megabytes that never come to an end of what they began."""
        self.begin(kind)
        self.wfile.write(start)
        for _ in range(PIECES):
            self.wfile.write(PIECE)

    # Manners.

    def unauthorised(self) -> None:
        self.say(401, b'{"error":"invalid_token"}', "application/json", **{"WWW-Authenticate": "Bearer"})

    def page(self) -> None:
        self.say(200, b"<!doctype html><title>Hello</title>", "text/html")

    def broken(self) -> None:
        self.say(500, b"it broke", "text/plain")

    def redirect(self) -> None:
        self.say(307, b"", "text/plain", Location=f"{self.others.elsewhere}/page")

    def round_and_round(self) -> None:
        self.say(307, b"", "text/plain", Location="/round-and-round")

    def silent(self) -> None:
        time.sleep(60)

    def hang_up(self) -> None:
        self.close_connection = True

    def endless_list(self) -> None:
        if not self.greet():
            self.flood("application/json", b'{"jsonrpc":"2.0","id":1,"result":{"tools":[],"more":"')

    def endless_result(self) -> None:
        if not self.greet():
            self.flood("application/json", b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"more":"')

    def endless_event(self) -> None:
        if not self.greet():
            self.flood("text/event-stream", b'data: {"jsonrpc":"2.0","id":1,"result":{"content":[],"more":"')

    def bomb(self) -> None:
        if self.greet():
            return
        packer = zlib.compressobj(9, wbits=31)
        start = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"more":"'
        body = packer.compress(start) + b"".join(packer.compress(PIECE) for _ in range(PIECES)) + packer.flush()
        self.say(200, body, "application/json", **{"Content-Encoding": "gzip"})

    def empty(self) -> None:
        if not self.greet():
            self.say(200, b"", "application/json")

    def accepted(self) -> None:
        if not self.greet():
            self.say(202, b"", "text/plain")

    def missing(self) -> None:
        if not self.greet():
            self.say(404, b"no such page", "text/plain")

    def failing(self) -> None:
        if not self.greet():
            self.say(500, b"<html>it broke</html>", "text/html")

    def cut(self) -> None:
        if not self.greet():
            self.begin("application/json", 1000)
            self.wfile.write(b'{"jsonrpc":"2.0"')

    def cut_event(self) -> None:
        if not self.greet():
            self.begin("text/event-stream")
            self.wfile.write(b'event: message\ndata: {"jsonrpc":"2.0"')

    def trickle(self) -> None:
        if not self.greet():
            self.begin("application/json")
            for _ in range(100):
                self.wfile.write(b" ")
                time.sleep(0.2)

    def begin(self, kind: str, length: int | None = None) -> None:
        """The head of an answer whose body ends with the connection."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def wrong_id(self) -> None:
        if not self.greet():
            answer = {"jsonrpc": "2.0", "id": 987654, "result": {"content": []}}
            self.say(200, json.dumps(answer).encode(), "application/json")
