"""OpenAI's own package as the client: conversations, profiles, what a request adds to its prompt, and errors."""

import base64

import openai
from harness import Report, expect, same, tell
from server import marked
from serving import ASK, CLIENT_KEY, Foreword, Setting, behind, is_prompt
from upstream import CHUNKS, Upstream

ANSWER = "".join(CHUNKS)
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather “there”.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
PICTURE = "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 40).decode()
# None of these may reach the upstream.
OURS = {"profile_id", "system_override", "additional_context", "variables", "chat_id", "user_email"}


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, conversations, errors)


def prompts(setting: Setting, report: Report) -> None:
    tell(setting, report, profiles, additions, sent_back, with_workspace, as_developer)


def conversations(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        client = foreword.openai()
        prompt = foreword.session()
        with report.case("openai: a conversation with a tool, and its history in the second turn"):
            history: list[dict] = [dict(ASK)]
            first = client.chat.completions.create(model="gpt-5", messages=history, tools=[TOOL], temperature=0.25)
            call = first.choices[0].message.tool_calls[0]
            same((call.function.name, call.function.arguments), ("weather", '{"city": "Köln"}'))
            body = upstream.last.json()
            same((body["model"], body["tools"], body["temperature"]), ("gpt-5", [TOOL], 0.25))
            is_prompt(body["messages"][0], prompt)
            same(body["messages"][1:], history)
            history.append(first.choices[0].message.model_dump(exclude_none=True))
            history.append({"role": "tool", "tool_call_id": call.id, "content": '{"degrees": 1.50}'})
            second = client.chat.completions.create(model="gpt-5", messages=history, tools=[TOOL])
            same(second.choices[0].message.content, ANSWER)
            same(second.usage.total_tokens, 12)
            is_prompt(upstream.last.messages[0], prompt)
            same(upstream.last.messages[1:], history)
        with report.case("openai: a tool's call comes in parts, as a stream"):
            stream = client.chat.completions.create(model="gpt-5", messages=[ASK], tools=[TOOL], stream=True)
            calls = [call for chunk in stream for call in chunk.choices[0].delta.tool_calls or []]
            same(calls[0].function.name, "weather")
            same("".join(call.function.arguments or "" for call in calls), '{"city": "Köln"}')
        with report.case("openai: a picture in a message"):
            shown = {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}
            asked = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, shown]}
            client.chat.completions.create(model="gpt-5", messages=[asked])
            same(upstream.last.messages[1:], [asked])
        with report.case("openai: a stream, with its usage"):
            options = {"include_usage": True}
            stream = list(
                client.chat.completions.create(model="m", messages=[ASK], stream=True, stream_options=options)
            )
            same([chunk.choices[0].delta.content for chunk in stream if chunk.choices][1:-1], CHUNKS)
            same(stream[-1].usage.total_tokens, 12)
            same(upstream.last.json()["stream_options"], options)
            is_prompt(upstream.last.messages[0], prompt)
        with report.case("openai: the package's own helper for streams"):
            with client.chat.completions.stream(model="m", messages=[ASK]) as stream:
                same(stream.get_final_completion().choices[0].message.content, ANSWER)
        with report.case("openai: the caller's own system messages stay where they are, after the prompt"):
            own = [
                {"role": "system", "content": "Mine,  first. {company}"},
                dict(ASK),
                {"role": "system", "content": "Mine, later.\n"},
                {"role": "developer", "content": [{"type": "text", "text": "In parts."}]},
                dict(ASK),
            ]
            client.chat.completions.create(model="m", messages=own)
            is_prompt(upstream.last.messages[0], prompt)
            same(upstream.last.messages[1:], own)
        with report.case("openai: the answer says which profile and revision it had"):
            for stream in (False, True):
                create = client.chat.completions.with_streaming_response.create
                with create(model="m", messages=[ASK], stream=stream) as raw:
                    same((raw.headers["x-profile-id"], raw.headers["x-prompt-revision"]), ("default", prompt[1]))
                    raw.read()
        with report.case("openai: the upstream gets its own key, and not the client's"):
            same(upstream.last.headers["authorization"], "Bearer key-of-the-upstream")
            expect(CLIENT_KEY.encode() not in upstream.last.head, upstream.last.head)


def profiles(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        client = foreword.openai()

        def asked(model: str = "gpt-5", **options) -> tuple[str, dict]:
            """The profile that the answer names, and what the upstream got."""
            raw = client.chat.completions.with_raw_response.create(model=model, messages=[ASK], **options)
            return raw.headers["x-profile-id"], upstream.last.json()

        def of_profile(profile: str, got: tuple[str, dict], model: str = "gpt-5") -> None:
            same(got[0], profile)
            same(got[1]["model"], model)
            expect(not OURS & set(got[1]), f"ours are left: {set(got[1])}")
            is_prompt(got[1]["messages"][0], foreword.session({"X-Profile-Id": profile}))

        with report.case("prompts: without a profile it is the library's default"):
            of_profile("default", asked())
        with report.case("prompts: a profile by a field of the body"):
            of_profile("developer", asked(extra_body={"profile_id": "developer"}))
        with report.case("prompts: a profile by header"):
            of_profile("developer", asked(extra_headers={"X-Profile-ID": "developer"}))
        with report.case("prompts: a profile by query"):
            of_profile("developer", asked(extra_query={"profile_id": "developer"}))
        with report.case("prompts: a profile by the model's suffix"):
            of_profile("developer", asked("gpt-5@developer"))
        with report.case("prompts: a model's own `@` stays"):
            of_profile("default", asked("claude@eu"), "claude@eu")
            of_profile("default", asked("@developer"), "@developer")
            of_profile("default", asked("gpt-5@"), "gpt-5@")
            of_profile("default", asked("gpt-5@Developer"), "gpt-5@Developer")
            of_profile("developer", asked("claude@eu@developer"), "claude@eu")
            of_profile("default", asked("claude@developer@eu"), "claude@developer@eu")
        with report.case("prompts: an explicit profile wins over the suffix"):
            got = asked("gpt-5@developer", extra_body={"profile_id": "analyst"})
            same(got[0], "analyst")
            is_prompt(got[1]["messages"][0], foreword.session({"X-Profile-Id": "analyst"}))
        with report.case("prompts: a profile of the library's next edit is known at once"):
            foreword.edit(
                "  - id: analyst\n", "  - id: reviewer\n    name: Reviewer\n    sections: []\n  - id: analyst\n"
            )
            of_profile("reviewer", asked("gpt-5@reviewer"))


def additions(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        client = foreword.openai()

        def asked(headers: dict | None = None, **fields) -> dict:
            """What the upstream got, whose prompt must be the composition of the same fields."""
            raw = client.chat.completions.with_raw_response.create(
                model="gpt-5", messages=[ASK], extra_body=fields, extra_headers=headers
            )
            body = upstream.last.json()
            same(set(body), {"model", "messages"}, "fields at the upstream")
            same(body["messages"][1:], [ASK])
            expect(not any(name.startswith("x-") for name in upstream.last.headers), upstream.last.head)
            revision = (
                foreword.session(headers)[1] if headers else foreword.composed(**({"chat_id": "default"} | fields))[1]
            )
            same(raw.headers["x-prompt-revision"], revision, "the revision that the answer names")
            return body["messages"][0]

        memory = ["User likes {company} and tea.", "  Retrieved:\n- 日本語  "]
        session = {"chat_id": "chat-7", "user_email": "ada@example.org"}
        for name, fields in {
            "`additional_context` as a string": {"additional_context": memory[0]},
            "`additional_context` as a list": {"additional_context": memory},
            "`variables`": {"variables": {"company": "Acme {chat_id} & Co"}},
            "`chat_id` and `user_email` in the body": session,
            "all at once": session
            | {"profile_id": "developer", "additional_context": memory, "variables": {"company": "A"}},
        }.items():
            with report.case(f"prompts: {name}"):
                message = asked(**fields)
                is_prompt(message, foreword.composed(**({"chat_id": "default"} | fields)))
        with report.case("prompts: they do something"):
            content = asked(**session, additional_context=memory, variables={"company": "Acme"})["content"]
            for wanted in ("work at Acme.", "in chat chat-7 with ada@example.org", memory[0], "- 日本語"):
                expect(wanted in content, f"{wanted!r} is not in {content!r}")
        with report.case("prompts: an override is the prompt, byte for byte, and has no mark"):
            override = "  Mine {company}\r\nalone\n\n"
            message = asked(system_override=override)
            same(message, {"role": "system", "content": override})
        with report.case("prompts: a blank override is none"):
            is_prompt(asked(system_override=" \n"), foreword.session())
        with report.case("prompts: a session by headers is that of `GET /system-prompt`"):
            for headers in (
                {"X-Chat-Id": "Chat-8", "X-User-Email": "bob@example.org"},
                {
                    "X-OpenWebUI-Chat-Id": "chat-9",
                    "X-OpenWebUI-User-Email": "bob@example.org",
                    "X-Profile-Id": "developer",
                },
            ):
                is_prompt(asked(headers), foreword.session(headers))
        with report.case("prompts: two chats do not see each other's"):
            for chat in ("one", "two", "one"):
                expect(f"in chat {chat} with" in asked({"X-Chat-Id": chat})["content"], chat)
        with report.case("prompts: fields that hold something else are refused, and the upstream is not asked"):
            before = upstream.count
            for wrong in (
                {"profile_id": 3},
                {"additional_context": [1]},
                {"variables": {"company": 1}},
                {"chat_id": "a/b"},
                {"user_email": "nobody"},
                {"system_override": {}},
            ):
                try:
                    client.chat.completions.create(model="gpt-5", messages=[ASK], extra_body=wrong)
                except openai.APIStatusError as error:
                    expect(error.status_code in (400, 422), f"{wrong}: {error}")
                    expect(next(iter(wrong)) in error.message or error.code, f"{wrong}: {error}")
                else:
                    raise AssertionError(f"{wrong} was let through")
            same(upstream.count, before, "requests at the upstream")
    with behind(setting, settings={"session": {"mode": "strict"}}) as (foreword, upstream):
        with report.case("prompts: a chat endpoint needs no chat id, in `strict` mode neither"):
            foreword.openai().chat.completions.create(model="gpt-5", messages=[ASK])
            expect("Be kind" in upstream.last.messages[0]["content"], upstream.last.messages[0])


def sent_back(setting: Setting, report: Report) -> None:
    """Clients that show their history keep the prompt in it."""
    with behind(setting) as (foreword, upstream):
        client = foreword.openai()

        def asked(messages: list[dict], **fields) -> list[dict]:
            client.chat.completions.create(model="gpt-5", messages=messages, extra_body=fields)
            return upstream.last.messages

        own = {"role": "system", "content": "Mine."}
        prompt = foreword.session()
        with report.case("prompts: a conversation that is sent back as a whole has the prompt once"):
            first = asked([own, ASK])
            for _ in range(3):
                again = asked([*first, {"role": "assistant", "content": ANSWER}, ASK])
                is_prompt(again[0], prompt)
                same(again[1:], [own, ASK, {"role": "assistant", "content": ANSWER}, ASK])
        with report.case("prompts: in parts, it is known again too"):
            parts = {"role": "system", "content": [{"type": "text", "text": first[0]["content"]}]}
            again = asked([parts, own, ASK])
            is_prompt(again[0], prompt)
            same(again[1:], [own, ASK])
        with report.case("prompts: with another role, it is known again too"):
            again = asked([first[0] | {"role": "developer"}, own, ASK])
            is_prompt(again[0], prompt)
            same(again[1:], [own, ASK])
        with report.case("prompts: after an edit of the profile, the old prompt is replaced"):
            foreword.edit("Be kind to everybody.", "Be brief.")
            again = asked(first)
            expect("Be brief." in again[0]["content"] and "Be kind" not in str(again), again)
            is_prompt(again[0], foreword.session())
            same(again[1:], [own, ASK])
        with report.case("prompts: with another profile, the old prompt is replaced"):
            again = asked(first, profile_id="developer")
            is_prompt(again[0], foreword.session({"X-Profile-Id": "developer"}))
            same(again[1:], [own, ASK])
        with report.case("prompts: an override that is sent back is there once"):
            override = "Only this.\n"
            first = asked([own, ASK], system_override=override)
            same(asked(first, system_override=override), first)
        with report.case("prompts: what only looks like the mark is the caller's"):
            for content in (
                "Mine.\n<!-- foreword -->",
                "Mine. <!-- foreword 0123456789abcdef -->",
                "<!-- foreword 0123456789abcdef -->\nMine.",
                "Mine.\n<!-- foreword 0123456789abcdef --> and more",
            ):
                mine = {"role": "system", "content": content}
                same(asked([mine, ASK])[1:], [mine, ASK], content)
            mine = {"role": "user", "content": marked(("I", "0123456789abcdef"))}
            same(asked([mine])[1:], [mine])


def with_workspace(setting: Setting, report: Report) -> None:
    for include in (False, True):
        with (
            Upstream() as upstream,
            Foreword(setting, upstream, settings={"chat": {"include_workspace": include}}) as foreword,
        ):
            foreword.edit("workspace_guide:\n  enabled: false", "workspace_guide:\n  enabled: true")
            client = foreword.openai()
            with report.case(
                f"prompts: the guide where `chat.include_workspace` is {include}, and only with a chat id"
            ):
                client.chat.completions.create(model="gpt-5", messages=[ASK], extra_headers={"X-Chat-Id": "chat-7"})
                content = upstream.last.messages[0]["content"]
                same("GUIDE of chat chat-7" in content, include)
                if include:
                    is_prompt(upstream.last.messages[0], foreword.session({"X-Chat-Id": "chat-7"}))
                client.chat.completions.create(model="gpt-5", messages=[ASK])
                expect("GUIDE" not in upstream.last.messages[0]["content"], upstream.last.messages[0])
            with report.case(f"prompts: what a request adds stands last ({include})"):
                fields = {"chat_id": "chat-7", "additional_context": "Remember the milk."}
                client.chat.completions.create(model="gpt-5", messages=[ASK], extra_body=fields)
                lines = upstream.last.messages[0]["content"].split("\n")
                same(lines[-2] or lines[-3], "Remember the milk.")


def as_developer(setting: Setting, report: Report) -> None:
    with behind(setting, settings={"chat": {"system_role": "developer"}}) as (foreword, upstream):
        client = foreword.openai()
        with report.case("prompts: with `chat.system_role`, the prompt is a developer's message"):
            client.chat.completions.create(model="gpt-5", messages=[{"role": "system", "content": "Mine."}, ASK])
            is_prompt(upstream.last.messages[0], foreword.session(), "developer")
            same(upstream.last.messages[1:], [{"role": "system", "content": "Mine."}, ASK])
        with report.case("prompts: sent back, it is there once"):
            first = upstream.last.messages
            client.chat.completions.create(model="gpt-5", messages=first)
            same(upstream.last.messages, first)


def errors(setting: Setting, report: Report) -> None:
    def raised(client: openai.OpenAI, kind: type, status: int, **options) -> openai.APIStatusError:
        try:
            client.chat.completions.create(**({"model": "gpt-5", "messages": [ASK]} | options))
        except openai.APIStatusError as error:
            same((type(error), error.status_code), (kind, status), error.message)
            return error
        raise AssertionError("no error")

    def ours(error: openai.APIStatusError) -> None:
        same(set(error.response.json()["error"]), {"message", "type", "param", "code"}, "fields of the error")
        expect(error.type and error.code, error.response.text)

    with behind(setting) as (foreword, upstream):
        client = foreword.openai()
        with report.case("openai: an unknown profile is a NotFoundError that names it and the known ones"):
            error = raised(client, openai.NotFoundError, 404, extra_body={"profile_id": "develper"})
            ours(error)
            same(error.code, "profile_not_found")
            expect("develper" in error.message and "developer" in error.message, error.message)
        with report.case("openai: an unknown profile by header is the same error"):
            same(
                raised(client, openai.NotFoundError, 404, extra_headers={"X-Profile-Id": "nobody"}).code,
                "profile_not_found",
            )
        with report.case("openai: an error before a stream is an error too"):
            ours(raised(client, openai.NotFoundError, 404, stream=True, extra_body={"profile_id": "nobody"}))
        with report.case("openai: what was refused did not reach the upstream"):
            same(upstream.count, 0)
        with report.case("openai: the upstream's errors are the package's, with the upstream's words"):
            error = raised(client, openai.RateLimitError, 429, model="rate-limited")
            same((error.code, error.body["message"]), ("rate_limit_exceeded", "slow down,  please"))
            same(error.response.headers["retry-after"], "7")
            error = raised(client, openai.InternalServerError, 500, model="error-500", stream=True)
            same(error.body["message"], "the model is upset")
    with Foreword(setting) as foreword:
        with report.case("openai: without an upstream it is 501, which says what to set"):
            error = raised(foreword.openai(), openai.InternalServerError, 501)
            ours(error)
            expect("chat.upstream.base_url" in error.message, error.message)
    with behind(setting, environment={"FOREWORD_API_KEY": "key-of-foreword"}) as (foreword, upstream):
        with report.case("openai: a wrong key is an AuthenticationError"):
            ours(raised(foreword.openai(), openai.AuthenticationError, 401))
            same(upstream.count, 0, "requests at the upstream")
        with report.case("openai: the right key is let in, and goes no further"):
            foreword.openai(api_key="key-of-foreword").chat.completions.create(model="gpt-5", messages=[ASK])
            expect(b"key-of-foreword" not in upstream.last.head, upstream.last.head)
