"""A server made with the Python SDK 2.x, over Streamable HTTP, that uses what only the revision 2026-07-28 has.

Its listeners hear of a new tool, an argument is repeated in a header, and a tool answers that it needs more input.

usage: notifying.py --port PORT
"""

import argparse
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel, Field

Region = Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]


class Secret(BaseModel):
    """What is asked for."""

    word: str


def ask() -> Elicit[Secret]:
    return Elicit("What is the word?", Secret)


server = MCPServer("notifying", instructions="Words of the notifying server.")


@server.tool()
async def grow(name: str, context: Context) -> str:
    """Gives the server one more tool."""

    def grown() -> str:
        return "grown"

    server.add_tool(grown, name=name, description="Came later.")
    await context.notify_tools_changed()
    return "grown"


@server.tool()
def route(region: Region, times: int = 1) -> str:
    """Says where it was sent."""
    return region * times


@server.tool()
def tell(secret: Annotated[Secret, Resolve(ask)]) -> str:
    """Tells a word that somebody has to give first."""
    return secret.word


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    server.run("streamable-http", host="127.0.0.1", port=parser.parse_args().port)
