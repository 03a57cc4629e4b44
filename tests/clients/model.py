"""A model for tests of whole clients: it speaks three APIs, notes what it is told, and reads its guide again when it is asked to.

The APIs are OpenAI's chat completions and responses, and Anthropic's messages. The HTTP below is that of `upstream.py`.

A conversation that holds `AGAIN` is answered by a call of the tool `view` with the path of the guide, as a model does that lost
track; once that was called, and for any other request, the answer is `ANSWER`.
"""

import itertools
import json
import re
from dataclasses import dataclass, replace

import upstream

AGAIN = "read your guide again"
ANSWER = "That is all."
GUIDE = "/home/assistant/README.md"


class Model(upstream.Upstream):
    """The server, in a thread of its own."""

    def __init__(self) -> None:
        super().__init__(Answer)

    def asked(self, since: int = 0) -> list[dict]:
        """The bodies of all requests for an answer that came after `since` others."""
        with self.changed:
            received = self.received[since:]
        return [request.json() for request in received if request.method == "POST" and kind(request)]


def kind(request: upstream.Received) -> str:
    """Which API a request is for, by the end of its path; empty for anything else, such as a count of tokens."""
    ends = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
    return next((ends[end] for end in ends if request.path.split("?")[0].endswith(end)), "")


@dataclass(frozen=True)
class Call:
    """A call of a tool, under the name and in the namespace that the client gave it."""

    name: str
    arguments: dict
    namespace: str = ""


def find_view(tools: list[dict]) -> Call | None:
    for tool in tools:
        if tool.get("type") == "namespace" and (found := find_view(tool["tools"])):
            return replace(found, namespace=tool["name"])
        name = tool.get("function", tool).get("name", "")
        if name == "view" or name.endswith(("_view", "-view")):
            return Call(name, {"path": GUIDE})
    return None


def find_search(body: dict) -> Call | None:
    """Claude Code names some tools only, and has a tool with which the model loads them."""
    name = re.search(r"mcp__[a-z]+__view", json.dumps(body))
    offered = any(tool.get("name") == "ToolSearch" for tool in body.get("tools") or [])
    return Call("ToolSearch", {"query": f"select:{name[0]}"}) if name and offered else None


def called(conversation: list[dict]) -> set[str]:
    """The names of the tools that were called, whatever the API."""
    calls = [item for item in conversation if item.get("type") == "function_call"]
    calls += [call["function"] for message in conversation for call in message.get("tool_calls") or []]
    blocks = [message["content"] for message in conversation if isinstance(message.get("content"), list)]
    calls += [block for block in itertools.chain(*blocks) if block.get("type") == "tool_use"]
    return {call["name"] for call in calls}


class Answer(upstream.Answer):
    async def write(self) -> None:
        api = kind(self.request)
        self.anthropic = api == "messages"
        if self.request.method == "GET" and self.request.path.split("?")[0].endswith("/models"):
            return await self.plain("200 OK", upstream.LIST)
        if self.request.path.split("?")[0].endswith("/count_tokens"):
            return await self.plain("200 OK", b'{"input_tokens": 7}')
        if self.request.method != "POST" or not api:
            return await self.plain("404 Not Found", b'{"error": {"message": "no such path", "code": "wrong_path"}}')
        await getattr(self, api)(self.wanted())

    def wanted(self) -> Call | None:
        """The tool that is to be called."""
        conversation = self.body.get("messages") or self.body.get("input") or []
        if AGAIN not in json.dumps(conversation):
            return None
        call = find_view(self.body.get("tools") or []) or find_search(self.body)
        return None if call is None or call.name in called(conversation) else call

    async def chat(self, call: Call | None) -> None:
        message: dict = {"role": "assistant", "content": None if call else ANSWER}
        if call:
            function = {"name": call.name, "arguments": json.dumps(call.arguments)}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        reason = "tool_calls" if call else "stop"
        if not self.streams:
            value = self.completion("chat.completion", {"message": message, "finish_reason": reason})
            return await self.whole(value | {"usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}})
        if call:
            message["tool_calls"] = [{"index": 0} | message["tool_calls"][0]]
        await self.begin()
        await self.event(self.delta(message))
        await self.event(self.delta({}, reason))
        await self.event("[DONE]")
        await self.send(upstream.END)

    async def responses(self, call: Call | None) -> None:
        if call:
            item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed"}
            item |= {"name": call.name, "arguments": json.dumps(call.arguments)}
            item |= {"namespace": call.namespace} if call.namespace else {}
        else:
            text = {"type": "output_text", "text": ANSWER, "annotations": []}
            item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
        usage = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        value = {"id": "resp_1", "object": "response", "created_at": 1_700_000_000, "model": self.model}
        value |= {"status": "completed", "output": [item], "usage": usage, "tools": [], "tool_choice": "auto"}
        value |= {"parallel_tool_calls": True}
        if not self.streams:
            return await self.whole(value)
        await self.begin()
        started = value | {"status": "in_progress", "output": []}
        for number, event in enumerate(
            [
                {"type": "response.created", "response": started},
                {"type": "response.output_item.added", "output_index": 0, "item": item},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": value},
            ]
        ):
            text = json.dumps(event | {"sequence_number": number})
            await self.chunk(f"event: {event['type']}\ndata: {text}\n\n".encode())
        await self.send(upstream.END)

    async def messages(self, call: Call | None) -> None:
        if call:
            block = {"type": "tool_use", "id": f"toolu_{call.name}", "name": call.name, "input": call.arguments}
        else:
            block = {"type": "text", "text": ANSWER}
        blocks, reason = [block], "tool_use" if call else "end_turn"
        if not self.streams:
            return await self.whole(self.message(blocks, reason))
        await self.begin()
        await self.event({"type": "message_start", "message": self.message([], None)})
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                empty, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                given = json.dumps(block["input"])
                empty, delta = block | {"input": {}}, {"type": "input_json_delta", "partial_json": given}
            await self.event({"type": "content_block_start", "index": index, "content_block": empty})
            await self.event({"type": "content_block_delta", "index": index, "delta": delta})
            await self.event({"type": "content_block_stop", "index": index})
        ended = {"stop_reason": reason, "stop_sequence": None}
        await self.event({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}})
        await self.event({"type": "message_stop"})
        await self.send(upstream.END)
