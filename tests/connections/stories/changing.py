"""A server gets one more tool: who sees it, where, and how soon."""

import time

import peers
from harness import Background, Report, expect, same, tell, until
from peers import Setting, words
from processes import command_line, descendants, strike
from serving import Foreword
from wire import Stdio

WITHIN = 2.0


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, over_stdio, unasked, over_http, unchanged, in_the_workspace)


def over_stdio(setting: Setting, report: Report) -> None:
    control = setting.directory("changing") / "control"
    connections = {"raw": peers.raw(control=control)}
    with Foreword(setting, connections) as foreword, foreword.stdio() as client:
        foreword.ready("raw")
        until(lambda: "raw__say" in listed(client), "the tools over stdio")
        with report.case("changing: `foreword stdio` says that it will tell of its tools"):
            same(client.greeting["capabilities"]["tools"].get("listChanged"), True)
        modern = foreword.caller("modern")
        with modern.listening(toolsListChanged=True) as heard:
            with report.case("changing: 2026-07-28: a listener is acknowledged, tools included"):
                acknowledged = until(lambda: heard[0], "an acknowledgement")
                same(acknowledged["params"]["notifications"], {"toolsListChanged": True})
            # Whatever was remembered must not be what is answered afterwards.
            revision = foreword.get("/system-prompt", {"X-Chat-Id": "c"}).headers["etag"]
            seen_before = [foreword.prompt(), foreword.caller().instructions(), modern.instructions()]
            expect(not any("raw__late" in text for text in seen_before), "it is there already")
            control.write_text("late")
            changed = time.monotonic()
            places = {
                "GET /system-prompt": lambda: "raw__late" in foreword.prompt(),
                "initialize": lambda: "raw__late" in foreword.caller().instructions(),
                "server/discover": lambda: "raw__late" in foreword.caller("modern").instructions(),
                "tools/list, legacy": lambda: "raw__late" in foreword.tools(),
                "tools/list, modern": lambda: "raw__late" in foreword.tools("modern"),
                "the tools prompt": lambda: "raw__late" in foreword.tools_prompt(),
                "the preview": lambda: "raw__late" in preview(foreword),
                "read_me": lambda: "raw__late" in words(foreword.call("read_me")),
                "the listener": lambda: any(message["method"].endswith("tools/list_changed") for message in heard),
                "a client on stdio": lambda: any(
                    message.get("method") == "notifications/tools/list_changed" for message in client.heard
                ),
                "tools/list, stdio": lambda: "raw__late" in listed(client),
            }
            for place, probe in places.items():
                with report.case(f"changing: a new tool of a notifying server is within {WITHIN:g} s in: {place}"):
                    until(probe, place, max(0.05, changed + WITHIN - time.monotonic()))
            with report.case("changing: what all tiers say is still the same text"):
                prompt = foreword.prompt()
                same(foreword.caller().instructions(), prompt, "initialize")
                same(modern.instructions(), prompt, "server/discover")
                same(words(foreword.call("read_me")), prompt, "read_me")
            with report.case("changing: who has the text from before gets the new one"):
                same(foreword.get("/system-prompt", {"X-Chat-Id": "c", "If-None-Match": revision}).status, 200)
            with report.case("changing: the new tool can be called, here and over stdio"):
                expect("late was called" in words(foreword.call("raw__late")), "not over HTTP")
                expect("late was called" in words(client.call("raw__late")), "not over stdio")
            with report.case("changing: a tool that is taken away goes as soon"):
                control.write_text("")
                changed = time.monotonic()
                until(lambda: "raw__late" not in foreword.prompt(), "gone from the prompt", WITHIN)
                until(lambda: "raw__late" not in foreword.tools(), "gone from the list", WITHIN)


def listed(client: Stdio) -> list[str]:
    return [tool["name"] for tool in client.listed("tools/list", "tools")]


def preview(foreword: Foreword) -> str:
    return foreword.ok("/api/prompts/compose?chat_id=c").text


def unasked(setting: Setting, report: Report) -> None:
    """Over stdio, who may be told anything at all."""
    control = setting.directory("unasked") / "control"
    with Foreword(setting, {"raw": peers.raw(control=control)}) as foreword:
        command = [str(setting.binary), "stdio", "--chat", "c", "--data", str(foreword.data)]
        with Stdio(command, foreword.environment, foreword.log_file, "modern") as client:
            until(lambda: "raw__say" in listed(client), "the tools over stdio")
            said = len(client.heard)
            control.write_text("first")
            with report.case("changing: 2026-07-28 over stdio: who does not listen is told nothing"):
                until(lambda: "raw__first" in listed(client), "the list")
                same([message for message in client.heard[said:] if "id" not in message], [])
            client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            client.hear(lambda message: message.get("method", "").endswith("/acknowledged"), 10)
            control.write_text("second")
            with report.case("changing: 2026-07-28 over stdio: who listens is told"):
                client.hear(lambda message: message.get("method", "").endswith("tools/list_changed"), WITHIN)
        early = Stdio(command, foreword.environment, foreword.log_file)
        with report.case("changing: over stdio nothing is told before the handshake"):
            until(lambda: [pid for pid in descendants(early.process.pid) if is_peer(pid)], "its peer is started")
            control.write_text("third")
            # For as long as it takes others to be told.
            time.sleep(1)
            same(early.heard, [])
            with early:
                until(lambda: "raw__third" in listed(early), "the list")


def over_http(setting: Setting, report: Report) -> None:
    with peers.notifying(setting) as notifying, peers.older(setting) as older, peers.fast(setting) as fast:
        connections = {
            "notifying": {"url": notifying.url},
            "older": {"url": older.url},
            "fast": {"url": fast.url, "refresh": 1},
        }
        with Foreword(setting, connections) as foreword:
            foreword.ready(*connections, within=60)
            with report.case("changing: each server is spoken to in the newest revision that it knows"):
                versions = {name: entry["protocol_version"] for name, entry in foreword.servers().items()}
                same(versions, {"notifying": "2026-07-28", "older": "2025-11-25", "fast": "2026-07-28"})
            ways = {
                "notifying": "a listener of 2026-07-28 hears it",
                "older": "a session of 2025-11-25 hears it on its stream",
                "fast": "one that cannot notify is asked every `refresh`",
            }
            for name, way in ways.items():
                with report.case(f"changing: over HTTP {way}"):
                    expect(f"{name}__late" not in foreword.prompt(), "it is there already")
                    foreword.call(f"{name}__grow", {"name": "late"})
                    within = WITHIN + 1.5 if name == "fast" else WITHIN
                    until(lambda name=name: f"{name}__late" in foreword.prompt(), "in the prompt", within)
                    expect("grown" in words(foreword.call(f"{name}__late")), "cannot be called")
            for name, peer in (("notifying", notifying), ("older", older)):
                with report.case(f"changing: over HTTP {name} is heard again after it was started again"):
                    peer.kill()
                    peer.start()
                    until(lambda name=name: grows(foreword, name), "it answers again", 40)
                    until(lambda name=name: f"{name}__later" in foreword.prompt(), "in the prompt", 10)


def grows(foreword: Foreword, name: str) -> bool:
    return not foreword.call(f"{name}__grow", {"name": "later"}).get("isError")


def unchanged(setting: Setting, report: Report) -> None:
    """A list that is equal, however often it is said to have changed, is no news."""
    control = setting.directory("unchanged") / "control"
    with Foreword(setting, {"raw": peers.raw(control=control, refresh=1)}) as foreword, foreword.stdio() as client:
        foreword.ready("raw")
        until(lambda: "raw__say" in listed(client), "the tools over stdio")
        before = foreword.servers()["raw"]["last_refresh"]
        until(lambda: foreword.servers()["raw"]["last_refresh"] != before, "it was asked again")
        told = count_told(client)
        with report.case("changing: an equal list notifies nobody"):
            # The server notifies each time, and its list is the same each time: spaces name no tool.
            for number in range(5):
                control.write_text(" " * number)
                time.sleep(0.1)
            again = foreword.servers()["raw"]["last_refresh"]
            until(lambda: foreword.servers()["raw"]["last_refresh"] != again, "it was asked again")
            same(count_told(client), told, "notifications")
        with report.case("changing: a server that comes back with the same tools notifies nobody"):
            for process in (foreword.process.pid, client.process.pid):
                for peer in [pid for pid in descendants(process) if is_peer(pid)]:
                    strike(peer)
            until(lambda: words(client.call("raw__say", {"text": "back"})) == "back", "it answers again")
            expect("raw__say" in foreword.prompt(), "its tools went")
            same(count_told(client), told, "notifications")


def is_peer(pid: int) -> bool:
    line = command_line(pid)
    return "plain" in line and "child-init" not in line


def count_told(client: Stdio) -> int:
    return sum(message.get("method") == "notifications/tools/list_changed" for message in client.heard)


def in_the_workspace(setting: Setting, report: Report) -> None:
    control = setting.directory("changing") / "control"
    connections = {"raw": peers.raw(control=control)}
    with Foreword(setting, connections, sandbox="namespace") as foreword:
        foreword.ready("raw")
        with report.case("changing: README.md: the tools prompt is in it, and a new tool before the next command"):
            before = words(foreword.call("bash_tool", {"command": "cat README.md"}))
            expect("raw__say" in before and "raw__late" not in before, before[-500:])
            control.write_text("late")
            until(lambda: "raw__late" in foreword.prompt(), "in the prompt", WITHIN)
            after = words(foreword.call("bash_tool", {"command": "cat README.md"}))
            expect("raw__late" in after, "not in README.md")
            same(after.rstrip(), foreword.prompt().rstrip(), "README.md")
        with report.case("changing: a call in flight ends as it would have"):
            call = Background(foreword.call, "raw__wait", {"seconds": 1.5})
            until(lambda: call.thread.is_alive(), "it runs")
            control.write_text("late later")
            until(lambda: "raw__later" in foreword.prompt(), "in the prompt", WITHIN)
            same(words(call.wait()), "waited to the end")
