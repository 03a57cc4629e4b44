"""The Python SDK `mcp` 2.x: both eras over HTTP, and stdio."""

import httpx2
from adapter import Answer, Case, serve
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

MODES = {"legacy": "legacy", "modern": "auto"}


async def connect(case: Case) -> Answer:
    if case["command"]:
        program, *arguments = case["command"]
        return await ask(StdioServerParameters(command=program, args=arguments, env=case["environment"]), case)
    async with httpx2.AsyncClient(headers=case["headers"], timeout=20) as http_client:
        return await ask(streamable_http_client(case["url"], http_client=http_client), case)


async def ask(server, case: Case) -> Answer:
    async with Client(server, mode=MODES[case["era"]], read_timeout_seconds=20) as client:
        tools = await client.list_tools()
        result = await client.call_tool("read_me", {})
        return {
            "protocol": client.protocol_version,
            "instructions": client.instructions,
            "tools": [tool.name for tool in tools.tools],
            "read_me": result.content[0].text,
        }


serve(connect)
