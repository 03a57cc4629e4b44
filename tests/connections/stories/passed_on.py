"""Every tool of real servers, called through Foreword and directly by the same client: the answers must be the same."""

import asyncio
import base64
import json
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx2
import peers
from harness import Background, Report, expect, same, until
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from peers import Setting, records, words
from serving import Foreword
from wire import Caller, RpcError, Stdio, minimal_environment

MODES = {"legacy": "legacy", "modern": "2026-07-28"}
DATA_URI = "data:text/plain;base64," + base64.b64encode(b"some text to be compressed").decode()


@dataclass(frozen=True)
class Call:
    """A call to make on every way, after `prepare`."""

    tool: str
    arguments: dict = field(default_factory=dict)
    prepare: Callable[[], None] = lambda: None
    # What a tool switches on is switched off again.
    times: int = 1


def everything_calls() -> list[Call]:
    return [
        Call("echo", {"message": "“Grüße” 日本語 🦀\n\nsecond line"}),
        Call("echo", {"message": 7}),
        Call("echo", {}),
        Call("get-annotated-message", {"messageType": "error", "includeImage": True}),
        Call("get-annotated-message", {"messageType": "no such type"}),
        Call("get-env"),
        Call("get-resource-links", {"count": 4}),
        Call("get-resource-links", {"count": 99}),
        Call("get-resource-reference", {"resourceType": "Text", "resourceId": 2}),
        Call("get-resource-reference", {"resourceType": "Blob", "resourceId": 3}),
        Call("get-resource-reference", {"resourceType": "Text", "resourceId": -1}),
        Call("get-structured-content", {"location": "Chicago"}),
        Call("get-structured-content", {"location": "Atlantis"}),
        Call("get-sum", {"a": 2.5, "b": -7}),
        Call("get-sum", {"a": "two", "b": 1}),
        Call("get-tiny-image"),
        Call("gzip-file-as-resource", {"name": "a.gz", "data": DATA_URI, "outputType": "resource"}),
        Call("gzip-file-as-resource", {"name": "b.gz", "data": DATA_URI, "outputType": "resourceLink"}),
        Call("gzip-file-as-resource", {"name": "c.gz", "data": "ftp://127.0.0.1/x"}),
        Call("toggle-simulated-logging", times=2),
        Call("toggle-subscriber-updates", times=2),
        Call("trigger-long-running-operation", {"duration": 0.3, "steps": 3}),
        Call("simulate-research-query", {"topic": "tests"}),
    ]


def filesystem_calls(root: Path) -> list[Call]:
    def fresh() -> None:
        for entry in root.iterdir():
            if entry.name != "still.txt":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        (root / "a.txt").write_text("one\ntwo\nthree\n")
        (root / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        (root / "sound.wav").write_bytes(b"RIFF")
        (root / "thing.bin").write_bytes(bytes(range(256)))
        (root / "sub/deep").mkdir(parents=True)
        (root / "sub/deep/b.txt").write_text("b")

    (root / "still.txt").write_text("nobody reads it")
    a = str(root / "a.txt")
    edits = [{"oldText": "two", "newText": "zwei"}]
    return [
        Call("read_file", {"path": a, "head": 1}, fresh),
        Call("read_text_file", {"path": a, "tail": 2}, fresh),
        Call("read_text_file", {"path": str(root / "none.txt")}, fresh),
        Call("read_text_file", {"path": "/etc/passwd"}, fresh),
        Call("read_text_file", {"path": [a]}, fresh),
        Call("read_media_file", {"path": str(root / "dot.png")}, fresh),
        Call("read_media_file", {"path": str(root / "sound.wav")}, fresh),
        Call("read_media_file", {"path": str(root / "thing.bin")}, fresh),
        Call("read_multiple_files", {"paths": [a, str(root / "none.txt")]}, fresh),
        Call("write_file", {"path": str(root / "new.txt"), "content": "new"}, fresh),
        Call("edit_file", {"path": a, "edits": edits, "dryRun": True}, fresh),
        Call("edit_file", {"path": a, "edits": edits}, fresh),
        Call("edit_file", {"path": a, "edits": [{"oldText": "not there", "newText": ""}]}, fresh),
        Call("create_directory", {"path": str(root / "made")}, fresh),
        Call("list_directory", {"path": str(root)}, fresh),
        Call("list_directory_with_sizes", {"path": str(root), "sortBy": "size"}, fresh),
        Call("directory_tree", {"path": str(root)}, fresh),
        Call("move_file", {"source": a, "destination": str(root / "moved.txt")}, fresh),
        Call("move_file", {"source": a, "destination": str(root / "dot.png")}, fresh),
        Call("search_files", {"path": str(root), "pattern": "**/*.txt"}, fresh),
        Call("get_file_info", {"path": str(root / "still.txt")}, fresh),
        Call("list_allowed_directories"),
    ]


def fast_calls() -> list[Call]:
    return [
        Call("add", {"a": 1, "b": 2}),
        Call("add", {"a": 2**53 + 1}),
        Call("add", {"a": "one"}),
        Call("add", {"a": 1, "c": 3}),
        Call("weather", {"city": "Köln"}),
        Call("weather", {"city": "Köln", "unit": None}),
        Call("picture"),
        Call("sound"),
        Call("mixed"),
        Call("nothing"),
        Call("large"),
        Call("fail", {"reason": "because\nof `this`"}),
        Call("crash"),
        Call("steps", {"count": 4}),
        Call("wait", {"seconds": 0.2}),
        Call("grow", {"name": "grown"}),
        Call("grown"),
    ]


def notifying_calls() -> list[Call]:
    return [
        Call("route", {"region": "eu-1"}),
        Call("route", {"region": " Köln\n", "times": 2}),
        Call("route", {"region": 7}),
        Call("tell"),
        Call("grow", {"name": "grown"}),
        Call("grown"),
    ]


def older_calls() -> list[Call]:
    return [
        Call("say", {"text": "“Grüße”"}),
        Call("say"),
        Call("picture"),
        Call("fail"),
        Call("wait", {"seconds": 0.3}),
        Call("grow", {"name": "grown"}),
        Call("grown"),
    ]


def raw_calls() -> list[Call]:
    return [
        Call("say", {"text": "again"}),
        Call("fail"),
        Call("refuse"),
        Call("everything"),
        Call("wait", {"seconds": 0.3}),
    ]


def run(setting: Setting, report: Report) -> None:
    root = setting.directory("root").resolve()
    record = setting.directory("raw") / "record"
    older_record, fast_record = setting.directory("older") / "record", setting.directory("fast") / "record"
    with (
        peers.fast(setting, fast_record) as fast,
        peers.notifying(setting) as notifying,
        peers.older(setting, record=older_record) as older,
    ):
        connections = {
            "everything": peers.everything(setting),
            "files": peers.filesystem(setting, root),
            # Its list changes by one tool, of which it cannot tell.
            "fast": {"url": fast.url, "refresh": 1},
            "notifying": {"url": notifying.url},
            "older": {"url": older.url},
            "raw": peers.raw(record=record),
        }
        with Foreword(setting, connections) as foreword:
            foreword.ready(*connections, within=60)
            # Everything adds a tool after the handshake.
            until(lambda: "everything__simulate-research-query" in foreword.tools(), "the list of `everything` is whole")
            for name, connection in connections.items():
                with report.case(f"passed on: descriptions and schemas of {name} are as it gave them"):
                    same_tools(foreword, name, connection)
            asyncio.run(compare(report, foreword, "everything", stdio(connections["everything"]), everything_calls()))
            asyncio.run(compare(report, foreword, "files", stdio(connections["files"]), filesystem_calls(root)))
            over_http = {
                "fast": (fast, fast_calls()),
                "notifying": (notifying, notifying_calls()),
                "older": (older, older_calls()),
            }
            for name, (peer, calls) in over_http.items():
                connect = partial(streamable_http_client, peer.url)
                asyncio.run(compare(report, foreword, name, connect, calls))
            asyncio.run(compare(report, foreword, "raw", stdio(connections["raw"]), raw_calls()))
            for name, file in (("fast", fast_record), ("older", older_record), ("raw", record)):
                asyncio.run(cancellation(report, foreword, name, file))
            on_the_wire(report, foreword, record)


def stdio(connection: dict) -> Callable[[], StdioServerParameters]:
    return lambda: StdioServerParameters(command=connection["command"], args=connection["args"])


def same_tools(foreword: Foreword, name: str, connection: dict) -> None:
    direct = {tool["name"]: tool for tool in directly_listed(foreword, name, connection)}
    prefix = f"{name}__"
    for era in ("legacy", "modern"):
        through = {key.removeprefix(prefix): tool for key, tool in foreword.tools(era).items() if key.startswith(prefix)}
        same(sorted(through), sorted(direct), f"names in {era}")
        for tool in direct:
            # How a task is made is between the two of them, and Foreword makes none.
            wanted, got = ({key: value for key, value in of[tool].items() if key not in ("name", "execution")}
                           for of in (direct, through))  # fmt: skip
            same(exact(got), exact(wanted), f"{tool} in {era}")


def directly_listed(foreword: Foreword, name: str, connection: dict) -> list[dict]:
    if "url" in connection:
        # FastMCP orders the same schema differently in the two eras.
        if foreword.servers()[name]["protocol_version"] == "2026-07-28":
            return Caller(connection["url"], "modern").listed("tools/list", "tools")
        return Caller(connection["url"]).greet().listed("tools/list", "tools")
    command = [connection["command"], *connection["args"]]
    with Stdio(command, minimal_environment(), foreword.log_file) as client:
        return until(lambda: whole(client.listed("tools/list", "tools"), name), "its own list is whole")


def whole(tools: list[dict], name: str) -> list[dict]:
    return tools if name != "everything" or any(tool["name"] == "simulate-research-query" for tool in tools) else []


def exact(value: object) -> str:
    """JSON in which 1 and 1.0 differ, and the order of keys does not."""
    return json.dumps(value, sort_keys=True)


async def compare(report: Report, foreword: Foreword, name: str, connect: Callable, calls: list[Call]) -> None:
    # Both speak to the server in the same era, whatever the era of the one who asks Foreword.
    mode = MODES["modern"] if foreword.servers()[name]["protocol_version"] == "2026-07-28" else "legacy"
    for era in ("legacy", "modern"):
        direct_client = Client(connect(), mode=mode, read_timeout_seconds=40, cache=None)
        async with direct_client as direct, through(foreword, era) as client:
            for number, call in enumerate(calls):
                with report.case(f"passed on: {name}: {era}: {number + 1} {call.tool} {short(call.arguments)}"):
                    await answers_alike(direct, client, name, call)
            offered = {tool.name for tool in (await direct.list_tools()).tools}
    if name != "raw":
        with report.case(f"passed on: {name}: no tool was left out"):
            same(sorted(offered - {call.tool for call in calls}), [])


async def answers_alike(direct: Client, client: Client, name: str, call: Call) -> None:
    if call.tool == "grown":
        await known(client, f"{name}__grown")
    for _ in range(call.times):
        call.prepare()
        wanted = await outcome(direct, call.tool, call.arguments)
        call.prepare()
        got = await outcome(client, f"{name}__{call.tool}", call.arguments)
        for part in wanted.keys() | got.keys():
            same(comparable(call.tool, got.get(part)), comparable(call.tool, wanted.get(part)), part)


async def known(client: Client, tool: str) -> None:
    for _ in range(100):
        if any(known.name == tool for known in (await client.list_tools()).tools):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{tool} never came")


async def outcome(client: Client, tool: str, arguments: dict) -> dict:
    """Result, or error of the protocol, and the progress on the way."""
    heard: list[tuple] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    try:
        result = await client.call_tool(tool, arguments, progress_callback=on_progress)
    except MCPError as error:
        return {"error": (error.code, error.message, error.data)}
    shown = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    # Each server signs its results.
    shown["_meta"] = {key: value for key, value in shown.get("_meta", {}).items() if not key.startswith("io.model")}
    return shown | {"progress": heard}


def comparable(tool: str, part: object) -> object:
    """A part of an outcome without what differs between two processes, or between two moments."""
    if tool == "get-env" and isinstance(part, list):
        return [sorted(block) for block in part]
    if tool == "get-resource-reference":
        return json.loads(timeless(json.dumps(opened(part))))
    return part


def timeless(text: str) -> str:
    return re.sub(r"created at [^\"\\]*", "created at …", text)


def opened(part: object) -> object:
    if isinstance(part, dict):
        return {key: base64.b64decode(value).decode() if key == "blob" else opened(value) for key, value in part.items()}
    return [opened(value) for value in part] if isinstance(part, list) else part


def short(arguments: dict) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    return text if len(text) < 50 else text[:47] + "..."


@asynccontextmanager
async def through(foreword: Foreword, era: str) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"X-Chat-Id": "c"}, timeout=40) as http_client:
        transport = streamable_http_client(f"{foreword.url}/mcp", http_client=http_client)
        # Without a cache: a list must be what the server says now.
        async with Client(transport, mode=MODES[era], read_timeout_seconds=40, cache=None) as client:
            yield client


@asynccontextmanager
async def through_stdio(foreword: Foreword, era: str) -> AsyncIterator[Client]:
    arguments = ["stdio", "--chat", "c", "--data", str(foreword.data)]
    parameters = StdioServerParameters(command=str(foreword.setting.binary), args=arguments, env=foreword.environment)
    async with Client(parameters, mode=MODES[era], read_timeout_seconds=40, cache=None) as client:
        yield client


async def cancellation(report: Report, foreword: Foreword, name: str, record: Path) -> None:
    for route in (through, through_stdio):
        for era in ("legacy", "modern"):
            with report.case(f"passed on: {name}: a call cancelled by {era} {route.__name__.split('_')[-1]} is cancelled there"):
                async with route(foreword, era) as client:
                    await known(client, f"{name}__wait")
                    await cancelled(client, f"{name}__wait", record)
                    # The session goes on. It also ends what is under way: a client that is closed while something arrives may fail.
                    result = await client.call_tool(f"{name}__wait", {"seconds": 0})
                    expect(not result.is_error, str(result))


async def cancelled(client: Client, tool: str, record: Path) -> None:
    before = {event: len(records(record, event)) for event in ("waiting", "cancelled")}
    call = asyncio.create_task(client.call_tool(tool, {"seconds": 30}))
    await asyncio.to_thread(until, lambda: len(records(record, "waiting")) > before["waiting"], "the peer works")
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    await asyncio.to_thread(until, lambda: len(records(record, "cancelled")) > before["cancelled"], "the peer is told", 5)


def on_the_wire(report: Report, foreword: Foreword, record: Path) -> None:
    for era in ("legacy", "modern"):
        with report.case(f"passed on: {era}: what a result holds comes byte for byte"):
            result = foreword.caller(era).call("raw__everything")
            expect('"big": 9007199254740993' in exact(result), exact(result.get("structuredContent")))
            same(list(result["structuredContent"]), ["zebra", "apple", "big"], "the order of keys")
            expect("\u202e" in result["content"][0]["text"], "a text of a result was cleaned")
            same(result["_meta"].get("example.com/trace"), "t-1")
        with report.case(f"passed on: {era}: an error of the protocol keeps code, message and data"):
            error = refused(foreword.caller(era), "raw__refuse")
            same(error["message"], "not on a Tuesday")
            same((error["code"], error.get("data")), (-32042, {"weekday": "Tuesday", "again": [1, 2.5, None]}))
        with report.case(f"passed on: {era}: progress of a raw server comes with the caller's token"):
            caller = foreword.caller(era)
            same(words(caller.call("raw__wait", {"seconds": 0.5}, meta={"progressToken": "mine"})), "waited to the end")
            steps = [message["params"] for message in caller.heard if message["method"] == "notifications/progress"]
            same([(step["progressToken"], step["progress"]) for step in steps], [("mine", n) for n in range(1, 6)])
    with report.case("passed on: `notifications/cancelled` ends the call of its chat, not another with the same number"):
        callers = {chat: foreword.caller(chat=chat) for chat in ("mine", "theirs")}
        waiting, told = len(records(record, "waiting")), len(records(record, "cancelled"))
        calls = {chat: Background(caller.call, "raw__wait", {"seconds": 3}) for chat, caller in callers.items()}
        until(lambda: len(records(record, "waiting")) == waiting + 2, "both wait at the peer")
        foreword.caller(chat="mine").post("notifications/cancelled", {"requestId": 1}).close()
        until(lambda: len(records(record, "cancelled")) > told, "one is cancelled there", 2)
        same(words(calls["theirs"].wait()), "waited to the end")
        same(len(records(record, "cancelled")), told + 1, "cancelled at the peer")
    for era in ("legacy", "modern"):
        with report.case(f"passed on: {era}: a caller that hangs up cancels its call at the peer"):
            told = len(records(record, "cancelled"))
            call = Background(foreword.caller(era).call, "raw__wait", {"seconds": 30}, 1)
            until(lambda call=call: not call.thread.is_alive(), "it hung up")
            until(lambda told=told: len(records(record, "cancelled")) > told, "cancelled there", 3)
    with report.case("passed on: over HTTP the older revisions are not promised news, the newest is"):
        promised = [
            foreword.caller(era).request(method)["capabilities"]["tools"].get("listChanged", False)
            for era, method in (("legacy", "initialize"), ("modern", "server/discover"))
        ]
        same(promised, [False, True])
    with report.case("passed on: progress comes over `foreword stdio` too, with a number for a token"):
        with foreword.stdio() as client:
            until(lambda: "raw__wait" in [tool["name"] for tool in client.listed("tools/list", "tools")], "its tools")
            same(words(client.call("raw__wait", {"seconds": 0.3}, meta={"progressToken": 5})), "waited to the end")
            steps = [message["params"] for message in client.heard if message.get("method") == "notifications/progress"]
            same([(step["progressToken"], step["progress"]) for step in steps], [(5, 1), (5, 2), (5, 3)])
    with report.case("passed on: an unknown tool of a known server is refused as any unknown tool is"):
        same(refused(foreword.caller(), "raw__nothing")["code"], refused(foreword.caller(), "nothing")["code"])


def refused(caller: Caller, tool: str) -> dict:
    try:
        result = caller.call(tool)
    except RpcError as error:
        return error.error
    raise AssertionError(f"it answered {result}")
