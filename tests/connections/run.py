"""Real MCP servers behind the real server: is what Foreword makes of them true, in time, and harmless?

Each story has servers and a Foreword of its own; several run at a time, since most of them mostly wait.

usage: run.py --binary FILE --current DIR --legacy DIR --node DIR [STORY…]
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import Report, Setting
from stories import away, changing, hostile, isolated, passed_on, rude, stable, struck

AT_A_TIME = 4
# The longest first.
STORIES = {
    "away": away.run,
    "struck": struck.run,
    "passed_on": passed_on.run,
    "hostile": hostile.run,
    "noise": hostile.noise,
    "never_ready": hostile.never_ready,
    "rude": rude.run,
    "endings": rude.endings,
    "isolated": isolated.run,
    "changing": changing.run,
    "stable": stable.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True, help="the foreword to test")
    for environment in ("current", "legacy", "node"):
        parser.add_argument(f"--{environment}", type=Path, required=True, help="its installed packages")
    parser.add_argument("stories", nargs="*", metavar="STORY", help=f"only these, of {', '.join(STORIES)}")
    options = parser.parse_args()
    if unknown := set(options.stories) - STORIES.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the stories are {', '.join(STORIES)}")

    report = Report()
    with tempfile.TemporaryDirectory(prefix="foreword-connections-", ignore_cleanup_errors=True) as scratch:
        setting = Setting(options.binary.resolve(), options.current, options.legacy, options.node, Path(scratch))
        # Stories do not see the end that `timeout` brings; what they started is of our process group and gets it too.
        signal.signal(signal.SIGTERM, lambda *_: (shutil.rmtree(scratch, ignore_errors=True), os._exit(143)))
        chosen = {name: story for name, story in STORIES.items() if not options.stories or name in options.stories}
        with ThreadPoolExecutor(AT_A_TIME) as threads:
            for name, story in chosen.items():
                threads.submit(begin, name, story, setting, report)
    print(f"connections: {report.passed} passed, {report.failed} failed")
    return 1 if report.failed or not report.passed else 0


def begin(name: str, story, setting: Setting, report: Report) -> None:
    started = time.monotonic()
    try:
        story(setting, report)
    except BaseException as error:  # noqa: BLE001 - an end before its time is a failure like any other
        report.failure(f"{name}: it ended early", error)
    report.say(f"{name} took {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
