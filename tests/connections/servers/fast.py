"""A server made with FastMCP, over Streamable HTTP: it speaks both eras of the protocol.

What was asked of it, and with which headers, goes to the file of `--record`, one JSON object a line.

usage: fast.py --port PORT [--record FILE]
"""

import argparse
import asyncio
import json
from pathlib import Path

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult
from fastmcp.utilities.types import Audio, Image
from mcp_types import (
    BlobResourceContents,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154"
    "789c6364f8cf500f000386018005a347d76a0000000049454e44ae426082"
)
server = FastMCP("fast", instructions="Words of the FastMCP server.")
record_file: Path | None = None


class Weather(BaseModel):
    """What the weather is."""

    city: str
    degrees: float
    rain: bool | None = None


@server.tool
def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(annotations={"readOnlyHint": True, "title": "Weather"}, meta={"example.com/kind": "weather"})
def weather(city: str, unit: str | None = None) -> Weather:
    """Tells the weather.

    With *Markdown*, `code` and a second paragraph: “Grüße”, 日本語 🦀.
    """
    return Weather(city=city, degrees=21.5)


@server.tool
def picture() -> Image:
    """Shows a picture."""
    return Image(data=PNG, format="png")


@server.tool
def sound() -> Audio:
    """Plays a sound."""
    return Audio(data=b"RIFF\x00\x00", format="wav")


@server.tool
def mixed() -> ToolResult:
    """Answers with one of each."""
    blob = BlobResourceContents(uri="fast://blob", mime_type="application/x-thing", blob="AAECAw==")
    text = TextResourceContents(uri="fast://text", mime_type="text/plain", text="embedded, “quoted”")
    return ToolResult(
        content=[
            TextContent(type="text", text="first"),
            Image(data=PNG, format="png").to_image_content(),
            ResourceLink(type="resource_link", uri="fast://link", name="link", description="A link", size=7),
            EmbeddedResource(type="resource", resource=text),
            EmbeddedResource(type="resource", resource=blob),
            TextContent(type="text", text="last"),
        ],
        structured_content={"zebra": 1, "apple": [1.5, None, {"deep": "日本語"}]},
        meta={"example.com/trace": "t-1"},
    )


@server.tool
def nothing() -> None:
    """Answers with nothing."""


@server.tool
def large() -> str:
    """Answers with a quarter of a megabyte, twice."""
    return "0123456789abcdef" * 16384


@server.tool
def fail(reason: str) -> str:
    """Fails with a reason."""
    raise ToolError(f"it failed: {reason}")


@server.tool
def crash() -> str:
    """Fails by mistake."""
    raise ZeroDivisionError("a mistake")


@server.tool
async def steps(context: Context, count: int) -> str:
    """Tells how far it is."""
    for step in range(count):
        await context.report_progress(step + 1, count, f"step {step + 1}")
        await asyncio.sleep(0.05)
    return f"took {count} steps"


@server.tool
async def wait(context: Context, seconds: float = 30) -> str:
    """Waits, and notes if it was not let."""
    note("waiting")
    try:
        for step in range(int(seconds * 10)):
            await context.report_progress(step, seconds * 10)
            await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "waited to the end"


@server.tool
def grow(name: str) -> str:
    """Gives the server one more tool, of which it cannot tell its clients."""

    def grown() -> str:
        return "grown"

    server.tool(grown, name=name, description="Came later.")
    return "grown"


def note(event: str, **values: object) -> None:
    if record_file:
        with record_file.open("a", encoding="utf-8") as record:
            record.write(json.dumps({"event": event, **values}) + "\n")


class Recorder:
    """Notes each request with its headers before it is served."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        body = b""

        async def listen() -> Message:
            nonlocal body
            message = await receive()
            if message["type"] == "http.request":
                body += message.get("body", b"")
                if not message.get("more_body"):
                    headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
                    method = json.loads(body).get("method") if body else None
                    note("request", http=scope["method"], method=method, headers=headers)
            return message

        await self.app(scope, listen, send)


def main() -> None:
    global record_file
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    record_file = options.record
    app = Recorder(server.http_app(path="/mcp"))
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
