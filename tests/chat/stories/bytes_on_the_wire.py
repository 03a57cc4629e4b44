"""What is not Foreword's to change arrives as it was sent, and what is not for the upstream stays here."""

import json

from harness import Report, expect, same, tell
from serving import ANTHROPIC_KEY, ASK, UPSTREAM_KEY, Foreword, Setting, Wire, behind, chat, exchange, is_prompt
from upstream import ERROR_500, ERROR_PAGE, GARBAGE_INSIDE, RATE_LIMITED, Received, Upstream

PATH = "/v1/chat/completions"
# What a JSON library would write in another way: long numbers, escapes, white space, keys that it knows nothing of.
ODD_BEFORE = rb"""{ "temperature" : 1.0E+00,
	"huge":1e400 ,"long": 12345678901234567890.123456789012345678, "zero": -0.0,
  "one way": "\u00e9\/\ud83e\udd80", "another": "%s/%s", "same": 1, "same": 2,
  "tools":[ ],"b":{"z":1,"a":[1 ,2,  3]}, "model" :  "gpt-5" , "messages" :""" % ("é".encode(), "🦀".encode())
ODD_MESSAGES = rb""" { "content" : "caf\u00e9  \u0000", "role":"user" , "n": 1.10 } ,
 {"role":"tool","content":null,"content":[]}"""
ODD_AFTER = rb""" , "stream":false,"seed" : 0123456789012345678901234567890,"end":null  }
""".replace(b"0123456789", b"1123456789", 1)
ALLOWED = {
    "Accept": "application/json",
    "OpenAI-Organization": "org-1",
    "OpenAI-Project": "project-1",
    "OpenAI-Beta": "assistants=v2",
    "Anthropic-Version": "2023-06-01",
    "Anthropic-Beta": "one,two",
    "Idempotency-Key": "once-only",
    "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}
KEPT_BACK = {
    "Cookie": "session=secret-cookie",
    "X-Chat-Id": "chat-7",
    "X-OpenWebUI-Chat-Id": "chat-7",
    "X-User-Email": "ada@example.org",
    "X-OpenWebUI-User-Name": "Ada",
    "X-Profile-Id": "developer",
    "X-Forwarded-For": "10.1.2.3",
    "X-Stainless-Lang": "python",
    "Referer": "http://localhost/secret-page",
    "Proxy-Authorization": "Basic c2VjcmV0",
    "X-Own": "secret",
}
# What any HTTP client sends for itself.
OF_HTTP = {
    "host",
    "content-length",
    "content-type",
    "user-agent",
    "transfer-encoding",
    "connection",
    "authorization",
    "x-api-key",
}


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, bodies, ours_taken_out, answers, headers, authorization, sizes)


def inserted(sent: bytes, got: bytes, before: bytes, after: bytes) -> dict:
    """The message that stands before all others; every other byte must be as it was sent, but for white space around it."""
    after = after.lstrip()
    expect(got.startswith(before), f"before the messages: {got[: len(before)]!r}")
    expect(got.endswith(after), f"after the prompt: {got[-len(after) :]!r}")
    between = got[len(before) : len(got) - len(after)].decode().strip()
    expect(between.startswith("{") and between.endswith(","), f"{between!r} of {sent!r}")
    return json.loads(between[:-1])


def bodies(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        prompt = foreword.session()
        with report.case("bytes: a body arrives as it was sent, but for the prompt"):
            before, after = ODD_BEFORE + b" [", ODD_MESSAGES + b"]" + ODD_AFTER
            response = exchange(foreword, PATH, before + after)
            same(response.status, 200, response.body)
            is_prompt(inserted(before + after, upstream.last.body, before, after), prompt)
        with report.case("bytes: a prompt that is sent back is replaced, and nothing else"):
            got = upstream.last.body
            exchange(foreword, PATH, got)
            same(upstream.last.body, got)
        with report.case("bytes: of a model with a profile only the suffix goes"):
            body = (before + after).replace(b'"gpt-5"', rb'"gpt\u002d5@deve\u006coper"')
            exchange(foreword, PATH, body)
            own = upstream.last.body
            same(json.loads(own)["model"], "gpt-5")
            parts = body.split(rb'"gpt\u002d5@deve\u006coper"')
            expect(own.startswith(parts[0]) and own.endswith(after.lstrip()), own)
            is_prompt(json.loads(own)["messages"][0], foreword.session({"X-Profile-Id": "developer"}))
        with report.case("bytes: a body of Anthropic's shape arrives as it was sent, but for `system`"):
            parts = [
                ODD_BEFORE.removeprefix(b"{ "),
                ODD_MESSAGES.lstrip(),
                ODD_AFTER.rstrip().removesuffix(b"}").rstrip(),
            ]
            for system in (b"", b'"system" : "Mine,\\u0020own" ,'):
                body = b"{" + system + parts[0] + b"[" + parts[1] + b"]" + parts[2] + b"}"
                response = exchange(foreword, "/v1/messages", body)
                same(response.status, 200, response.body)
                got = upstream.last.body
                places = [got.find(part) for part in parts]
                expect(min(places) >= 0 and places == sorted(places), got)
                blocks = upstream.last.json()["system"]
                expect("cache_control" in blocks[0], f"a number that no double holds costs the mark: {blocks[0]}")
                same(blocks[-1]["text"] == "Mine, own", bool(system))
        with report.case("bytes: no messages at all make the prompt the only one"):
            response = exchange(foreword, PATH, b'{"model":"m","messages":[ ],"x":1e400}')
            same((response.status, len(upstream.last.messages)), (200, 1), response.body)
            expect(upstream.last.body.endswith(b'],"x":1e400}'), upstream.last.body)
            is_prompt(upstream.last.messages[0], prompt)
        with report.case("bytes: what is no JSON, or has no messages, is refused in OpenAI's shape"):
            count = upstream.count
            for body in (
                b"",
                b"{",
                b"[]",
                b'{"model":"m"}',
                b'{"model":"m","messages":{}}',
                b'{"messages":[]} x',
                b'{"a":"\xff"}',
            ):
                response = exchange(foreword, PATH, body)
                expect(response.status in (400, 422), f"{body!r}: {response.status}")
                expect(response.json()["error"]["message"], response.body)
            same(upstream.count, count, "requests at the upstream")
        with report.case("bytes: headers of a session that are no text, or break a line, are refused"):
            for name, value in {
                "X-User-Email": "\xff@example.org",
                "X-Chat-Id": "a%0Ab/",
                "X-Profile-Id": "\xff",
            }.items():
                response = chat(foreword, headers={name: value})
                expect(response.status in (400, 404), f"{name}: {response.status}")
                expect(response.json()["error"]["message"], response.body)
            same(upstream.count, count, "requests at the upstream")
        with report.case("bytes: another content type is refused, and another method"):
            same(exchange(foreword, PATH, b"{}", {"Content-Type": "text/plain"}).status, 415)
            same(exchange(foreword, PATH, b"", method="GET").status, 405)
    with Upstream() as upstream:
        for slash in ("", "/"):
            with Foreword(setting, settings={"chat.upstream": {"base_url": f"{upstream.url}/v1{slash}"}}) as foreword:
                with report.case(f'bytes: a base URL that ends with "{slash}", and no key for it'):
                    same(chat(foreword).status, 200)
                    same(upstream.last.path, PATH)
                    expect("authorization" not in upstream.last.headers, upstream.last.head)


def ours_taken_out(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        own = [
            rb'"profile_id" : "developer"',
            rb'"chat_id":"chat-7"',
            rb'"additional_context":["a","b"]',
            rb'"variables":{}',
        ]
        others = [rb'"model" : "m"', rb'"messages":[%s]', rb'"x":  1e400', rb'"y":{ "profile_id":"inner" }']
        message = json.dumps(ASK).encode()
        others[1] %= message
        orders = {
            "first": own + others,
            "last": others + own,
            "among the others": [part for pair in zip(own, others, strict=True) for part in pair],
            "with escapes in their names": [
                own[0].replace(b"_", rb"\u005f"),
                *others,
                own[1].replace(b"chat", rb"\u0063hat"),
            ],
        }
        for name, parts in orders.items():
            for comma in (b",", b" ,\n\t "):
                with report.case(
                    f"bytes: our fields {name} are taken out, and the others stay as they are ({comma!r})"
                ):
                    response = exchange(foreword, PATH, b"{ " + comma.join(parts) + b" }")
                    same(response.status, 200, response.body)
                    got = upstream.last.body
                    same(list(json.loads(got)), ["model", "messages", "x", "y"])
                    places = [got.find(part) for part in (others[0], message, others[2], others[3])]
                    expect(min(places) >= 0 and places == sorted(places), got)
                    same(response.headers["x-profile-id"], "developer")

        with report.case("bytes: one of ours that is there twice is refused, or taken out twice"):
            count = upstream.count
            response = exchange(foreword, PATH, b"{" + b",".join([own[0], *others, own[0]]) + b"}")
            expect(response.status == 400 or upstream.last.body.count(b"profile_id") == 1, response.body)
            expect(upstream.count == count or response.status == 200, "it was refused and passed on")


def answers(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        with report.case("bytes: an answer is what the upstream said"):
            for stream in (False, True):
                body = json.dumps({"model": "gpt-5", "messages": [ASK], "stream": stream}).encode()
                with Wire(upstream.url) as wire:
                    wire.post(PATH, body)
                    direct = wire.read()
                response = exchange(foreword, PATH, body)
                same(response.body, direct.body)
                same(response.headers["content-type"].split(";")[0], direct.headers["content-type"])
        with report.case("bytes: errors and nonsense too"):
            wanted = {
                "rate-limited": (429, RATE_LIMITED, "application/json"),
                "error-500": (500, ERROR_500, "application/json"),
                "error-page": (503, ERROR_PAGE, "text/html"),
                "garbage-inside": (200, GARBAGE_INSIDE, "application/json"),
            }
            for model, (status, body, kind) in wanted.items():
                for stream in (False, True):
                    response = chat(foreword, model, stream=stream)
                    same((response.status, response.body), (status, body), model)
                    if status != 200:
                        same(response.headers["content-type"].split(";")[0], kind, model)
        with report.case("bytes: an answer has the upstream's headers that are for the client, and no others"):
            response = chat(foreword, "odd-head")
            for name, value in {"openai-processing-ms": "12", "x-ratelimit-remaining-requests": "99"}.items():
                same(response.headers.get(name), value, name)
            expect(not {"set-cookie", "keep-alive"} & response.headers.keys(), response.all_headers)
        with report.case("bytes: a redirect is not followed, and the key goes nowhere else"):
            with Upstream() as other:
                response = chat(foreword, "moved", location=f"{other.url}{PATH}")
                expect(response.status in (307, 502), response.status)
                same(other.count, 0, "requests at the other place")


def kept_back(request: Received) -> None:
    for value in (*KEPT_BACK.values(), "key-of-foreword"):
        expect(value.encode() not in request.head, f"{value!r} is in {request.head!r}")


def headers(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        for path in (PATH, "/v1/messages"):
            with report.case(f"bytes: {path}: the headers of the list go on, and no others"):
                body = {"model": "m", "max_tokens": 5, "messages": [ASK]}
                response = exchange(foreword, path, body, ALLOWED | KEPT_BACK)
                same(response.status, 200, response.body)
                got = upstream.last.headers
                same({name: got.get(name.lower()) for name in ALLOWED}, ALLOWED)
                kept_back(upstream.last)
                more = set(got) - {name.lower() for name in ALLOWED} - OF_HTTP
                same(more - {"accept-encoding"}, set(), "more headers")
                same(got.get("accept-encoding", "identity"), "identity", "the answer must not be compressed")
                same(got["host"], upstream.url.removeprefix("http://"))
                same(got["content-type"], "application/json")


def authorization(setting: Setting, report: Report) -> None:
    ours = {"X-Foreword-Key": "key-of-foreword"}
    theirs = {"Authorization": "Bearer key-of-ada"}
    environment = {"FOREWORD_API_KEY": "key-of-foreword,second-key-of-foreword"}

    def got(upstream: Upstream, foreword: Foreword, given: dict) -> str | None:
        response = chat(foreword, headers=given)
        same(response.status, 200, response.body)
        kept_back(upstream.last)
        return upstream.last.headers.get("authorization")

    with behind(setting, environment=environment) as (foreword, upstream):
        with report.case("bytes: each way of naming the key lets in, and the upstream gets its own key"):
            for given in (ours, {"Authorization": "bearer key-of-foreword"}, {"x-api-key": "second-key-of-foreword"}):
                same(got(upstream, foreword, given), f"Bearer {UPSTREAM_KEY}")
        with report.case("bytes: the caller's own key is not forwarded unless that is on"):
            same(got(upstream, foreword, ours | theirs), f"Bearer {UPSTREAM_KEY}")
        with report.case("bytes: no key, or a wrong one, is 401"):
            same([chat(foreword, headers=given).status for given in ({}, theirs, {"X-Foreword-Key": "x"})], [401] * 3)
        with report.case("bytes: Anthropic's gets `x-api-key`, and no `Authorization`"):
            response = exchange(
                foreword, "/v1/messages", {"model": "m", "max_tokens": 5, "messages": [ASK]}, ours | theirs
            )
            same(response.status, 200, response.body)
            same(upstream.last.headers["x-api-key"], ANTHROPIC_KEY)
            expect("authorization" not in upstream.last.headers, upstream.last.head)
    forwarding = {"chat.upstream": {"forward_authorization": True}}
    with behind(setting, environment=environment, settings=forwarding) as (foreword, upstream):
        with report.case("bytes: with `forward_authorization` the caller's own goes on"):
            same(got(upstream, foreword, ours | theirs), "Bearer key-of-ada")
        with report.case("bytes: and only `X-Foreword-Key` lets in"):
            for given in ({"Authorization": "Bearer key-of-foreword"}, {"x-api-key": "key-of-foreword"}, theirs):
                same(chat(foreword, headers=given).status, 401, given)
        with report.case("bytes: a key of ours never goes on, however it is sent"):
            count = upstream.count
            for value in ("Bearer key-of-foreword", "bearer  second-key-of-foreword", "key-of-foreword"):
                response = chat(foreword, headers=ours | {"Authorization": value})
                expect(response.status in (200, 400, 401, 403), response.status)
            for name in ("Idempotency-Key", "OpenAI-Organization", "OpenAI-Project"):
                chat(foreword, headers=ours | theirs | {name: "second-key-of-foreword"})
            for request in upstream.received[count:]:
                expect(b"key-of-foreword" not in request.head, request.head)


def sizes(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        with report.case("bytes: a body of 20 MB arrives whole"):
            picture = "A" * 20_000_000
            after = json.dumps({"role": "user", "content": picture}).encode() + b"]}"
            response = exchange(foreword, PATH, b'{"model":"m","messages":[' + after)
            same(response.status, 200, response.body[:300])
            expect(upstream.last.body.endswith(after), "it is not as it was sent")
        with report.case("bytes: one over the limit is 413, and the upstream is not asked"):
            count = upstream.count
            with Wire(foreword.url) as wire:
                # Its length alone decides; what is sent after a refusal would only meet a closed connection.
                wire.post(PATH, b"{", {"Content-Length": str(33 << 20)})
                same(wire.head().status, 413)
            same(upstream.count, count, "requests at the upstream")
