"""`POST /api/chat`: a message, an answer."""

import json

from harness import Report, expect, same, tell
from serving import Foreword, Response, Setting, behind, exchange, in_time, is_prompt
from upstream import CHUNKS

ANSWER = "".join(CHUNKS)
MESSAGE = "What is the weather in Köln?"


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, answers, troubles)


def say(foreword: Foreword, headers: dict | None = None, **fields) -> Response:
    return exchange(foreword, "/api/chat", {"message": MESSAGE} | fields, headers)


def events(response: Response) -> list[tuple[str, dict]]:
    same(response.headers["content-type"].split(";")[0], "text/event-stream")
    return [(name, json.loads(data)) for name, data in response.events()]


def text_of(data: dict) -> str:
    """What a `chunk` adds."""
    (text,) = [value for value in data.values() if isinstance(value, str)]
    return text


def answers(setting: Setting, report: Report) -> None:
    with behind(setting, settings={"chat": {"default_model": "gpt-5"}}) as (foreword, upstream):
        prompt = foreword.session()
        with report.case("small chat: a message and its answer"):
            response = say(foreword)
            same(response.status, 200, response.body)
            value = response.json()
            same(set(value), {"response", "model", "profile_id", "revision", "usage"})
            same((value["response"], value["model"], value["profile_id"]), (ANSWER, "gpt-5", "default"))
            same((value["revision"], value["usage"]["total_tokens"]), (prompt[1], 12))
            body = upstream.last.json()
            same((body["model"], len(body["messages"])), ("gpt-5", 2))
            is_prompt(body["messages"][0], prompt)
            same(body["messages"][1], {"role": "user", "content": MESSAGE})
        with report.case("small chat: it remembers nothing"):
            say(foreword, chat_id="chat-7")
            say(foreword, chat_id="chat-7")
            same(len(upstream.last.messages), 2)
        with report.case("small chat: a profile, a model, context and a chat of its own"):
            fields = {"profile_id": "developer", "chat_id": "chat-7", "additional_context": ["One.", "Two."]}
            value = say(foreword, model="other", **fields).json()
            same((value["profile_id"], value["model"]), ("developer", "other"))
            is_prompt(upstream.last.messages[0], foreword.composed(**fields))
        with report.case("small chat: the session's headers count"):
            headers = {"X-User-Email": "ada@example.org", "X-Profile-Id": "developer"}
            same(say(foreword, headers).json()["profile_id"], "developer")
            is_prompt(upstream.last.messages[0], foreword.session(headers))
        with report.case("small chat: an override is the prompt"):
            say(foreword, system_override=" Only this.\n")
            same(upstream.last.messages[0], {"role": "system", "content": " Only this.\n"})
        with report.case("small chat: as a stream: start, chunks, done"):
            told = events(say(foreword, stream=True))
            same([name for name, _ in told], ["start", *["chunk"] * (len(told) - 2), "done"])
            same("".join(text_of(data) for name, data in told if name == "chunk"), ANSWER)
            start = told[0][1]
            same((start["profile_id"], start["revision"]), ("default", prompt[1]))
        with report.case("small chat: chunks come as they are sent"):
            response = say(foreword, stream=True, model="slow")
            in_time([at for at, data in response.chunks if data.startswith(b"event: chunk")], upstream.last)


def troubles(setting: Setting, report: Report) -> None:
    chat = {"chat": {"default_model": "gpt-5"}, "chat.upstream": {"timeout": 1}}
    with behind(setting, settings=chat) as (foreword, upstream):
        with report.case("small chat: an upstream that breaks off, says nothing or is not HTTP ends in an error"):
            for model, status in {
                "breaks-off": 502,
                "no-answer": 502,
                "garbage": 502,
                "garbage-inside": 502,
                "stall": 504,
            }.items():
                response = say(foreword, model=model)
                same(response.status, status, f"{model}: {response.body[:200]}")
                told = say(foreword, model=model, stream=True)
                if told.status == 200:
                    names = [name for name, _ in events(told)]
                    same((names[-1], "done" in names), ("error", False), model)
                else:
                    same(told.status, status, model)
        with report.case("small chat: the upstream's refusal is told"):
            response = say(foreword, model="rate-limited")
            same(response.status, 429, response.body)
            expect(b"slow down" in response.body, response.body)
        with report.case("small chat: unknown profiles, broken bodies and missing messages are refused"):
            same((say(foreword, profile_id="nobody").status, say(foreword, message=None).status), (404, 422))
            same(exchange(foreword, "/api/chat", b"{").status, 400)
    with behind(setting) as (foreword, upstream):
        with report.case("small chat: without a model it is 422, which says what to set"):
            response = say(foreword)
            same(response.status, 422)
            expect(b"default_model" in response.body, response.body)
            same(upstream.count, 0)
            same(say(foreword, model="gpt-5").json()["response"], ANSWER)
    with Foreword(setting, settings={"chat": {"default_model": "gpt-5"}}) as foreword:
        with report.case("small chat: without an upstream it is 501"):
            same(say(foreword).status, 501)
