"""The Python SDK `mcp` 1.30, which most deployed agents still use: the `initialize` handshake, over HTTP and stdio."""

from contextlib import asynccontextmanager

from adapter import Answer, Case, serve
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def connect(case: Case) -> Answer:
    async with streams(case) as (read, write), ClientSession(read, write) as session:
        handshake = await session.initialize()
        tools = await session.list_tools()
        result = await session.call_tool("read_me", {})
        return {
            "protocol": handshake.protocolVersion,
            "instructions": handshake.instructions,
            "tools": [tool.name for tool in tools.tools],
            "read_me": result.content[0].text,
        }


@asynccontextmanager
async def streams(case: Case):
    if case["command"]:
        program, *arguments = case["command"]
        parameters = StdioServerParameters(command=program, args=arguments, env=case["environment"])
        async with stdio_client(parameters) as (read, write):
            yield read, write
    else:
        async with streamablehttp_client(case["url"], headers=case["headers"]) as (read, write, _):
            yield read, write


serve(connect)
