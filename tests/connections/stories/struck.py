"""Servers that are killed, stopped and started again while somebody asks for the prompt all the time."""

import signal
import threading
import time
from pathlib import Path

import peers
from harness import Background, Report, expect, same, until
from peers import Setting, failed, peer_process, peer_processes, records, words
from processes import alive, all_gone, command_line, descendants, strike
from serving import Foreword

SLOWEST = 2.0


class Asker:
    """Asks for the prompt without a pause, for chats old and new, and remembers what was not right."""

    def __init__(self, foreword: Foreword):
        self.foreword = foreword
        self.wrong: list[str] = []
        self.count, self.longest = 0, 0.0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.ask, daemon=True)

    def __enter__(self) -> "Asker":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join(10)

    def ask(self) -> None:
        while not self.over.is_set():
            started = time.monotonic()
            # Every other chat is new, so that its prompt is made and not remembered.
            chat = "old" if self.count % 2 else f"new-{self.count}"
            try:
                answer = self.foreword.get("/system-prompt", {"X-Chat-Id": chat}, timeout=10)
                if answer.status != 200:
                    self.wrong.append(f"{answer.status} {answer.text[:100]}")
            except OSError as error:
                self.wrong.append(repr(error))
            self.longest = max(self.longest, time.monotonic() - started)
            self.count += 1
            self.over.wait(0.005)


def run(setting: Setting, report: Report) -> None:
    directory = setting.directory("raw")
    slow_record, hung_record = directory / "slow", directory / "hangs"
    # One for each case: the pause before one is started again grows with each of its ends.
    cases = ("idle", "called", "twice", "dies", "frozen", "orphan")
    with peers.fast(setting) as fast:
        connections = {
            "everything": peers.everything(setting),
            "slow": peers.raw("slow-list", record=slow_record),
            "stubborn": peers.raw("stubborn"),
            "hangs": peers.raw(record=hung_record, timeout=3),
            "fast": {"url": fast.url, "timeout": 3},
        } | {name: peers.raw(record=directory / name, timeout=3) for name in cases}
        with Foreword(setting, connections) as foreword, Asker(foreword) as asker:
            with report.case("struck: the prompt is there before any server is"):
                until(lambda: asker.count, "a first answer")
            with report.case("struck: killed while it lists its tools, it is asked again"):
                until(lambda: records(slow_record, "listing"), "it lists")
                strike(peer_process(foreword, "slow-list"))
                until(lambda: len(records(slow_record, "started")) > 1, "it is started again")
            foreword.ready(*connections, within=60)
            idle(report, foreword, "everything", "server-everything")
            idle(report, foreword, "idle", str(directory / "idle"))
            arguments = {"duration": 20}
            called(report, foreword, "everything", "server-everything", "trigger-long-running-operation", arguments)
            called(report, foreword, "called", str(directory / "called"), "wait", {"seconds": 20})
            twice(report, foreword, str(directory / "twice"))
            dies_by_itself(report, foreword)
            hangs(report, foreword, hung_record)
            frozen(report, foreword, str(directory / "frozen"))
            supervisor_killed(report, foreword, str(directory / "orphan"))
            stubborn_orphan(report, foreword)
            over_http(report, foreword, fast)
            report.say(f"{asker.count} prompts meanwhile, the slowest in {asker.longest * 1000:.0f} ms")
        with report.case("struck: every prompt meanwhile was there, and in time"):
            same(asker.wrong[:5], [])
            expect(asker.count > 100, f"only {asker.count}")
            expect(asker.longest < SLOWEST, f"one took {asker.longest:.2f} s")


def idle(report: Report, foreword: Foreword, name: str, word: str) -> None:
    with report.case(f"struck: {name}: killed while idle, it comes back"):
        killed = peer_process(foreword, word)
        strike(killed)
        until(lambda: another(foreword, word, killed), "another process")
        foreword.ready(name)


def called(report: Report, foreword: Foreword, name: str, word: str, slow_tool: str, arguments: dict) -> None:
    with report.case(f"struck: {name}: killed in a call, the call is an error that names it, and it comes back"):
        killed = peer_process(foreword, word)
        call = Background(foreword.call, f"{name}__{slow_tool}", arguments)
        time.sleep(0.3)
        expect(call.thread.is_alive(), f"the call was over at once: {call.result} {call.error}")
        strike(killed)
        failed(call.wait(5), name)
        until(lambda: another(foreword, word, killed), "another process")
        foreword.ready(name)


def twice(report: Report, foreword: Foreword, word: str) -> None:
    with report.case("struck: twice: killed twice in a row, it comes back, and once"):
        for _ in range(2):
            killed = peer_process(foreword, word)
            strike(killed)
            until(lambda killed=killed: another(foreword, word, killed), "another process")
        foreword.ready("twice")
        same(len(peer_processes(foreword, word)), 1, "processes of it")


def another(foreword: Foreword, word: str, old: int) -> list[int]:
    return [pid for pid in peer_processes(foreword, word) if pid != old]


def dies_by_itself(report: Report, foreword: Foreword) -> None:
    with report.case("struck: dies: one that ends in a call makes it an error that names it, and comes back"):
        failed(foreword.call("dies__die"), "dies")
        until(lambda: words(foreword.call("dies__say", {"text": "back"})) == "back", "it answers again")
        foreword.ready("dies")


def hangs(report: Report, foreword: Foreword, record: Path) -> None:
    with report.case("struck: hangs: a call without an answer is an error in time, and the server is told"):
        started = time.monotonic()
        failed(foreword.call("hangs__hang"), "hangs")
        expect(2 < time.monotonic() - started < 8, f"after {time.monotonic() - started:.1f} s, not 3")
        # What nobody waits for any more must not be left running there.
        until(lambda: "notifications/cancelled" in methods(record), "cancelled at the peer", 5)
        same(words(foreword.call("hangs__say", {"text": "x"})), "x", "another call")


def methods(record: Path) -> list[str]:
    return [line["message"].get("method", "") for line in records(record, "received")]


def frozen(report: Report, foreword: Foreword, word: str) -> None:
    with report.case("struck: frozen: a process that is stopped makes calls errors in time, and answers when it goes on"):
        process = peer_process(foreword, word)
        strike(process, signal.SIGSTOP)
        try:
            failed(foreword.call("frozen__say", {"text": "x"}, timeout=15), "frozen")
        finally:
            if alive(process):
                strike(process, signal.SIGCONT)
        until(lambda: words(foreword.call("frozen__say", {"text": "back"})) == "back", "it answers again", 40)
        foreword.ready("frozen")


def supervisor_killed(report: Report, foreword: Foreword, word: str) -> None:
    with report.case("struck: orphan: its supervisor killed, nothing of the old one is left, and another comes"):
        old = peer_process(foreword, word)
        kill_supervisors(foreword, word)
        until(lambda: not alive(old), "the old one is gone", 5)
        until(lambda: another(foreword, word, old), "another process")
        foreword.ready("orphan")


def stubborn_orphan(report: Report, foreword: Foreword) -> None:
    with report.case("struck: stubborn: its supervisor killed, a program that ignores every polite end goes with it"):
        program, child = sorted(until(lambda: two(foreword), "its processes"), key=parent_is_supervisor, reverse=True)
        try:
            kill_supervisors(foreword, "stubborn")
            all_gone([program], 8)
        finally:
            # Who made a session of its own is out of reach then.
            if alive(child):
                strike(child)
        foreword.ready("stubborn")


def two(foreword: Foreword) -> list[int] | None:
    found = peer_processes(foreword, "stubborn")
    return found if len(found) == 2 else None


def parent_is_supervisor(pid: int) -> bool:
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return "child-init" in command_line(parent)


def kill_supervisors(foreword: Foreword, word: str) -> None:
    lines = {pid: command_line(pid) for pid in descendants(foreword.process.pid)}
    supervisors = [pid for pid, line in lines.items() if "child-init" in line and any(word in part for part in line)]
    expect(supervisors, "it has no supervisor")
    for pid in supervisors:
        strike(pid)


def over_http(report: Report, foreword: Foreword, fast: peers.HttpPeer) -> None:
    with report.case("struck: fast: killed in a call, the call is an error that names it"):
        call = Background(foreword.call, "fast__wait", {"seconds": 20})
        time.sleep(0.5)
        expect(call.thread.is_alive(), f"the call was over at once: {call.result} {call.error}")
        fast.kill()
        failed(call.wait(5), "fast")
    with report.case("struck: fast: while it is away a call is an error that names it, and its tools stay in the prompt"):
        failed(foreword.call("fast__add", {"a": 1}), "fast")
        expect("fast__weather" in foreword.prompt(), "its tools are gone from the prompt")
    with report.case("struck: fast: started again, it answers again"):
        fast.start()
        until(lambda: words(foreword.call("fast__add", {"a": 1})) == "2", "it answers again", 70)
        foreword.ready("fast", within=70)
    with report.case("struck: fast: stopped, a call is an error in time; going on, it answers again"):
        fast.stop()
        started = time.monotonic()
        failed(foreword.call("fast__add", {"a": 1}), "fast")
        expect(time.monotonic() - started < 8, f"after {time.monotonic() - started:.1f} s, not 3")
        fast.go_on()
        until(lambda: words(foreword.call("fast__add", {"a": 1})) == "2", "it answers again", 40)
        foreword.ready("fast", within=70)
    with report.case("struck: older: a server that forgot its session is greeted anew"):
        with peers.older(foreword.setting) as older:
            foreword.configure({"older": {"url": older.url}, "fast": {"url": fast.url, "timeout": 3}})
            foreword.ready("older")
            same(words(foreword.call("older__say", {"text": "first"})), "first")
            older.kill()
            older.start()
            until(lambda: words(foreword.call("older__say", {"text": "again"})) == "again", "it answers again", 40)
            foreword.ready("older", within=40)
