"""Servers that do not keep to what HTTP, pipes and processes are good for."""

import json
import signal
import time
from pathlib import Path

import peers
from harness import Background, Report, expect, same, tell, until
from peers import Setting, failed, peer_process, peer_processes, records, words
from processes import alive, all_gone, strike
from servers.raw import LINES, RESULTS
from servers.rude import Rude
from serving import Foreword
from stories.hostile import MEGABYTE, processor_time

TOKEN = "s-e-c-r-e-t"


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, over_http, secrets, over_pipes, odd_answers)


def endings(setting: Setting, report: Report) -> None:
    tell(setting, report, deaf_to_the_end, many_calls, stubborn)


def over_http(setting: Setting, report: Report) -> None:
    with Rude() as rude:
        never = ("unauthorised", "page", "broken", "redirect", "round-and-round", "hang-up", "endless-list")
        endless = ("endless-result", "endless-event")
        bad_calls = ("empty", "accepted", "missing", "failing", "cut", "cut-event", "trickle")
        headers = {"Authorization": "Bearer ${TOKEN}", "X-Api-Key": "${TOKEN}"}
        connections = {
            name: {"url": f"{rude.url}/{name}", "timeout": 4, "headers": headers}
            for name in (*never, *endless, *bad_calls, "bomb", "silent", "wrong-id")
        }
        with Foreword(setting, connections, environment={"TOKEN": TOKEN}) as foreword:
            for name in never:
                with report.case(f"rude: over HTTP, {name}: an error that is told, and no connection"):
                    entry = until(lambda name=name: with_error(foreword, name), "an error", 45)
                    expect(entry["state"] in ("down", "connecting"), entry)
                    expect(len(entry["last_error"]) < 700, entry["last_error"])
            with report.case("rude: over HTTP, unauthorised: the error says what to look at"):
                error = foreword.servers()["unauthorised"]["last_error"].lower()
                expect("401" in error or "unauthor" in error or "auth" in error, error)
            with report.case("rude: over HTTP: keys do not follow a redirect to another server"):
                got = [headers for path, headers in rude.requests if path == "/page" and "x-api-key" in headers]
                same(sum(headers.get("host") == rude.elsewhere.removeprefix("http://") for headers in got), 0)
            with report.case("rude: over HTTP: an answer without an end is an error that names the server, and bounded"):
                for name in endless:
                    foreword.ready(name)
                    failed(foreword.call(f"{name}__thing"), name)
                peak = foreword.memory_peak()
                expect(peak < 250 * MEGABYTE, f"{peak // MEGABYTE} MB at the most")
            with report.case("rude: over HTTP: a compressed answer that grows without an end is bounded too"):
                foreword.ready("bomb")
                failed(foreword.call("bomb__thing"), "bomb")
                peak = foreword.memory_peak()
                expect(peak < 250 * MEGABYTE, f"{peak // MEGABYTE} MB at the most")
            for name in bad_calls:
                with report.case(f"rude: over HTTP, {name}: the call is an error that names the server, in time"):
                    foreword.ready(name)
                    started = time.monotonic()
                    failed(foreword.call(f"{name}__thing", timeout=15), name)
                    expect(time.monotonic() - started < 7, f"after {time.monotonic() - started:.1f} s, not 4")
            with report.case("rude: over HTTP: an answer to another question is none"):
                foreword.ready("wrong-id")
                failed(foreword.call("wrong-id__thing"), "wrong-id")
            with report.case("rude: over HTTP: no key is in the status, the prompt, the log or `/readyz`"):
                shown = json.dumps(foreword.status()) + foreword.prompt() + foreword.log() + foreword.get("/readyz").text
                expect(TOKEN not in shown, "it is")


def with_error(foreword: Foreword, name: str) -> dict | None:
    entry = foreword.servers()[name]
    return entry if entry["last_error"] else None


def secrets(setting: Setting, report: Report) -> None:
    with Rude() as rude:
        broken = rude.url.removeprefix("http://")
        connections = {
            "query": {"url": f"{rude.url}/broken?key=${{TOKEN}}"},
            "refused": {"url": "http://127.0.0.1:9/mcp?key=${TOKEN}"},
            "password": {"url": f"http://user:${{TOKEN}}@{broken}/broken"},
            "program": {"command": "/no/such/${TOKEN}"},
            "argument": peers.raw("exits"),
        }
        connections["argument"]["args"] = [*connections["argument"]["args"], "--record", "/dev/null/${TOKEN}"]
        with Foreword(setting, connections, environment={"TOKEN": TOKEN}) as foreword:
            for name in connections:
                with report.case(f"rude: secrets: what `${{…}}` stood for ({name}) is not told"):
                    until(lambda name=name: with_error(foreword, name), "an error", 45)
                    shown = json.dumps(foreword.servers()[name])
                    expect(TOKEN not in shown, shown)
            with report.case("rude: secrets: nor is it logged by Foreword, or told to who calls"):
                # What a program writes to its standard error is its own.
                own = [line for line in foreword.log().splitlines() if "argument" not in line]
                expect(TOKEN not in "\n".join(own), [line for line in own if TOKEN in line][:2])


def over_pipes(setting: Setting, report: Report) -> None:
    directory = setting.directory("pipes")
    names = ("closes", "deafened", "stormy", "quick", "large")
    connections = {name: peers.raw(record=directory / name, timeout=4) for name in names}
    with Foreword(setting, connections) as foreword:
        foreword.ready(*names)
        with report.case("rude: one that closes its output in a call makes it an error, is ended, and comes back"):
            process = peer_process(foreword, str(directory / "closes"))
            failed(foreword.call("closes__close_output"), "closes")
            until(lambda: not alive(process), "the old one is gone", 15)
            until(lambda: words(foreword.call("closes__say", {"text": "back"})) == "back", "it answers again", 30)
        with report.case("rude: one that reads nothing any more makes large calls errors in time, and harms no other"):
            same(words(foreword.call("deafened__deafen")), "goodbye")
            started = time.monotonic()
            calls = [Background(foreword.call, "deafened__say", {"text": "y" * 300_000}) for _ in range(8)]
            same(words(foreword.call("quick__say", {"text": "x"})), "x", "another")
            for call in calls:
                failed(call.wait(15), "deafened")
            expect(time.monotonic() - started < 12, f"after {time.monotonic() - started:.1f} s, not 4")
            expect(foreword.get("/system-prompt", timeout=2).status == 200, "no prompt")
        with report.case("rude: who says all the time that its list has changed is not asked all the time"):
            before, busy, started = lists(directory / "stormy"), processor_time(foreword), time.monotonic()
            foreword.call("stormy__storm", {"count": 20_000})
            time.sleep(3)
            seconds = time.monotonic() - started
            asked = lists(directory / "stormy") - before
            expect(1 <= asked <= 3 * seconds + 2, f"{asked} lists in {seconds:.1f} s")
            expect(processor_time(foreword) - busy < 2.5, f"{processor_time(foreword) - busy:.1f} s of a processor")
        with report.case("rude: 20,000 steps of progress at once neither block nor lose the result"):
            caller = foreword.caller()
            result = caller.call("quick__many_steps", {"count": 20_000}, meta={"progressToken": "p"})
            same(words(result), "all told")
            steps = [message["params"]["progress"] for message in caller.heard if message["method"].endswith("progress")]
            same(steps, sorted(steps), "in order")
            expect(steps, "none came")
        with report.case("rude: a result of 8 MB comes whole"):
            same(len(words(foreword.call("large__large", {"bytes": 8 * MEGABYTE}))), 8 * MEGABYTE)


def deaf_to_the_end(setting: Setting, report: Report) -> None:
    """One that reads nothing is not even told that it is over."""
    for end in ("SIGTERM", "kill -9", "an edit of the file"):
        with report.case(f"rude: one that reads nothing any more is gone after {end}"):
            record = setting.directory("deaf") / "record"
            with Foreword(setting, {"deaf": peers.raw(record=record, timeout=2)}) as foreword:
                foreword.ready("deaf")
                process = peer_process(foreword, str(record))
                same(words(foreword.call("deaf__deafen")), "goodbye")
                # Enough to fill the pipe, so that a write to it is under way when the end comes.
                calls = [Background(foreword.call, "deaf__say", {"text": "y" * 300_000}) for _ in range(4)]
                for call in calls:
                    failed(call.wait(15), "deaf")
                finish(foreword, end, {})
                all_gone([process], 12)


def finish(foreword: Foreword, end: str, connections: dict[str, dict]) -> None:
    if end == "SIGTERM":
        foreword.stop()
    elif end == "kill -9":
        foreword.kill()
    else:
        foreword.configure(connections)


def odd_answers(setting: Setting, report: Report) -> None:
    with Foreword(setting, {"plain": peers.raw(timeout=3), "other": peers.raw()}) as foreword:
        foreword.ready("plain", "other")
        calls = {kind: Background(foreword.call, "plain__odd", {"kind": kind}) for kind in (*RESULTS, *LINES)}
        with report.case("rude: results that are none are errors that name the server, and in time"):
            for kind, call in calls.items():
                if kind in ("no content", "nothing", "a list as structure"):
                    # Others read them with more patience, and so may Foreword.
                    expect("content" in call.wait(8), f"{kind}: {call.result}")
                elif kind == "half a character":
                    got = call.wait(8)
                    expect(words(got) == "\ufffd" or got.get("isError"), f"{kind}: {got}")
                else:
                    failed(call.wait(8), "plain")
        with report.case("rude: after results that are none, the same server answers as ever"):
            until(lambda: words(foreword.call("plain__say", {"text": "x"})) == "x", "it answers", 10)
            same(words(foreword.call("other__say", {"text": "x"})), "x", "another")


def lists(record: Path) -> int:
    return sum(line["message"].get("method") == "tools/list" for line in records(record, "received"))


def many_calls(setting: Setting, report: Report) -> None:
    with Foreword(setting, {"plain": peers.raw()}) as foreword:
        foreword.ready("plain")
        with report.case("rude: sixty calls at once each get their own answer"):
            calls = {number: Background(foreword.call, "plain__say", {"text": f"n{number}"}) for number in range(60)}
            same({number: words(call.wait(30)) for number, call in calls.items()}, {n: f"n{n}" for n in calls})
        with report.case("rude: sixty calls in flight when it is killed are all errors, at once"):
            calls = [Background(foreword.call, "plain__wait", {"seconds": 20}) for _ in range(60)]
            time.sleep(1)
            expect(all(call.thread.is_alive() for call in calls), "some were over at once")
            strike(peer_process(foreword, "plain"))
            for call in calls:
                failed(call.wait(5), "plain")


def stubborn(setting: Setting, report: Report) -> None:
    for end in ("SIGTERM", "kill -9", "an edit of the file"):
        with report.case(f"rude: one that ignores every polite end, with a child that does too, is gone after {end}"):
            with Foreword(setting, {"stubborn": peers.raw("stubborn"), "plain": peers.raw()}) as foreword:
                foreword.ready("stubborn", "plain")
                pids = until(lambda: two(foreword), "both processes")
                finish(foreword, end, {"plain": peers.raw()})
                all_gone(pids, 10)
    with report.case("rude: one that is stopped is gone after SIGTERM all the same"):
        with Foreword(setting, {"plain": peers.raw()}) as foreword:
            foreword.ready("plain")
            process = peer_process(foreword, "plain")
            strike(process, signal.SIGSTOP)
            foreword.stop()
            until(lambda: not alive(process), "it is gone", 10)


def two(foreword: Foreword) -> list[int] | None:
    found = peer_processes(foreword, "stubborn")
    return found if len(found) == 2 else None
