"""`fastmcp` 4.x: both eras over HTTP."""

from adapter import Answer, Case, serve
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

MODES = {"legacy": "legacy", "modern": "auto"}


async def connect(case: Case) -> Answer:
    transport = StreamableHttpTransport(case["url"], headers=case["headers"])
    async with Client(transport, mode=MODES[case["era"]]) as client:
        tools = await client.list_tools()
        result = await client.call_tool("read_me", {})
        return {
            "protocol": client.protocol_version,
            "instructions": client.instructions,
            "tools": [tool.name for tool in tools],
            "read_me": result.content[0].text,
        }


serve(connect)
