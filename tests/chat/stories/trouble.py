"""Clients that leave, upstreams that stall, break off or talk nonsense, and answers that are larger than memory should grow."""

import json
import resource
import socket
import time
from contextlib import ExitStack

import openai
from harness import Background, Report, expect, same, tell
from processes import free_port
from serving import ASK, Foreword, Setting, Wire, behind, chat, in_time, is_prompt
from upstream import CHUNKS, HUGE, MEGABYTE, SLOW_CHUNKS

HARD_LIMIT = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
PATH = "/v1/chat/completions"
# How long a client that left may go on costing.
LEFT_WITHIN = 1.0
# Streams that wait at the same time, and what they may take of memory.
IDLE = 1000
IDLE_MEMORY = 100 << 20
# What an answer of any size may add to the server's memory.
GROWTH = 30 * MEGABYTE


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, leaving, stalling, breaking, unreachable, as_they_come)


def ask(wire: Wire, model: str, stream: bool) -> None:
    wire.post(PATH, {"model": model, "messages": [ASK], "stream": stream})


def leaving(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        for stream in (False, True):
            with report.case(f"trouble: a client that leaves before an answer cancels the request (stream: {stream})"):
                before = upstream.count
                with Wire(foreword.url) as wire:
                    ask(wire, "stall", stream)
                    request = upstream.next(before)
                    left = wire.close()
                expect(upstream.left(request) - left < LEFT_WITHIN, "not in time")
        for model in ("stall-midway", "huge"):
            with report.case(f"trouble: a client that leaves in the middle of a stream cancels the request ({model})"):
                before = upstream.count
                with Wire(foreword.url) as wire:
                    ask(wire, model, stream=True)
                    next(wire.pieces(wire.head()))
                    request = upstream.next(before)
                    left = wire.close()
                expect(upstream.left(request) - left < LEFT_WITHIN, "not in time")
        with report.case("trouble: a client that leaves in the middle of a whole answer cancels the request"):
            before = upstream.count
            with Wire(foreword.url) as wire:
                ask(wire, "huge", stream=False)
                request = upstream.next(before)
                left = wire.close()
            expect(upstream.left(request) - left < LEFT_WITHIN, "not in time")
        with report.case("trouble: the package's own way to leave a stream cancels the request"):
            before = upstream.count
            client = foreword.openai()
            with client.chat.completions.create(model="stall-midway", messages=[ASK], stream=True) as stream:
                same(next(iter(stream)).choices[0].delta.content, CHUNKS[0])
                request = upstream.next(before)
            left = time.monotonic()
            client.close()
            expect(upstream.left(request) - left < LEFT_WITHIN, "not in time")
        with report.case("trouble: nobody else is harmed"):
            same(chat(foreword).status, 200)


def stalling(setting: Setting, report: Report) -> None:
    with behind(setting, settings={"chat.upstream": {"timeout": 2}}) as (foreword, upstream):
        for stream in (False, True):
            with report.case(f"trouble: an upstream that says nothing is 504 at the time limit (stream: {stream})"):
                before, started = upstream.count, time.monotonic()
                response = chat(foreword, "stall", stream=stream)
                took = time.monotonic() - started
                same(response.status, 504, response.body)
                expect(1.5 < took < 6, f"{took:.1f} s")
                expect("chat.upstream.timeout" in response.json()["error"]["message"], response.body)
                expect(upstream.left(upstream.received[before]) - started < 6, "the request is still open")
        with report.case("trouble: the package raises it as its own error"):
            try:
                foreword.openai().chat.completions.create(model="stall", messages=[ASK])
            except openai.InternalServerError as error:
                same(error.status_code, 504)
            else:
                raise AssertionError("no error")
        with report.case("trouble: an upstream that says no more ends the stream with an error"):
            response = chat(foreword, "stall-midway", stream=True)
            broken(response, 2)
        with report.case("trouble: a stream that takes less than the limit is not touched"):
            response = chat(foreword, "slow", stream=True)
            same(response.events()[-1][1], "[DONE]")


def broken(response, chunks: int) -> None:
    """A stream that was well for so many chunks, and ends with an error."""
    same((response.status, response.end), (200, "whole"))
    told = [json.loads(data) for _, data in response.events() if data != "[DONE]"]
    same([event["choices"][0]["delta"]["content"] for event in told[:-1]], CHUNKS[:chunks])
    error = told[-1]["error"]
    expect(error["message"] and error["type"], error)
    expect(b"[DONE]" not in response.body, "it ends as if it were whole")


def breaking(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        with report.case("trouble: an upstream that breaks off in the middle of a stream ends it with an error"):
            broken(chat(foreword, "breaks-off", stream=True), 2)
        with report.case("trouble: the package raises it, after what came"):
            got = []
            try:
                for chunk in foreword.openai().chat.completions.create(model="breaks-off", messages=[ASK], stream=True):
                    got.append(chunk.choices[0].delta.content)
            except openai.APIError as error:
                expect(not isinstance(error, openai.APIConnectionError), f"the connection was cut: {error!r}")
            else:
                raise AssertionError("it ended as if it were whole")
            same(got, CHUNKS[:2])
        for model in ("no-answer", "garbage"):
            with report.case(f"trouble: an upstream whose answer is none is 502 ({model}), and it is asked once"):
                for stream in (False, True):
                    before = upstream.count
                    response = chat(foreword, model, stream=stream)
                    same(response.status, 502, response.body)
                    expect(response.json()["error"]["message"], response.body)
                    same(upstream.count - before, 1, "requests at the upstream")
        with report.case("trouble: half of a whole answer is not told as a whole one"):
            with Wire(foreword.url) as wire:
                ask(wire, "breaks-off", stream=False)
                # It may break off before its head is on its way: then there is no answer at all.
                response = wire.read() if wire.file.peek(1) else None
            if response:
                expect(response.status == 502 or response.end == "cut", f"{response.status} {response.body}")
        with report.case("trouble: a refusal keeps its `Retry-After`"):
            for stream in (False, True):
                response = chat(foreword, "rate-limited", stream=stream)
                same((response.status, response.headers["retry-after"]), (429, "7"))
        with report.case("trouble: nobody else is harmed by any of it"):
            same(chat(foreword).status, 200)
            is_prompt(upstream.last.messages[0], foreword.session())


def unreachable(setting: Setting, report: Report) -> None:
    address = f"http://127.0.0.1:{free_port()}/v1"
    with Foreword(setting, settings={"chat.upstream": {"base_url": address, "api_key": "secret-key"}}) as foreword:
        with report.case("trouble: an upstream that is not there is 502, and its key is not told"):
            for stream in (False, True):
                response = chat(foreword, stream=stream)
                same(response.status, 502, response.body)
                same(set(response.json()["error"]), {"message", "type", "param", "code"})
            expect("secret-key" not in response.body.decode() + foreword.log(), "it is")
        with report.case("trouble: and is noted in the log"):
            expect("upstream" in foreword.log(), foreword.log()[-1000:])
        with report.case("trouble: the prompts are served all the same"):
            same(foreword.get("/readyz").status, 200)
            foreword.session()
    with socket.socket() as deaf:
        # Nobody accepts, and one connection fills the queue: another one waits.
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            limits = {"base_url": f"http://127.0.0.1:{port}/v1", "connect_timeout": 1}
            with Foreword(setting, settings={"chat.upstream": limits}) as foreword:
                with report.case("trouble: an upstream that lets nobody in is given up after `connect_timeout`"):
                    started = time.monotonic()
                    response = chat(foreword)
                    expect(response.status in (502, 504), response.status)
                    expect(0.8 < time.monotonic() - started < 6, f"{time.monotonic() - started:.1f} s")


def as_they_come(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        with report.case("trouble: chunks arrive as they are sent"):
            response = chat(foreword, "slow", stream=True)
            in_time([at for at, data in response.chunks if b"<" in data], upstream.last)
        with report.case("trouble: through the package too"):
            came = []
            for chunk in foreword.openai().chat.completions.create(model="slow", messages=[ASK], stream=True):
                came.append(time.monotonic())
                same(chunk.choices[0].delta.content, f"<{len(came) - 1}>")
            in_time(came, upstream.last)
        with report.case("trouble: forty streams at once, each with its own prompt and all of its chunks"):
            before = upstream.count
            streams = [Background(chat, foreword, "slow", {"X-Chat-Id": f"chat-{n}"}, stream=True) for n in range(40)]
            for stream in streams:
                response = stream.wait()
                same(len(response.events()), SLOW_CHUNKS + 1)
            asked = [request.messages[0]["content"] for request in upstream.received[before:]]
            for number in range(40):
                same(sum(f"in chat chat-{number} with" in content for content in asked), 1, number)


def huge(setting: Setting, report: Report) -> None:
    tell(setting, report, huge_answers, slow_reader, idle_streams)


def huge_answers(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, _):
        # Whatever is made once, at the first requests, is not what is measured.
        for stream in (False, True):
            same(chat(foreword, stream=stream).status, 200)
        for stream in (False, True):
            with report.case(f"huge: 100 MB pass through without being kept (stream: {stream})"):
                before = foreword.forget_memory()
                with Wire(foreword.url, timeout=60) as wire:
                    ask(wire, "huge", stream)
                    response = wire.head()
                    length = sum(map(len, wire.pieces(response)))
                same((response.status, response.end), (200, "whole"))
                expect(length > HUGE, length)
                grown = foreword.memory_peak() - before
                report.say(f"the server grew by {grown / MEGABYTE:.1f} MB (stream: {stream})")
                expect(grown < GROWTH, f"it grew by {grown / MEGABYTE:.0f} MB")


def slow_reader(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        with report.case("huge: a client that does not read makes the upstream wait, and not memory grow"):
            same(chat(foreword, stream=True).status, 200)
            before = foreword.forget_memory()
            with Wire(foreword.url) as wire:
                ask(wire, "huge", stream=True)
                next(wire.pieces(wire.head()))
                request = upstream.last
                # Until nothing moves any more: that it does not go on is what is to be seen.
                written = -1
                while written != request.written:
                    written = request.written
                    time.sleep(0.5)
                expect(written < HUGE // 2, f"{written / MEGABYTE:.0f} MB were taken")
                expect(
                    foreword.memory_peak() - before < GROWTH,
                    f"it grew by {(foreword.memory_peak() - before) / MEGABYTE:.0f} MB",
                )
                report.say(f"{written / MEGABYTE:.1f} MB were taken of an upstream whose client does not read")
                left = wire.close()
            expect(upstream.left(request) - left < LEFT_WITHIN, "not in time")


def idle_streams(setting: Setting, report: Report) -> None:
    # Each is two connections of the server's and, here, one of the client's and one of the upstream's.
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(10_000, HARD_LIMIT), HARD_LIMIT))
    with behind(setting) as (foreword, upstream), ExitStack() as open_streams:
        with report.case("huge: 1,000 idle streams at once take little memory, and nobody waits for them"):
            same(chat(foreword, stream=True).status, 200)
            before, count = foreword.forget_memory(), upstream.count
            for _ in range(IDLE):
                wire = open_streams.enter_context(Wire(foreword.url))
                ask(wire, "stall-midway", stream=True)
                same(wire.head().status, 200)
            same(upstream.count - count, IDLE, "requests at the upstream")
            grown = foreword.memory_peak() - before
            report.say(f"{IDLE} idle streams took {grown / MEGABYTE:.1f} MB")
            expect(grown < IDLE_MEMORY, f"they took {grown / MEGABYTE:.0f} MB")
            same(chat(foreword).status, 200)
