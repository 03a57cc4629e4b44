"""Anthropic's own package as the client: the prompt as the first blocks of `system`, and all else as it is."""

import base64

import anthropic
from harness import Report, expect, same, tell
from serving import ANTHROPIC_KEY, Foreword, Setting, behind, exchange
from upstream import CHUNKS, Upstream

ANSWER = "".join(CHUNKS)
QUESTION = {"role": "user", "content": "What is the weather in Köln?"}
TOOL = {
    "name": "weather",
    "description": "Tells it.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
EPHEMERAL = {"type": "ephemeral"}


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, conversations, systems, errors)


def ask(client: anthropic.Anthropic, messages: list[dict] | None = None, **fields):
    return client.messages.create(
        **({"model": "claude", "max_tokens": 50, "messages": messages or [QUESTION]} | fields)
    )


def prompt_blocks(foreword: Foreword, upstream: Upstream, own: list[dict], cached: dict | None = EPHEMERAL, **fields) -> list[dict]:
    """The blocks of the prompt, which must stand before the caller's `own`."""
    system = upstream.last.json()["system"]
    blocks = system[: len(system) - len(own)]
    same(system[len(blocks) :], own, "the caller's blocks")
    composition = foreword.ok("/api/prompts/compose", body={"chat_id": "default"} | fields).json()
    text, revision = composition["system_prompt"], composition["revision"]
    got = "".join(block["text"] for block in blocks)
    same(got.removesuffix(f"<!-- foreword {revision} -->").rstrip("\n"), text.rstrip("\n"), "the prompt")
    same({block["type"] for block in blocks}, {"text"})
    if 0 < composition["stable_prefix"] < len(text.encode()):
        same(len(blocks), 2, "blocks")
        static = text.encode()[: composition["stable_prefix"]].decode()
        same(blocks[0]["text"].rstrip(), static.rstrip(), "the static block")
    same([block.get("cache_control") for block in blocks], [cached, *[None] * (len(blocks) - 1)])
    return blocks


def conversations(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        client = foreword.anthropic()
        with report.case("anthropic: a conversation with a tool, and its history in the second turn"):
            history: list[dict] = [dict(QUESTION)]
            first = ask(client, history, tools=[TOOL], metadata={"user_id": "ada"})
            same((first.stop_reason, first.content[0].input), ("tool_use", {"city": "Köln"}))
            body = upstream.last.json()
            same((body["messages"], body["tools"], body["metadata"]), (history, [TOOL], {"user_id": "ada"}))
            prompt_blocks(foreword, upstream, [])
            history.append(
                {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]}
            )
            result = {"type": "tool_result", "tool_use_id": first.content[0].id, "content": "18 °C"}
            history.append({"role": "user", "content": [result]})
            same(ask(client, history, tools=[TOOL]).content[0].text, ANSWER)
            same(upstream.last.messages, history)
            prompt_blocks(foreword, upstream, [])
        with report.case("anthropic: a picture in a message"):
            data = base64.b64encode(bytes(range(256)) * 20).decode()
            picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
            asked = {"role": "user", "content": [picture, {"type": "text", "text": "What is it?"}]}
            ask(client, [asked])
            same(upstream.last.messages, [asked])
        with report.case("anthropic: a stream, by the package's own helper"):
            with client.messages.stream(model="claude", max_tokens=50, messages=[QUESTION]) as stream:
                same(list(stream.text_stream), CHUNKS)
            prompt_blocks(foreword, upstream, [])
        with report.case("anthropic: a tool's call comes in parts, as a stream"):
            with client.messages.stream(model="claude", max_tokens=50, messages=[QUESTION], tools=[TOOL]) as stream:
                same(stream.get_final_message().content[0].input, {"city": "Köln"})
        with report.case("anthropic: the upstream gets its own key and a version"):
            got = upstream.last.headers
            same((upstream.last.path.split("?")[0], got["x-api-key"]), ("/v1/messages", ANTHROPIC_KEY))
            expect(got["anthropic-version"] and "key-of-nobody" not in str(got), got)
        with report.case("anthropic: a client that names no version gets one named"):
            body = {"model": "claude", "max_tokens": 5, "messages": [QUESTION]}
            same(exchange(foreword, "/v1/messages", body).status, 200)
            expect(upstream.last.headers["anthropic-version"], upstream.last.head)
        with report.case("anthropic: profile, context and session are taken from the body and the headers"):
            fields = {"profile_id": "developer", "additional_context": ["Remember."], "user_email": "ada@example.org"}
            raw = client.messages.with_raw_response.create(
                model="claude",
                max_tokens=5,
                messages=[QUESTION],
                extra_body=fields,
                extra_headers={"X-Chat-Id": "chat-7"},
            )
            same(set(upstream.last.json()), {"model", "max_tokens", "messages", "system"})
            prompt_blocks(foreword, upstream, [], chat_id="chat-7", **fields)
            same((raw.headers["x-profile-id"], bool(raw.headers["x-prompt-revision"])), ("developer", True))
        with report.case("anthropic: a profile by the model's suffix"):
            ask(client, model="claude@developer")
            same(upstream.last.json()["model"], "claude")
            prompt_blocks(foreword, upstream, [], profile_id="developer")


def systems(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        client = foreword.anthropic()
        plain = {"type": "text", "text": "Mine,  as a block."}
        with report.case("anthropic: a `system` that is a string becomes a block after the prompt"):
            ask(client, system="Mine,  as a string. {company}")
            prompt_blocks(foreword, upstream, [{"type": "text", "text": "Mine,  as a string. {company}"}])
        with report.case("anthropic: blocks stay as they are, after the prompt"):
            ask(client, system=[plain, plain | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}])
            own = [plain, plain | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}]
            # What is kept for less must not come before it.
            prompt_blocks(foreword, upstream, own, {"type": "ephemeral", "ttl": "1h"})
        marked = {"cache_control": EPHEMERAL}
        asked = {"role": "user", "content": [{"type": "text", "text": "Hello"} | marked]}
        fields = {"tools": [TOOL | marked], "messages": [asked]}
        for name, own, cached in (
            ("three as", {"system": [plain | marked]}, EPHEMERAL),
            ("four as", {"system": [plain | marked] * 2}, None),
            ("three and one of the request as a whole as", {"system": [plain | marked]} | marked, None),
        ):
            with report.case(f"anthropic: with {name} the caller's marks there are never more than four"):
                client.messages.create(model="claude", max_tokens=5, **(fields | own))
                prompt_blocks(foreword, upstream, own["system"], cached)
                same(upstream.last.body.count(b'"cache_control"'), 4)
                same((upstream.last.json()["tools"], upstream.last.messages), (fields["tools"], fields["messages"]))
        with report.case("anthropic: sent back as a whole, the prompt is there once"):
            ask(client, system=[plain])
            first = upstream.last.json()["system"]
            ask(client, system=first)
            same(upstream.last.json()["system"], first)


def errors(setting: Setting, report: Report) -> None:
    def raised(client: anthropic.Anthropic, status: int, **fields) -> anthropic.APIStatusError:
        try:
            ask(client, **fields)
        except anthropic.APIStatusError as error:
            same(error.status_code, status, error.message)
            return error
        raise AssertionError("no error")

    with behind(setting, settings={"chat.upstream": {"timeout": 1}}) as (foreword, upstream):
        client = foreword.anthropic()
        with report.case("anthropic: an unknown profile is a NotFoundError"):
            error = raised(client, 404, extra_body={"profile_id": "nobody"})
            expect(isinstance(error, anthropic.NotFoundError) and "nobody" in error.message, error)
            same(upstream.count, 0)
        with report.case("anthropic: the upstream's errors keep status, words and `Retry-After`"):
            error = raised(client, 429, model="rate-limited")
            same((type(error), error.response.headers["retry-after"]), (anthropic.RateLimitError, "7"))
            expect("slow down,  please" in error.response.text, error.response.text)
        with report.case("anthropic: an upstream that says nothing is 504, one that breaks off 502"):
            raised(client, 504, model="stall")
            raised(client, 502, model="no-answer")
        with report.case("anthropic: a stream that breaks off is an error of the package, after what came"):
            got = []
            try:
                for event in ask(client, model="breaks-off", stream=True):
                    got.append(event.delta.text)
            except anthropic.APIError as error:
                expect(not isinstance(error, anthropic.APIConnectionError), f"the connection was cut: {error!r}")
            else:
                raise AssertionError("it ended as if it were whole")
            same(got, CHUNKS[:2])
    with Foreword(setting, settings={"chat.upstream": {"base_url": "http://127.0.0.1:1/v1"}}) as foreword:
        with report.case("anthropic: without `chat.anthropic` it is 501, which says what to set"):
            expect("chat.anthropic" in raised(foreword.anthropic(), 501).response.text, "it does not say what to set")
