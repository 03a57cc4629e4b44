"""What a peer gets to know, what is left of it afterwards, and what an edit of the file does while all runs."""

import json
import time
import urllib.parse
from pathlib import Path

import peers
from harness import Background, Report, expect, same, tell, until
from peers import Setting, failed, peer_process, peer_processes, records, words
from processes import alive, all_gone, command_line, descendants
from serving import Foreword
from wire import Caller, RpcError

ALWAYS = {"PATH", "HOME", "LANG", "TMPDIR"}
# What Python puts there by itself.
PYTHONS_OWN = {"LC_CTYPE"}


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, environment, edits, in_the_configuration, who_may_call, strict_sessions, headers, nothing_left)


def environment(setting: Setting, report: Report) -> None:
    directory = setting.directory("cwd").resolve()
    connections = {
        "plain": peers.raw(env={"GIVEN": "as it is", "FILLED": "<${OF_FOREWORD}>", "LANG": "C"}, cwd=str(directory)),
        "bare": peers.raw(),
        "asks": peers.raw(env={"A": "${NOT_THERE_AT_ALL}"}),
    }
    connections["plain"]["args"] = [*connections["plain"]["args"][:-1], "${THE_MODE}"]
    with Foreword(setting, connections, environment={"OF_FOREWORD": "filled $X ${Y}", "THE_MODE": "plain"}) as foreword:
        foreword.ready("plain", "bare")
        with report.case("isolated: a peer's environment is what is configured and four names, never Foreword's"):
            told = json.loads(words(foreword.call("bare__environment")))
            found = told["environment"].keys() - PYTHONS_OWN
            expect(found <= ALWAYS, f"also {sorted(found - ALWAYS)}")
            expect("PATH" in found, sorted(found))
        with report.case("isolated: a peer has no other open file, and takes every signal"):
            same((told["descriptors"], told["blocked"]), ([], []))
        with report.case("isolated: what is configured is there, filled once"):
            told = json.loads(words(foreword.call("plain__environment")))
            same(told["environment"]["GIVEN"], "as it is")
            same(told["environment"]["FILLED"], "<filled $X ${Y}>")
            same(told["environment"]["LANG"], "C")
            same(told["directory"], str(directory))
            same(told["arguments"], ["plain"])
            expect("OF_FOREWORD" not in told["environment"], "a name that was only read is handed on")
        with report.case("isolated: a variable that is missing refuses its connection, by name"):
            entry = foreword.in_state("asks", "refused")
            expect("NOT_THERE_AT_ALL" in entry["last_error"], entry)
        with report.case("isolated: no value of a variable is in the status or in the log"):
            expect("filled $X" not in json.dumps(foreword.status()) + foreword.log(), "it is")
        with report.case("isolated: the start lines name each connection that is exposed"):
            expect("plain" in foreword.log() and "bare" in foreword.log(), foreword.log()[:1000])


def edits(setting: Setting, report: Report) -> None:
    directory = setting.directory("edits")
    one, two = peers.raw(record=directory / "one"), peers.raw(record=directory / "two")
    with Foreword(setting) as foreword:
        file = foreword.data / "connections.json"
        with report.case("isolated: edits: a file that comes later is read"):
            foreword.configure({"one": one})
            foreword.ready("one", within=5)
        with report.case("isolated: edits: one is added, and the other is not started again"):
            # Written in place, as some editors do.
            file.write_text(json.dumps({"mcpServers": {"one": one, "two": two}}))
            foreword.ready("two", within=5)
            same(len(records(directory / "one", "started")), 1, "starts of the other")
        with report.case("isolated: edits: one is disabled: not called, not listed, not running"):
            process = peer_processes_of(foreword, directory / "two")[0]
            foreword.configure({"one": one, "two": two | {"disabled": True}})
            foreword.in_state("two", "disabled", 5)
            until(lambda: "two__say" not in foreword.tools(), "not listed", 2)
            until(lambda: "two__say" not in foreword.prompt(), "not in the prompt", 2)
            until(lambda: not alive(process), "not running", 10)
            refused(foreword, "two__say", {"text": "x"})
        with report.case("isolated: edits: broken JSON keeps the last good file, and is told"):
            foreword.configure('{"mcpServers": {"one": ')
            until(lambda: foreword.status()["errors"], "an error", 5)
            same(words(foreword.call("one__say", {"text": "still"})), "still")
            expect("one__say" in foreword.prompt(), "it is gone from the prompt")
            same(foreword.get("/readyz").status, 200)
        with report.case("isolated: edits: mended, the error goes"):
            foreword.configure({"one": one, "two": two})
            foreword.ready("two", within=5)
            until(lambda: not foreword.status()["errors"], "no error", 5)
        with report.case("isolated: edits: a mistake in one connection leaves the others alone, and is told by name"):
            both = {"command": "x", "url": "http://127.0.0.1:9/"}
            wrong = {"both": both, "neither": {}, "bad__name": two, "more": two | {"no_such_setting": 3}}
            foreword.configure({"one": one, "two": two} | wrong)
            until(lambda: "both" in json.dumps(foreword.status()), "the new file", 5)
            for name in wrong:
                entry = foreword.servers()[name]
                expect(entry["last_error"] or entry["problems"], f"nothing is said of {entry}")
            same(words(foreword.call("one__say", {"text": "still"})), "still")
        with report.case("isolated: edits: another argument starts that one anew, and no other"):
            starts = len(records(directory / "one", "started"))
            foreword.configure({"one": one, "two": peers.raw("types")})
            until(lambda: "two__typed" in foreword.tools(), "the new one", 5)
            same(len(records(directory / "one", "started")), starts, "starts of the other")
        with report.case("isolated: edits: a call in flight to one that is not touched goes on"):
            call = Background(foreword.call, "one__wait", {"seconds": 1.5})
            until(lambda: records(directory / "one", "waiting"), "it waits")
            foreword.configure({"one": one})
            until(lambda: "two" not in foreword.servers(), "it is gone", 5)
            same(words(call.wait()), "waited to the end")
        with report.case("isolated: edits: a call in flight to one that is taken away is an error that names it"):
            call = Background(foreword.call, "one__wait", {"seconds": 20})
            until(lambda: len(records(directory / "one", "waiting")) > 1, "it waits")
            process = peer_processes_of(foreword, directory / "one")[0]
            foreword.configure({})
            failed(call.wait(10), "one")
            until(lambda: not alive(process), "not running", 10)
            same(foreword.tools_prompt(), "")
        with report.case("isolated: edits: one is taken away while it is started, and nothing of it is left"):
            foreword.configure({"mute": peers.raw("mute", record=directory / "mute")})
            process = until(lambda: peer_processes_of(foreword, directory / "mute"), "it is started")[0]
            foreword.configure({})
            until(lambda: not alive(process), "not running", 10)
            same(foreword.servers(), {})
        with report.case("isolated: edits: of many in a row the last one counts, and nothing of the others is left"):
            for number in range(30):
                foreword.configure({f"n{number % 3}": peers.raw("types" if number % 2 else "plain")})
                time.sleep(0.1)
            foreword.configure({"last": peers.raw()})
            foreword.ready("last", within=5)
            same(list(foreword.servers()), ["last"])
            until(lambda: len(peer_processes(foreword, "raw.py")) == 1, "one process", 10)
        with report.case("isolated: edits: the file is taken away, and with it every connection"):
            foreword.configure({"one": one})
            foreword.ready("one", within=5)
            file.unlink()
            until(lambda: not foreword.servers(), "none is left", 5)


def in_the_configuration(setting: Setting, report: Report) -> None:
    foreword = Foreword(setting, {"one": peers.raw("types"), "two": peers.raw()})
    raw = peers.raw()
    lines = ["[connections.one]", f"command = {json.dumps(raw['command'])}", f"args = {json.dumps(raw['args'])}"]
    (foreword.data / "foreword.toml").write_text("\n".join(lines))
    with foreword:
        foreword.ready("one", "two")
        with report.case("isolated: a connection of the configuration counts, and one of the file by its name is told"):
            same(words(foreword.call("one__say", {"text": "x"})), "x")
            expect("one__typed" not in foreword.tools(), "the file's is there")
            expect("`one`" in " ".join(foreword.status()["errors"]), foreword.status()["errors"])
    with Foreword(setting, {"plain": raw | {"timeout": 10}}, environment={"FOREWORD_HTTP__TIMEOUT_SECONDS": "1"}) as foreword:
        foreword.ready("plain")
        with report.case("isolated: the time limit of a call is its connection's, not that of other requests"):
            same(words(foreword.call("plain__wait", {"seconds": 2})), "waited to the end")
    with Foreword(setting, {"plain": raw}, environment={"FOREWORD_API_KEY": "k"}) as foreword:
        with report.case("isolated: with a key set, who has none sees and calls nothing"):
            for body in (None, {"tools": []}):
                same(foreword.get("/api/prompts/mcp-tools", body=body).status, 401)
            same(foreword.caller().post("tools/call", {"name": "plain__say", "arguments": {"text": "x"}}).status, 401)
            same(foreword.caller().post("tools/list").status, 401)
            expect("plain" not in foreword.get("/readyz").text, "`/readyz` names it to everybody")


def peer_processes_of(foreword: Foreword, record: Path) -> list[int]:
    below = descendants(foreword.process.pid)
    return [pid for pid in below if str(record) in command_line(pid) and "child-init" not in command_line(pid)]


def refused(foreword: Foreword, tool: str, arguments: dict, headers: dict[str, str] | None = None) -> None:
    try:
        result = foreword.call(tool, arguments, headers=headers)
    except RpcError:
        return
    expect(result.get("isError"), f"it was called: {result}")


def who_may_call(setting: Setting, report: Report) -> None:
    directory = setting.directory("who")
    connections = {
        "mails": peers.raw(record=directory / "mails", users=["*@example.com", "Eve@other.example"]),
        "profiled": peers.raw(record=directory / "profiled", profiles=["other"]),
    }
    with Foreword(setting, connections) as foreword:
        foreword.ready(*connections)

        def may(tool: str, **headers: str) -> None:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            same(words(foreword.call(tool, {"text": "hello"}, headers=named)), "hello")

        def may_not(tool: str, record: str, **headers: str) -> None:
            before = calls(directory / record)
            refused(foreword, tool, {"text": "x"}, {name.replace("_", "-"): value for name, value in headers.items()})
            same(calls(directory / record), before, "calls that reached the peer")

        with report.case("isolated: users: those who match may call, the others may not"):
            may("mails__say", X_User_Email="alice@example.com", X_Chat_Id="alice")
            may("mails__say", X_User_Email="eve@other.example", X_Chat_Id="eve")
            may_not("mails__say", "mails", X_User_Email="bob@other.example", X_Chat_Id="bob")
            may_not("mails__say", "mails", X_User_Email="alice@example.com.evil.example", X_Chat_Id="mallory")
            may_not("mails__say", "mails", X_Chat_Id="nobody")
        with report.case("isolated: profiles: those who use one of them may call, the others may not"):
            may("profiled__say", X_Profile_Id="other", X_Chat_Id="p-1")
            may_not("profiled__say", "profiled", X_Chat_Id="p-2")
            may_not("profiled__say", "profiled", X_Profile_Id="default", X_Chat_Id="p-3")
        with report.case("isolated: who names no chat gets the peer's result and nothing added"):
            result = Caller(f"{foreword.url}/mcp", headers={"X-User-Email": "a@example.com"}).call("mails__say", {"text": "x"})
            same(result["content"], [{"type": "text", "text": "x"}])
        with report.case("isolated: the list is the same for all"):
            lists = [
                foreword.caller(headers=headers).listed("tools/list", "tools")
                for headers in ({}, {"X-User-Email": "bob@other.example"}, {"X-Profile-Id": "other"})
            ]
            expect(lists[0] == lists[1] == lists[2], "it is not")


def strict_sessions(setting: Setting, report: Report) -> None:
    record = setting.directory("strict") / "record"
    with Foreword(setting, {"plain": peers.raw(record=record)}, environment={"FOREWORD_SESSION__MODE": "strict"}) as foreword:
        foreword.ready("plain")
        with report.case("isolated: where a chat has to be named, no call without one reaches a peer"):
            result = Caller(f"{foreword.url}/mcp").call("plain__say", {"text": "x"})
            expect(result.get("isError") and "X-Chat-Id" in words(result), result)
            same(calls(record), 0)
            same(words(foreword.call("plain__say", {"text": "x"})), "x")


def calls(record: Path) -> int:
    return sum(line["message"].get("method") == "tools/call" for line in records(record, "received"))


def headers(setting: Setting, report: Report) -> None:
    record = setting.directory("headers") / "record"
    with peers.fast(setting, record) as fast, peers.older(setting, "sse") as sse:
        sent = {"X-Mail": "{user_email}", "X-Chat": "in {chat_id}", "Authorization": "Bearer ${TOKEN}", "X-Braces": "{other}"}
        connections = {"fast": {"url": fast.url, "headers": sent, "refresh": 1}, "sse": {"url": sse.url}}
        with Foreword(setting, connections, environment={"TOKEN": "t-0-k-e-n"}) as foreword:
            foreword.ready("fast", within=60)
            with report.case("isolated: headers: a call has the session's values"):
                foreword.call("fast__add", {"a": 1}, headers={"X-User-Email": "Alice@example.com", "X-Chat-Id": "Chat-1"})
                got = requests(record, "tools/call")[-1]
                same(urllib.parse.unquote(got["x-mail"]), "alice@example.com")
                same(urllib.parse.unquote(got["x-chat"]), "in chat-1")
                same((got["authorization"], got["x-braces"]), ("Bearer t-0-k-e-n", "{other}"))
            with report.case("isolated: headers: a call without an e-mail has no braces in their place"):
                foreword.call("fast__add", {"a": 1}, headers={"X-Chat-Id": "chat-2"})
                got = requests(record, "tools/call")[-1]
                expect("user_email" not in got.get("x-mail", ""), got.get("x-mail"))
                same(urllib.parse.unquote(got["x-chat"]), "in chat-2")
            with report.case("isolated: headers: what a session brings cannot end or add to a header"):
                chat = 'a,b;c="d"%41<e>(f)\'g'
                foreword.call("fast__add", {"a": 1}, headers={"X-Chat-Id": chat})
                got = requests(record, "tools/call")[-1]["x-chat"]
                same(urllib.parse.unquote(got), f"in {chat.lower()}")
                expect(not set(got) & set(',;"<>()'), got)
            with report.case("isolated: headers: no call has those of another"):

                def call(number: int) -> None:
                    who = {"X-User-Email": f"u{number}@example.com", "X-Chat-Id": f"together-{number}"}
                    foreword.call("fast__steps", {"count": 5}, headers=who)

                running = [Background(call, number) for number in range(12)]
                for one in running:
                    one.wait()
                pairs = {
                    (urllib.parse.unquote(got["x-mail"])[1:].split("@")[0], urllib.parse.unquote(got["x-chat"])[12:])
                    for got in requests(record, "tools/call")
                    if "together" in got["x-chat"]
                }
                same(pairs, {(str(number), str(number)) for number in range(12)})
            with report.case("isolated: headers: the list is asked for without them, but with the fixed ones"):
                seen = len(requests(record, "tools/list"))
                until(lambda: len(requests(record, "tools/list")) > seen, "it was asked again")
                for got in requests(record, "tools/list"):
                    expect(got["authorization"] == "Bearer t-0-k-e-n", got)
                    expect("x-mail" not in got and "x-chat" not in got, got)
            with report.case("isolated: headers: the token is not in the status or in the log"):
                expect("t-0-k-e-n" not in json.dumps(foreword.status()) + foreword.log(), "it is")
            with report.case("isolated: a server of the older HTTP with SSE is an error that says so"):
                entry = until(lambda: with_error(foreword, "sse"), "an error", 45)
                expect("sse" in entry["last_error"].lower() or "server-sent" in entry["last_error"].lower(), entry)


def with_error(foreword: Foreword, name: str) -> dict | None:
    entry = foreword.servers()[name]
    return entry if entry["last_error"] else None


def requests(record: Path, method: str) -> list[dict]:
    return [line["headers"] for line in records(record, "request") if line["method"] == method]


def nothing_left(setting: Setting, report: Report) -> None:
    for end in ("kill -9", "SIGTERM", "kill -9 of `foreword stdio`", "the end of `foreword stdio`"):
        with report.case(f"isolated: nothing of the peers' process trees is left after {end}"):
            directory = setting.directory("left")
            connections = {"plain": peers.raw(), "everything": peers.everything(setting)}
            with Foreword(setting, connections) as foreword:
                if "stdio" in end:
                    over_stdio(foreword, directory, killed="kill" in end)
                else:
                    over_http(foreword, directory, killed="kill" in end)


def over_http(foreword: Foreword, directory: Path, killed: bool) -> None:
    foreword.ready("plain", "everything")
    same(words(foreword.call("plain__daemonise", {"file": str(directory / "pid")})), "started")
    pids = left_behind(directory, foreword.process.pid)
    expect(peer_process(foreword, "server-everything") in pids, "the Node server is not below Foreword")
    if killed:
        foreword.kill()
    else:
        foreword.stop()
    all_gone(pids, 5)


def over_stdio(foreword: Foreword, directory: Path, killed: bool) -> None:
    with foreword.stdio() as client:
        until(lambda: "plain__say" in [tool["name"] for tool in client.listed("tools/list", "tools")], "its tools")
        same(words(client.call("plain__daemonise", {"file": str(directory / "pid")})), "started")
        pids = left_behind(directory, client.process.pid)
        if killed:
            client.process.kill()
        else:
            client.close(15)
        all_gone(pids, 5)


def left_behind(directory: Path, root: int) -> list[int]:
    """Everything below `root`, and the process that a peer sent away."""
    daemon = int(until(lambda: (directory / "pid").exists() and (directory / "pid").read_text(), "the daemon"))
    expect(alive(daemon), "the daemon is not alive")
    return [daemon, *descendants(root)]
