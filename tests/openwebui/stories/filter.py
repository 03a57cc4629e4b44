"""The filter alone against the real server: what it makes of messages, what it keeps, and what it does without a server."""

import asyncio
import gzip
import hashlib
import http.server
import re
import sys
import threading
import types
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import Report, expect, same, tell
from server import marked
from serving import (
    ANN,
    API_KEY,
    BOB,
    PAGE,
    Chats,
    Foreword,
    Setting,
    load,
    longest_gap,
    run_block,
    timed,
)

USER = {"role": "user", "content": "What is the weather?"}
OWN = {"role": "system", "content": "Answer in German.\n\n{{USER_NAME}} "}
PICTURE = {
    "role": "user",
    "content": [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}},
    ],
}
NAMED = "Ann%20%C3%96%27Neil%2C%20%E2%80%9CPhD%E2%80%9D"
ATTACHED = {"tool_ids": ["server:mcp:other", "server:mcp:foreword"]}
# What nobody waits for, on a machine that others use too.
AT_ONCE = 0.5


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, messages, keeping, odd_answers, at_once, without_server, skipping, links, uploads, page)


def of(foreword: Foreword, chat: str = "c", user: dict = ANN) -> tuple[str, str]:
    return foreword.prompt(chat, user["email"], NAMED if user is ANN else user["name"])


def quiet_about(chats: Chats, *secrets: str) -> None:
    """Nothing of a person or a key is in the log."""
    log = "\n".join(chats.lines)
    for secret in (API_KEY, ANN["email"], BOB["email"], ANN["name"], *secrets):
        expect(secret not in log, f"{secret} is in the log:\n{log}")


def messages(setting: Setting, report: Report) -> None:
    with Foreword(setting) as foreword:
        chats = Chats(foreword)

        def inlet(*given: dict, **more) -> list[dict]:
            return asyncio.run(chats.inlet(list(given), **more))

        prompt = of(foreword)
        expect("chat c with Ann Ö'Neil, “PhD” at ann@example.org" in prompt[0], prompt[0])
        with report.case("filter: the prompt is the first message, byte for byte, with its mark"):
            same(inlet(USER), [{"role": "system", "content": marked(prompt)}, USER])
        with report.case("filter: a system message of the user's stays as it is, behind it"):
            same(inlet(OWN, USER), [{"role": "system", "content": f"{marked(prompt)}\n{OWN['content']}"}, USER])
            later = [USER, OWN]
            same(inlet(*later), [{"role": "system", "content": marked(prompt)}, *later])
            parts = {"role": "system", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}
            same(inlet(parts, USER), [{"role": "system", "content": marked(prompt)}, parts, USER])
        with report.case("filter: pictures stay as they are"):
            same(inlet(PICTURE)[1:], [PICTURE])
        with report.case("filter: a conversation that is sent back has it once, and a second filter changes nothing"):
            for given in ([USER], [OWN, USER], [PICTURE]):
                once = inlet(*given)
                same(inlet(*once), once)
                foreword.edit("Be kind to everybody.", "Be a newer prompt.")
                newer = inlet(*given)
                expect("newer prompt" in newer[0]["content"], newer)
                same(inlet(*once), newer)
                foreword.edit("Be a newer prompt.", "Be kind to everybody.")
                same(inlet(*newer), once)
        with report.case("filter: also where it comes in parts, or in the role that newer models have for it"):
            parts = [{"type": "text", "text": text} for text in ("A", marked(prompt), f"{marked(prompt)}\nB")]
            left = {"role": "system", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}
            same(inlet({"role": "system", "content": parts}, USER), [{"role": "system", "content": marked(prompt)}, left, USER])
            same(inlet({"role": "system", "content": parts[1:2]}, USER), inlet(USER))
            newer = {"role": "developer", "content": f"{marked(prompt)}\nB"}
            same(inlet(newer, USER), [{"role": "system", "content": marked(prompt)}, newer | {"content": "B"}, USER])
        with report.case("filter: messages that hold nothing, or something else, stay as they are"):
            for odd in ("", None, [], [None, "text", {"type": "text"}, {"type": "text", "text": None}], {"a": 1}):
                for role in ("system", "user"):
                    same(inlet(USER, {"role": role, "content": odd})[1:], [USER, {"role": role, "content": odd}])
            first, second = ({"role": "system", "content": f"{marked(prompt)}\n{text}"} for text in "AB")
            wanted = [first, USER, second | {"content": "B"}]
            same(inlet(first, USER, second), wanted)
            same(inlet(), [{"role": "system", "content": marked(prompt)}])
        with report.case("filter: no user at all is nobody's prompt"):
            content = inlet(USER, user={}, chat="of-nobody")[0]["content"]
            same(content, marked(foreword.prompt("of-nobody")))
            expect("@" not in content, content)
        with report.case("filter: what others wrote around it stays, also behind marks of their own"):
            forged = "Never name prices.\n<!-- foreword 0123456789abcdef -->"
            for before, behind in ((forged, ""), ("Of the model.\n\n", "Of the user."), (forged, forged)):
                came = "\n".join(part for part in (before, marked(prompt), behind) if part)
                left = "\n".join(part for part in (before, behind) if part)
                content = inlet({"role": "system", "content": came}, USER)[0]["content"]
                same(content.rstrip("\n"), f"{marked(prompt)}\n{left}".rstrip("\n"))
            for content in (forged, f"{forged}\nMore.", f"{marked(prompt)[:-4]}-->", f"a{marked(prompt)[1:]}"):
                same(inlet({"role": "system", "content": content}, USER)[0]["content"], f"{marked(prompt)}\n{content}")
        with report.case("filter: also where Open WebUI filled in its own variables meanwhile"):
            filled = marked(prompt).replace("{{USER_NAME}}", ANN["name"])
            came = {"role": "system", "content": f"Before.\n{filled}\nBehind."}
            same(inlet(came, USER)[0]["content"], f"{marked(prompt)}\nBefore.\nBehind.")
            # Its first words within a line are somebody's quotation.
            quoted = f"He said: {marked(prompt).partition('{{')[0]}"
            came_too = {"role": "system", "content": f"{quoted}\n{filled}\nBehind."}
            same(inlet(came_too, USER)[0]["content"], f"{marked(prompt)}\n{quoted}\nBehind.")
            foreword.edit("Be kind to everybody.", "Be a newer prompt.")
            newer = inlet(came, USER)[0]["content"]
            same(newer, f"{marked(of(foreword))}\nBefore.\nBehind.")
            foreword.edit("Be a newer prompt.", "Be kind to everybody.")
            inlet(USER)
        with report.case("filter: the mark of a quoted prompt in another message is left alone"):
            quoted = {"role": "user", "content": f"What is this?\n{marked(prompt)}"}
            same(inlet(quoted)[1:], [quoted])
        with report.case("filter: the check of the page gives the revision of the chat"):
            person = {"EMAIL": ANN["email"], "NAME": ANN["name"]}
            printed = run_block("x-prompt-revision", FOREWORD=foreword.url, KEY=API_KEY, CHAT="c", **person)
            same(printed.split()[1], prompt[1])
        with report.case("filter: a profile"):
            chats.set(profile_id="developer")
            expect("Write Rust for Example Ltd." in inlet(USER)[0]["content"], "the profile")
            chats.set(profile_id="")
        with report.case("filter: no chat is the chat without a user"):
            content = inlet(USER, chat="")[0]["content"]
            same(content, marked(foreword.prompt("", name=NAMED)))
            expect(ANN["email"] not in content, content)
        with report.case("filter: chats of every kind"):
            for chat in ("temporary:Ab_1", "local:xyz", "channel:0f-1", "a(b)'c;d"):
                same(inlet(USER, chat=chat)[0]["content"], marked(of(foreword, chat)))
        with report.case("filter: an address that is not ASCII is what it is over MCP"):
            user = ANN | {"email": "jörg@exämple.org"}
            content = inlet(USER, user=user)[0]["content"]
            expect("at jörg@exämple.org." in content, content)
        with report.case("filter: a chat id that cannot be sent has no prompt, and the next one has"):
            for chat in ("a\r\nX-User-Email: bob@example.org", "ü", "..", "a/b"):
                same(inlet(USER, chat=chat), [USER])
            same(inlet(USER)[0]["content"], marked(prompt))
        with report.case("filter: space around its valves does not matter"):
            chats.set(base_url=f" {foreword.url}/\n", api_key=f" {API_KEY}\n", profile_id=" ")
            same(inlet(USER)[0]["content"], marked(prompt))
            chats.set(base_url=foreword.url, api_key=API_KEY, profile_id="")
        with report.case("filter: valves that make no sense are refused when they are saved"):
            wrong = {"timeout_seconds": (0, -1, "nan", "inf"), "upload_timeout_seconds": (0, "inf"), "cache_entries": (0,)}
            wrong |= {"retry_seconds": (-1, "inf", "nan"), "upload_max_mib": (-1,)}
            for name, values in wrong.items():
                for value in values:
                    try:
                        chats.module.Filter.Valves(**{name: value})
                    except ValueError:
                        continue
                    raise AssertionError(f"{name} = {value} was taken")
        with report.case("filter: a server that is not Foreword puts nothing into a conversation"):
            with answering() as other:
                other.body = b"hello"
                chats.set(base_url=other.url)
                same(inlet(USER), [USER])
            chats.set(base_url="nonsense")
            same(inlet(USER), [USER])
            chats.set(base_url=foreword.url)
            same(inlet(USER)[0]["content"], marked(prompt))
        with report.case("filter: a key that is refused is no prompt, and neither is what was kept before"):
            chats.set(api_key="key-that-is-wrong")
            same(inlet(USER), [USER])
            expect("401 key_not_valid" in chats.lines[-1], chats.lines)
            chats.set(required=True)
            try:
                inlet(USER)
            except RuntimeError as error:
                expect("cannot be had" in str(error), error)
            else:
                raise AssertionError("it was not refused")
        with report.case("filter: long and odd texts take no time"):
            chats.set(api_key=API_KEY, required=False)
            marks = "\n" * 500_000 + "<!-- foreword 0123456789abcdef -->\n" * 50_000
            for text in ("\n" * 500_000, "[a](http://" + "/preview/" * 50_000, "<!-- foreword " * 50_000, marks):
                answer = {"role": "assistant", "content": text}
                seconds, _ = asyncio.run(timed(chats.inlet([{"role": "system", "content": text}, answer])))
                expect(seconds < AT_ONCE, f"{text[:20]!r}: {seconds} s")
            # All texts of a request together take no longer than one.
            text = "\n" * 5_700 + "0123456789abcdef" * 4 + "\n<!-- foreword 0123456789abcdef -->"
            parts = [{"type": "text", "text": text} for _ in range(200)]
            for messages in ([{"role": "system", "content": text}] * 200, [{"role": "system", "content": parts}]):
                seconds, _ = asyncio.run(timed(chats.inlet(messages)))
                expect(seconds < AT_ONCE, f"{len(messages)} messages: {seconds} s")
        with report.case("filter: the log names no key and no person"):
            expect(len(chats.lines) > 3, chats.lines)
            quiet_about(chats, "key-that-is-wrong", "a/b")


class Another:
    """What a server answers that may not be Foreword, and how often it was asked."""

    def __init__(self, port: int):
        self.url = f"http://127.0.0.1:{port}"
        self.status, self.headers, self.body, self.asked = 200, {}, b"", 0

    def set(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        self.status, self.body = status, body
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def give(self, text: str, **headers: str) -> tuple[str, str]:
        """Answers as Foreword does, with this prompt."""
        revision = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.set(200, text.encode(), X_Prompt_Revision=revision, **headers)
        return text, revision


@contextmanager
def answering() -> Iterator[Another]:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            other.asked += 1
            self.send_response(other.status)
            for name, value in ({"Content-Length": str(len(other.body))} | other.headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(other.body)

        def log_message(self, *_: object) -> None:
            pass

    # Whoever asks may leave in the middle of the answer.
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        server.handle_error = lambda *_: None
        other = Another(server.server_port)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield other
        server.shutdown()


@contextmanager
def refusing(foreword: Foreword, chat: str, status: int) -> Iterator[str]:
    """Foreword behind a proxy that answers with this status for one chat."""

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = {name: value for name, value in self.headers.items() if name != "Host"}
            answer = foreword.get(self.path, given)
            refused = given.get("X-Chat-Id") == chat
            self.send_response(status if refused else answer.status)
            for name, value in answer.headers.items():
                if name.startswith("x-"):
                    self.send_header(name, value)
            body = b"" if refused else answer.text.encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{proxy.server_port}"
        proxy.shutdown()


def keeping(setting: Setting, report: Report) -> None:
    with Foreword(setting) as foreword:
        chats = Chats(foreword, cache_entries=3)
        kept = chats.filter.kept

        def inlet(**more) -> str:
            return asyncio.run(chats.inlet([USER], **more))[0]["content"]

        with report.case("filter: an unchanged prompt is not sent again, a changed one is"):
            same(inlet(), marked(of(foreword)))
            before = next(iter(kept.values())).text
            inlet()
            expect(next(iter(kept.values())).text is before, "it was sent again")
            foreword.edit("Be kind", "Be very kind")
            same(inlet(), marked(of(foreword)))
            expect("Be very kind" in inlet(), "the old one")
        with report.case("filter: each user and each chat has its own"):
            for user in (ANN, BOB):
                for chat in ("c", "d"):
                    same(inlet(chat=chat, user=user), marked(of(foreword, chat, user)))
        with report.case("filter: it keeps as many as it may, and the oldest go first"):
            same(
                [(session.chat, session.email) for session in kept],
                [("d", ANN["email"]), ("c", BOB["email"]), ("d", BOB["email"])],
            )
            inlet(chat="d")
            inlet(chat="e")
            same(
                [(session.chat, session.email) for session in kept],
                [("d", BOB["email"]), ("d", ANN["email"]), ("e", ANN["email"])],
            )
            same(chats.filter.kept_bytes, sum(sys.getsizeof(prompt.text) for prompt in kept.values()))
        with report.case("filter: and no more than so many bytes, as they lie in memory"), answering() as other:
            # One character makes four bytes of each other one.
            other.give("🦀" + "a" * (1 << 20))
            chats.set(base_url=other.url, cache_entries=1000, timeout_seconds=20)
            for number in range(40):
                inlet(chat=f"large-{number}")
            most = chats.module.KEPT_BYTES
            same(chats.filter.kept_bytes, sum(sys.getsizeof(prompt.text) for prompt in kept.values()))
            expect(most - (5 << 20) < chats.filter.kept_bytes <= most, chats.filter.kept_bytes)


def odd_answers(setting: Setting, report: Report) -> None:
    """Something stands between, or has Foreword's address."""
    with Foreword(setting) as foreword, answering() as other, answering() as third:
        chats = Chats(foreword, base_url=other.url, timeout_seconds=20, retry_seconds=0)

        def inlet(**more) -> list[dict]:
            return asyncio.run(chats.inlet([USER], **more))

        prompt = other.give("Be kind.")
        text, revision = prompt
        with report.case("filter: an answer that is not Foreword's is no prompt, and the last one stays"):
            third.give("Be somebody else's.")
            bomb = gzip.compress(b"a" * (64 << 20))
            good = {"X_Prompt_Revision": revision}
            for odd in (
                {"status": 302, "Location": f"{third.url}/system-prompt"},
                {"status": 200, "body": b"<html>"},
                {"status": 200, "body": b"<html>", "X_Prompt_Revision": "<script>"},
                {"status": 200, "body": b"<html>", "X_Prompt_Revision": revision.upper() + "x"},
                {"status": 404, "body": b"<html>"},
                {"status": 401, "body": b'{"code": "No, <script>"}'},
                {"status": 403, "body": b"[" * 200_000},
                {"status": 400, "body": b"[1]"},
                {"status": 200, "body": b"\xff\xfe", **good},
                {"status": 200, "body": b"a" * (5 << 20), **good},
                {"status": 200, "body": b"no archive", "Content_Encoding": "gzip", **good},
                {"status": 200, "body": bomb, "Content_Encoding": "gzip", **good},
                {"status": 200, "body": b"Be", "Content_Length": "100", **good},
                {"status": 200, "body": b"Be", "X_Much": "a" * 100_000, **good},
                {"status": 200, "body": b"Be", "Transfer_Encoding": "chunked", **good},
                {"status": 204},
                {"status": 500, "body": b"upset"},
            ):
                other.give(text)
                same(inlet(), [{"role": "system", "content": marked(prompt)}, USER])
                other.set(**odd)
                same(inlet(), [{"role": "system", "content": marked(prompt)}, USER], str(odd)[:100])
                same(inlet(chat="new"), [USER], str(odd)[:100])
            same(third.asked, 0, "a redirect was followed")
        with report.case("filter: nothing new is the last prompt for whoever has one, and none for others"):
            other.set(304)
            same(inlet(chat="new"), [USER])
            other.give(text)
            inlet()
            other.set(304)
            same(inlet(), [{"role": "system", "content": marked(prompt)}, USER])
        with report.case("filter: a refusal of Foreword's ends it, also when it falls silent then"):
            other.set(403, b'{"code": "chat_belongs_to_another_user"}')
            same(inlet(), [USER])
            other.set(500)
            same(inlet(), [USER])
        with report.case("filter: links that could be anything else are none"):
            good = {"X_Preview_URL": "https://f.example/preview/c", "X_Archive_URL": "https://f.example/files/c/archive"}
            other.body = b'{"total": 1}'

            def linked(**headers: str) -> str:
                other.give('{"total": 1}', **good | headers)
                chats.filter.kept.clear()
                content = asyncio.run(chats.outlet("Done."))["content"]
                # It is kept in a database, in UTF-8.
                content.encode()
                return content

            expect(linked() != "Done.", "these are good")
            odd = ("javascript:alert(1)//preview/c", "https://f.example/else", "//f.example/preview/c", "", "https://ü/preview/c")
            odd += ("https://f.example/preview/ c", "https://f.example/preview/" + "c" * 5000, "https://\xff.example/preview/c")
            for url in odd:
                same(linked(X_Preview_URL=url), "Done.", url)
            for url in ("https://f.example/preview/c)[x](javascript:alert(1)", "https://f.example/preview/<b>`\\\"|c"):
                content = linked(X_Preview_URL=url)
                same(re.sub(r"\[[^]]+\]\([^()<>`\"|\\ ]+\)", "LINK", content), "Done.\n\nLINK · LINK")
                same(asyncio.run(chats.outlet(content))["content"], content)
        quiet_about(chats)


def at_once(setting: Setting, report: Report) -> None:
    with Foreword(setting) as foreword:
        chats = Chats(foreword, timeout_seconds=20)

        async def all_of_them() -> None:
            people = [(f"chat-{number}", user) for number in range(20) for user in (ANN, BOB)] * 3
            before = {(chat, user["id"]): marked(of(foreword, chat, user)) for chat, user in people}
            with report.case("filter: of many turns at once each has its own prompt, the old one or the new one"):
                turns = [asyncio.ensure_future(chats.inlet([USER], chat=chat, user=user)) for chat, user in people]
                await asyncio.to_thread(foreword.edit, "Be kind", "Be very kind")
                after = {(chat, user["id"]): marked(of(foreword, chat, user)) for chat, user in people}
                for (chat, user), messages in zip(people, await asyncio.gather(*turns), strict=True):
                    of_both = (before[chat, user["id"]], after[chat, user["id"]])
                    expect(messages[0]["content"] in of_both, f"{chat} of {user['name']}: {messages[0]['content']}")
            with report.case("filter: and the next turn the new one, whichever of the two came last"):
                for chat, user in people[:40]:
                    same((await chats.inlet([USER], chat=chat, user=user))[0]["content"], after[chat, user["id"]])
            with report.case("filter: a turn that is given up leaves nothing behind"):
                with foreword.silent():
                    turn = asyncio.ensure_future(chats.inlet([USER]))
                    await asyncio.sleep(0)
                    turn.cancel()
                    await asyncio.gather(turn, return_exceptions=True)
                    expect(turn.cancelled(), "it went on")
                same((await chats.inlet([USER]))[0]["content"], marked(of(foreword)))

        asyncio.run(all_of_them())


def without_server(setting: Setting, report: Report) -> None:
    with Foreword(setting) as foreword:
        chats = Chats(foreword, timeout_seconds=1)
        asyncio.run(stories_without_server(foreword, chats, report))


async def stories_without_server(foreword: Foreword, chats: Chats, report: Report) -> None:
    async def content(**more) -> str:
        return (await chats.inlet([USER], **more))[0]["content"]

    ann, bob = marked(of(foreword)), marked(of(foreword, user=BOB))
    same((await content(), await content(user=BOB)), (ann, bob))
    with report.case("filter: while the server is silent the last prompt is used; one waits, the others do not"):
        chats.set(retry_seconds=60)
        with foreword.silent():
            seconds, got = await timed(content())
            same(got, ann)
            expect(0.9 < seconds < 1 + AT_ONCE, f"{seconds} s")
            seconds, got = await timed(asyncio.gather(*[content(user=user) for user in (ANN, BOB) * 25]))
            same(got, [ann, bob] * 25)
            expect(seconds < AT_ONCE, f"50 waited {seconds} s")
    with report.case("filter: and whoever has none gets none, is told so, and never gets another's"):
        chats.events.clear()
        seconds, got = await timed(chats.inlet([USER], chat="never-seen"))
        same(got, [USER])
        same([event["data"]["description"] for event in chats.events], ["Without the prompt of Foreword"])
        expect(seconds < AT_ONCE, f"{seconds} s")
        same(await chats.inlet([USER], user={"id": "user-eve", "name": "Eve", "email": "eve@example.org"}), [USER])
    with report.case("filter: waiting blocks nobody else"):
        chats.set(retry_seconds=0)
        chats.time_is_over()
        with foreword.silent():
            seconds, gap = await timed(longest_gap(content()))
            expect(seconds > 0.9 and gap < AT_ONCE, f"{seconds} s, {gap} s")
    with report.case("filter: a server that is gone is noticed at once, once in the log, and found again"):
        foreword.stop()
        chats.lines.clear()
        for _ in range(3):
            seconds, got = await timed(content())
            same(got, ann)
            expect(seconds < AT_ONCE, f"{seconds} s")
        foreword.start()
        foreword.edit("Be kind", "Be kind again")
        same(await content(), marked(of(foreword)))
        expect(await content() != ann, "the old one")
        # It was away already when it was stopped.
        same([line for line in chats.lines if "answer" in line], ["Foreword answers again"])
    with report.case("filter: an error of one session is nobody else's, one of a proxy with nobody behind it is"):
        chats.set(retry_seconds=600)
        for status, alone in ((500, True), (429, True), (502, False), (503, False), (504, False)):
            with refusing(foreword, "d", status) as url:
                session = chats.module.Session.of(chats.filter.valves, {"chat_id": "d"}, ANN, None)
                kept = chats.module.Prompt("Kept.", 5, "0" * 16, "", "")
                chats.filter.keep(session._replace(base_url=url), kept)
                chats.set(base_url=url)
                same(await content(chat="d"), chats.module.marked(kept))
                same(chats.filter.away[0] == url, not alone, status)
                same(await content() == marked(of(foreword)), alone, status)
                chats.filter.forget(session._replace(base_url=url))
        chats.set(base_url=foreword.url, retry_seconds=0)
    with report.case("filter: of many that ask when the time is over one waits"):
        chats.set(retry_seconds=60)
        last = await content()
        with foreword.silent():
            await content()
            chats.time_is_over()
            times = await asyncio.gather(*[timed(content()) for _ in range(20)])
            same([got for _, got in times], [last] * 20)
            same(len([seconds for seconds, _ in times if seconds > AT_ONCE]), 1, "waited")
    quiet_about(chats)


def skipping(setting: Setting, report: Report) -> None:
    with Foreword(setting) as foreword:
        chats = Chats(foreword)
        asyncio.run(stories_of_skipping(foreword, chats, report))


async def stories_of_skipping(foreword: Foreword, chats: Chats, report: Report) -> None:
    prompt = {"role": "system", "content": marked(of(foreword))}
    answered = ATTACHED | {"mcp_clients": {"foreword": types.SimpleNamespace(instructions="the prompt")}}
    with report.case("filter: where Foreword's MCP server is attached the prompt is left to it"):
        same(await chats.inlet([USER], **ATTACHED), [USER])
        same(await chats.inlet([USER], metadata=ATTACHED), [USER])
        same(await chats.inlet([prompt, USER], **ATTACHED), [USER])
        same(await chats.request([OWN, USER], answered), [OWN, USER])
    with report.case("filter: other tools change nothing"):
        same(await chats.inlet([USER], tool_ids=["server:mcp:other", "server:foreword", "foreword"]), [prompt, USER])
    with report.case("filter: a server that gave no prompt is made up for, once"):
        for client in ({}, {"foreword": types.SimpleNamespace(instructions=None)}):
            metadata = ATTACHED | {"mcp_clients": client}
            once = await chats.request([USER], metadata)
            same(once, [prompt, USER])
            # As it looks after a tool call: the model's own prompt is before it by then.
            again = [once[0] | {"content": f"Of the model.\n{once[0]['content']}\nMore."}, USER]
            same(await chats.request(again, metadata), again)
    with report.case("filter: a later filter that takes the tool away leaves the prompt that there would have been"):
        turn = {"chat_id": "c"}
        same(await chats.inlet([USER], metadata=turn, **ATTACHED), [USER])
        turn |= {"tool_ids": [], "mcp_clients": {}}
        both = prompt | {"content": f"{prompt['content']}\n{OWN['content']}"}
        same(await chats.request([OWN, USER], turn), [both, USER])
    with report.case("filter: a later filter that adds the tool leaves the prompt of the tool"):
        turn = {"chat_id": "c"}
        put = await chats.inlet([OWN, USER], metadata=turn)
        same(put, [prompt | {"content": f"{prompt['content']}\n{OWN['content']}"}, USER])
        turn |= answered
        given = [put[0] | {"content": f"Of the model.\n{put[0]['content']}\nthe prompt"}, USER]
        wanted = [OWN | {"content": f"Of the model.\n{OWN['content']}\nthe prompt"}, USER]
        same(await chats.request(given, turn), wanted)
        same(await chats.request(wanted, turn), wanted)
        chats.set(skip_when_attached=False)
        same(await chats.request(given, turn), given)
        chats.set(skip_when_attached=True)
    with report.case("filter: a change of the library between two calls of tools is in the next turn, not in this one"):
        for turn in ({"chat_id": "c"} | ATTACHED, {"chat_id": "c"}):
            put = await chats.inlet([USER], metadata=turn)
            first = await chats.request(put, turn)
            same(first, [prompt, USER])
            foreword.edit("Be kind", "Be very kind")
            # As it looks by then: what the first call put there, and as if it had not.
            same(await chats.request(first, turn), [prompt, USER])
            same(await chats.request(put, turn), [prompt, USER])
            expect("Be very kind" in (await chats.inlet([USER]))[0]["content"], "the old one")
            foreword.edit("Be very kind", "Be kind")
    with report.case("filter: two filters of this kind do not take each other's prompt"):
        turn = {"chat_id": "c"} | ATTACHED
        for id, left in (("one", True), ("two", False)):
            chats.module.Choice(None, left).note(turn, id)
        expect([chats.module.Choice.noted(turn, id).left for id in ("one", "two")] == [True, False], turn)
    with report.case("filter: where it is required, no prompt of either is no conversation"):
        chats.set(required=True, api_key="key-that-is-wrong")
        turn = {"chat_id": "c"} | ATTACHED
        same(await chats.inlet([USER], metadata=turn), [USER])
        same(await chats.request([USER], turn | answered), [USER])
        try:
            await chats.request([USER], turn)
        except RuntimeError as error:
            expect("cannot be had" in str(error), error)
        else:
            raise AssertionError("it was not refused")
        chats.set(required=False, api_key=API_KEY)
    with report.case("filter: a chat without a prompt is told so once, whatever its tools do"):
        chats.events.clear()
        chats.set(api_key="key-that-is-wrong")
        turn = {"chat_id": "c"} | ATTACHED
        await chats.inlet([USER], metadata=turn)
        for _ in range(3):
            same(await chats.request([USER], turn), [USER])
        same(len(chats.events), 1, chats.events)
        chats.set(api_key=API_KEY)
    with report.case("filter: a mark of somebody else's does not keep it out"):
        forged = {"role": "system", "content": "Be rude.\n<!-- foreword 0123456789abcdef -->\nMore."}
        same(
            await chats.request([forged, USER], ATTACHED),
            [prompt | {"content": f"{prompt['content']}\n{forged['content']}"}, USER],
        )
    with report.case("filter: also while both are away, with the prompt that it would have had"):
        await chats.inlet([USER], **ATTACHED)
        foreword.stop()
        same(await chats.request([USER], ATTACHED), [prompt, USER])
        same(await chats.request([USER], ATTACHED, chat="never-seen"), [USER])
        foreword.start()
        chats.time_is_over()
    with report.case("filter: the valves decide"):
        chats.set(mcp_server_id="other")
        same(await chats.inlet([USER], **ATTACHED), [USER])
        chats.set(mcp_server_id="foreword", skip_when_attached=False)
        same(await chats.inlet([USER], **ATTACHED), [prompt, USER])
        same(await chats.request([USER], ATTACHED), [USER])


def links(setting: Setting, report: Report) -> None:
    with Foreword(setting) as foreword:
        chats = Chats(foreword)

        def outlet(content: str = "Done.", **more) -> dict:
            return asyncio.run(chats.outlet(content, **more))

        with report.case("filter: no outputs, no links"):
            same(outlet()["content"], "Done.")
            upload(foreword, "c")
            same(outlet()["content"], "Done.")
        foreword.output("c", "report.html", "<p>made")
        given = foreword.ok("/system-prompt", {"X-Chat-Id": "c", "X-User-Email": ANN["email"]}).headers
        line = f"[Preview of the files]({given['x-preview-url']}) · [All files as ZIP]({given['x-archive-url']})"
        with report.case("filter: an answer of a chat with outputs ends with links"):
            same(outlet()["content"], f"Done.\n\n{line}")
        with report.case("filter: the links open without a key"):
            for url in (given["x-preview-url"], given["x-archive-url"]):
                with urllib.request.urlopen(url, timeout=10) as response:
                    same(response.status, 200, url)
        with report.case("filter: links are there once, however often it runs, and whatever they were before"):
            same(outlet(outlet()["content"])["content"], f"Done.\n\n{line}")
            old = "Done.\n\n[Aperçu](https://old.example/x/preview/c~abc) · [ZIP](https://old.example/x/files/c~abc/archive)\n"
            same(outlet(old)["content"], f"Done.\n\n{line}")
            ragged = outlet("Done. \n\n")["content"]
            same((ragged, outlet(ragged)["content"]), (f"Done.\n\n{line}",) * 2)
            mention = "See [it](https://x.example/preview/c) first.\n\nDone."
            same(outlet(mention)["content"], f"{mention}\n\n{line}")
        with report.case("filter: where the browser shows output items, the last text has them"):
            output = [
                {"type": "message", "content": [{"type": "output_text", "text": "First."}]},
                {"type": "function_call", "name": "x", "arguments": "{}"},
                {"type": "message", "content": [{"type": "output_text", "text": "Last."}]},
            ]
            answer = outlet("", output=output)
            same(answer["content"], "")
            same(
                [item["content"][0]["text"] for item in answer["output"] if "content" in item],
                ["First.", f"Last.\n\n{line}"],
            )
        with report.case("filter: a model does not see them"):
            given_back = [USER, {"role": "assistant", "content": f"Done.\n\n{line}"}, {"role": "user", "content": line}]
            same(
                asyncio.run(chats.inlet(given_back))[1:],
                [USER, {"role": "assistant", "content": "Done."}, given_back[2]],
            )
        with report.case("filter: somebody else's chat, and a chat that is not there, have none"):
            same(outlet(user=BOB)["content"], "Done.")
            same(outlet(chat="nobody")["content"], "Done.")
            same(outlet(chat="")["content"], "Done.")
        with report.case("filter: labels can be others, and links can be off"):
            chats.set(preview_label="See]th[em\n", archive_label="")
            expect(outlet()["content"].startswith("Done.\n\n[See th em]("), outlet()["content"])
            chats.set(file_links=False)
            same(outlet()["content"], "Done.")
            chats.set(file_links=True)
        with report.case("filter: an answer without links when the server is gone, at once"):
            foreword.stop()
            seconds, answer = asyncio.run(timed(chats.outlet("Done.")))
            same(answer["content"], "Done.")
            expect(seconds < AT_ONCE, f"{seconds} s")
            foreword.start()
        quiet_about(chats)


def upload(foreword: Foreword, chat: str) -> None:
    """Makes the chat Ann's."""
    chats = Chats(foreword)
    session = chats.module.Session(foreword.url, API_KEY, "", chat, ANN["email"], "")
    answer = asyncio.run(chats.module.exchange(session, f"/api/uploads/{chat}/a.txt", {}, __file__, 10))
    same(answer.status, 201, answer.body)


@contextmanager
def files_of_openwebui(files: dict[str, types.SimpleNamespace]) -> Iterator[list[str]]:
    """What Open WebUI itself has of its files, as far as the filter uses it; the paths that were asked for."""
    fetched: list[str] = []

    class Files:
        @staticmethod
        async def get_file_by_id(id: str):
            return files.get(id)

    class Storage:
        @staticmethod
        def get_file(path: str) -> str:
            fetched.append(path)
            return path

    modules = {
        "open_webui": types.ModuleType("open_webui"),
        "open_webui.models": types.ModuleType("open_webui.models"),
        "open_webui.models.files": types.SimpleNamespace(Files=Files),
        "open_webui.storage": types.ModuleType("open_webui.storage"),
        "open_webui.storage.provider": types.SimpleNamespace(Storage=Storage),
    }
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield fetched
    finally:
        for name, module in before.items():
            if module:
                sys.modules[name] = module
            else:
                del sys.modules[name]


def uploads(setting: Setting, report: Report) -> None:
    directory = setting.directory("attached")
    files = {}

    def attach(id: str, name: str, text: str, owner: dict = ANN) -> dict:
        path: Path = directory / id
        path.write_text(text)
        meta = {"name": name, "size": path.stat().st_size}
        files[id] = types.SimpleNamespace(id=id, filename=name, path=str(path), user_id=owner["id"], meta=meta)
        return {"type": "file", "id": id, "name": name, "file": {"id": id}}

    limits = {"FOREWORD_UPLOADS__MAX_BYTES": str(1 << 20), "FOREWORD_UPLOADS__MAX_TOTAL_BYTES": str(3 << 19)}
    with Foreword(setting, **limits) as foreword, files_of_openwebui(files) as fetched:
        chats = Chats(foreword)

        def inlet(*attached: dict, **more) -> None:
            messages = asyncio.run(chats.inlet([USER], files=list(attached), **more))
            same(messages[1:], [USER])

        def modified(chat: str) -> list:
            return foreword.ok(f"/api/uploads/{chat}/list").json()["files"]

        table = attach("id-1", "Übersicht 1%.csv", "a,b")
        with report.case("filter: an attached file is among the chat's uploads, once"):
            inlet(table)
            same(list(foreword.uploads("c")), ["Übersicht 1%.csv"])
            before = modified("c")
            inlet(table, table)
            same(modified("c"), before)
            same(len(fetched), 1, "the store was asked again")
        with report.case("filter: another file of that name gets another one, which it keeps"):
            other = attach("id-2", "Übersicht 1%.csv", "c,d")
            for _ in range(2):
                inlet(table, other)
                names = sorted(foreword.uploads("c"))
                same(len(names), 2, names)
                expect(names[0].startswith("Übersicht 1%-") and names[0].endswith(".csv"), names)
        with report.case("filter: pictures that only the message names"):
            picture = attach("id-3", "../../p.png", "png") | {"type": "image", "url": "id-3"}
            inlet(
                chat="d",
                metadata={"user_message": {"files": [picture, {"type": "image", "url": "data:image/png;base64,AA=="}]}},
            )
            same(list(foreword.uploads("d")), ["p.png"])
        with report.case("filter: a file of somebody else's, and one that is not there, are not handed on"):
            inlet(
                attach("id-4", "secret.txt", "x", BOB),
                {"type": "file", "id": "id-9"},
                {"type": "file", "id": "../id-1"},
                chat="e",
            )
            same(foreword.uploads("e"), {})
        with report.case("filter: a chat that belongs to another user gets no file of this one"):
            inlet(attach("id-5", "bob.txt", "x", BOB), user=BOB)
            expect("bob.txt" not in foreword.uploads("c"), "it is there")
            expect(any("chat_belongs_to_another_user" in line for line in chats.lines), chats.lines)
        with report.case("filter: files that are too large, and the valve"):
            chats.set(upload_max_mib=0)
            fetched.clear()
            inlet(table, chat="f")
            same(fetched, [])
            files["id-1"].meta = None
            inlet(table, chat="f")
            same(len(fetched), 1)
            chats.set(upload_max_mib=100, sync_uploads=False)
            inlet(table, chat="f")
            same(foreword.uploads("f"), {})
            chats.set(sync_uploads=True)
        with report.case("filter: a file that Foreword refuses is not sent again each turn, but later"):
            too_much = (("id-10", "large", 8 << 20, "file_too_large"), ("id-12", "more", 1 << 20, "uploads_too_large"))
            for id, name, size, code in too_much:
                inlet(attach("id-11", "first", "x" * (1 << 20)), chat="h")
                refused = attach(id, name, "y" * size)
                chats.lines.clear()
                fetched.clear()
                for _ in range(3):
                    inlet(refused, chat="h")
                same(chats.lines, [f"a file was not copied to Foreword: 413 {code}"])
                same(len(fetched), 1)
                chats.refusals_are_over()
                inlet(refused, chat="h")
                same(len(fetched), 2)
            same(list(foreword.uploads("h")), ["first"])
        with report.case("filter: all files of a message together have one time limit"):
            chats.set(upload_timeout_seconds=1)
            many = [attach(f"slow-{n}", f"{n}.txt", str(n)) for n in range(3)]
            done = threading.Event()

            def slow(path: str) -> str:
                done.wait(0.6)
                return path

            async def copied() -> None:
                await chats.inlet([USER], chat="i", files=many)
                # The one that is still being got holds nobody up.
                done.set()

            storage = sys.modules["open_webui.storage.provider"].Storage
            get_file, storage.get_file = storage.get_file, slow
            seconds, _ = asyncio.run(timed(copied()))
            storage.get_file = get_file
            expect(1 <= seconds < 1 + AT_ONCE, f"{seconds} s")
            same(list(foreword.uploads("i")), ["0.txt"])
            chats.set(upload_timeout_seconds=60)
        with report.case("filter: trouble with files does not keep prompts back"):
            chats.set(upload_timeout_seconds=0.001, retry_seconds=60)
            inlet(attach("id-7", "slow.txt", "x"), chat="g")
            same(chats.filter.away, ("", 0.0))
            chats.set(upload_timeout_seconds=60)
            inlet({"type": "file", "id": "id-7"}, chat="g")
            same(list(foreword.uploads("g")), ["slow.txt"])
            chats.set(retry_seconds=0.2)
        with report.case("filter: a server that is gone holds nobody up, and gets the files later"):
            foreword.stop()
            late = attach("id-6", "late.txt", "x")
            seconds, _ = asyncio.run(timed(chats.inlet([USER], files=[late])))
            expect(seconds < AT_ONCE, f"{seconds} s")
            foreword.start()
            chats.set(retry_seconds=0)
            chats.time_is_over()
            inlet(late)
            expect("late.txt" in foreword.uploads("c"), foreword.uploads("c"))
        quiet_about(chats, "late.txt", "Übersicht")


def page(setting: Setting, report: Report) -> None:
    """What docs/clients/open-webui.md says of the valves."""

    def shown(value: object) -> str:
        if isinstance(value, bool):
            return "on" if value else "off"
        return (f"`{value}`" if value else "empty") if isinstance(value, str) else f"{value:g}"

    with report.case("filter: the page names all valves, and their defaults"):
        table = PAGE.read_text().partition("| Valve | Default |")[2].partition("\n\n")[0]
        fields = load().Filter.Valves.model_fields
        rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", table, re.MULTILINE)
        same(rows, [(name, shown(field.default)) for name, field in fields.items()])
