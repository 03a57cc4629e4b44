"""A chat in its workspace, through the Python SDK: what a model does, and what its user gets.

Reads where to connect from standard input; ends with an error at the first thing that is not as it should be.
"""

import asyncio
import json
import sys
import urllib.request
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

PICTURE = """python3 - <<'P'
import struct, zlib
chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = zlib.compress((b"\\0" + b"\\x20\\x80\\xff" * 8) * 8)
head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
open("dot.png", "wb").write(
    b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
)
P"""


@asynccontextmanager
async def connected(story):
    if not story["url"]:
        program, *arguments = story["command"]
        parameters = StdioServerParameters(command=program, args=arguments, env=story["environment"])
        async with Client(parameters, read_timeout_seconds=30) as client:
            yield client
        return
    headers = story["headers"] | {"X-Chat-Id": story["chat"]}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http_client:
        transport = streamable_http_client(story["url"], http_client=http_client)
        async with Client(transport, read_timeout_seconds=30) as client:
            yield client


async def main() -> None:
    story = json.load(sys.stdin)
    async with connected(story) as client:

        async def call(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.content[0].text
            return result.content[0]

        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == ["bash_tool", "view", "create_file", "str_replace"], tools

        # It writes a file, serves it in the background, and calls its server in the next call.
        await call("create_file", path="site/index.html", file_text="<p>served</p>")
        await call("bash_tool", command="cd site && nohup python3 -m http.server 8000 > ~/log.txt 2>&1 &")
        fetch = "for i in $(seq 50); do curl -s http://127.0.0.1:8000/ && break; sleep 0.1; done"
        fetched = await call("bash_tool", command=f"which curl > /dev/null && {{ {fetch}; }}")
        assert fetched.text == "<p>served</p>", fetched.text

        # It sees a picture as a picture.
        await call("bash_tool", command=PICTURE)
        picture = await call("view", path="dot.png")
        assert (picture.type, picture.mime_type) == ("image", "image/png"), picture

        # It reads its instructions again: they are the ones of the handshake.
        readme = await call("bash_tool", command="cat README.md")
        assert readme.text == client.instructions.rstrip(), readme.text[:300]

        # Its user uploads a file, which it finds among the resources and in the workspace.
        upload(story, "notes/hello.txt", b"from the user")
        listed = (await client.list_resources()).resources
        assert [resource.name for resource in listed] == ["notes/hello.txt"], listed
        seen = await call("bash_tool", command="cat /mnt/user-data/uploads/notes/hello.txt")
        assert seen.text == "from the user", seen.text

        # What it puts out, its user gets through the link that the prompt names.
        await call("bash_tool", command="echo result > '/mnt/user-data/outputs/the result.txt'")
        link = next(word for word in client.instructions.split("`") if word.endswith("/NAME"))
        link = link.removesuffix("NAME") + "the%20result.txt"
        with urllib.request.urlopen(link, timeout=20) as response:
            assert response.read() == b"result\n"


def upload(story, name, content) -> None:
    url = f"{story['base']}/api/uploads/{story['chat']}/{name}"
    request = urllib.request.Request(url, data=content, headers=story["headers"], method="PUT")
    with urllib.request.urlopen(request, timeout=20) as response:
        assert response.status == 201, response.status


asyncio.run(main())
