"""A server made with the Python SDK 1.x: Streamable HTTP with sessions, or the older HTTP with Server-Sent Events.

usage: older.py --port PORT [--transport streamable-http|sse] [--record FILE]
"""

import argparse
import asyncio
import json
from functools import partial
from pathlib import Path

from mcp.server.fastmcp import Context, FastMCP, Image
from mcp.server.lowlevel import NotificationOptions

server = FastMCP("older", instructions="Words of the older server.", host="127.0.0.1", log_level="WARNING")
# FastMCP itself has no way to declare what its tools do below.
inner = server._mcp_server
inner.create_initialization_options = partial(inner.create_initialization_options, NotificationOptions(tools_changed=True))


@server.tool()
def say(text: str) -> str:
    """Says it again."""
    return text


@server.tool()
async def wait(context: Context, seconds: float = 30) -> str:
    """Waits, tells how far it is, and notes if it was not let."""
    note("waiting")
    try:
        for step in range(int(seconds * 10)):
            await context.report_progress(step + 1, seconds * 10, f"step {step + 1}")
            await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "waited to the end"


@server.tool()
def picture() -> Image:
    """Shows a picture."""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@server.tool()
def fail() -> str:
    """Fails by mistake."""
    raise ZeroDivisionError("a mistake")


@server.tool()
async def grow(name: str, context: Context) -> str:
    """Gives the server one more tool, and tells the client that asked."""

    def grown() -> str:
        return "grown"

    server.add_tool(grown, name=name, description="Came later.")
    await context.session.send_tool_list_changed()
    return "grown"


def note(event: str) -> None:
    if options.record:
        with options.record.open("a", encoding="utf-8") as record:
            record.write(json.dumps({"event": event}) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--transport", default="streamable-http", choices=("streamable-http", "sse"))
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    server.settings.port = options.port
    server.run(options.transport)
