"""A server made with the Python SDK 2.x, over Streamable HTTP, whose listeners of 2026-07-28 hear of a new tool.

usage: notifying.py --port PORT
"""

import argparse

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("notifying", instructions="Words of the notifying server.")


@server.tool()
async def grow(name: str, context: Context) -> str:
    """Gives the server one more tool."""

    def grown() -> str:
        return "grown"

    server.add_tool(grown, name=name, description="Came later.")
    await context.notify_tools_changed()
    return "grown"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    server.run("streamable-http", host="127.0.0.1", port=parser.parse_args().port)
