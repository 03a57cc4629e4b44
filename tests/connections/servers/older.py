"""A server made with the Python SDK 1.x: Streamable HTTP with sessions, or the older HTTP with Server-Sent Events.

usage: older.py --port PORT [--transport streamable-http|sse]
"""

import argparse
from functools import partial

from mcp.server.fastmcp import Context, FastMCP
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
async def grow(name: str, context: Context) -> str:
    """Gives the server one more tool, and tells the client that asked."""

    def grown() -> str:
        return "grown"

    server.add_tool(grown, name=name, description="Came later.")
    await context.session.send_tool_list_changed()
    return "grown"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--transport", default="streamable-http", choices=("streamable-http", "sse"))
    options = parser.parse_args()
    server.settings.port = options.port
    server.run(options.transport)
