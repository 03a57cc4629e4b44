"""`openai-agents` on `mcp` 2.x: it discovers; its `server_initialize_result` is None, the text is in the session."""

from adapter import Answer, Case, serve
from agents.mcp import MCPServerStreamableHttp


async def connect(case: Case) -> Answer:
    async with MCPServerStreamableHttp(params={"url": case["url"], "headers": case["headers"]}) as server:
        tools = await server.list_tools()
        result = await server.call_tool("read_me", {})
        return {
            "protocol": server.session.protocol_version,
            "instructions": server.session.instructions,
            "tools": [tool.name for tool in tools],
            "read_me": result.content[0].text,
        }


serve(connect)
