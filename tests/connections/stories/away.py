"""A server that stays away for longer than its tools are kept: a story of its own, since it takes more than a minute."""

import time

import peers
from harness import Report, expect, until
from peers import Setting, failed
from serving import Foreword


def run(setting: Setting, report: Report) -> None:
    with peers.fast(setting) as fast, Foreword(setting, {"fast": {"url": fast.url}, "plain": peers.raw()}) as foreword:
        foreword.ready("fast", "plain", within=60)
        fast.kill()
        struck = time.monotonic()
        with report.case("away: a server that is down is named by `/readyz`, and its tools stay"):
            # It is known to be down only when somebody calls.
            failed(foreword.call("fast__add", {"a": 1}), "fast")
            until(lambda: "fast" in foreword.ok("/readyz").text, "named", 20)
            foreword.in_state("fast", "down")
            expect("fast__weather" in foreword.prompt(), "its tools are gone at once")
        with report.case("away: for 60 s the tools of a server that is down stay in the prompt, then they go"):
            last_seen = struck
            while "fast__weather" in foreword.prompt() and time.monotonic() - struck < 90:
                last_seen = time.monotonic()
                time.sleep(0.5)
            expect(55 < last_seen - struck < 75, f"they stayed for {last_seen - struck:.0f} s")
            expect("plain__say" in foreword.prompt(), "so did the other's")
            expect("fast__weather" not in foreword.tools_prompt(), "they are in the tools prompt still")
        with report.case("away: back after that, its tools are back"):
            fast.start()
            foreword.ready("fast", within=75)
            until(lambda: "fast__weather" in foreword.prompt(), "in the prompt", 5)
