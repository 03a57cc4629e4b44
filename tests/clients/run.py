"""Whole clients between the real server and a model that notes what it is told, each with what its page says to paste.

usage: run.py --binary FILE --current DIR --agents DIR --litellm DIR [--node DIR] [STORY…]
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

from bench import Setting
from harness import Report
from stories import blocks, claude_code, codex, langchain, litellm, mcpo, openai_agents

AT_A_TIME = 3
# The longest first.
STORIES = {
    "litellm": litellm.run,
    "langchain": langchain.run,
    "openai-agents": openai_agents.run,
    "mcpo": mcpo.run,
    "blocks": blocks.run,
}
# Their packages have hundreds of megabytes, so they are no part of what CI runs.
LARGE_STORIES = {
    "claude-code": claude_code.run,
    "codex": codex.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True, help="the foreword to test")
    for environment in ("current", "agents", "litellm"):
        parser.add_argument(f"--{environment}", type=Path, required=True, help="its installed packages")
    parser.add_argument("--node", type=Path, help="the installed packages of the large stories, which are told only then")
    parser.add_argument("stories", nargs="*", metavar="STORY", help="only these")
    options = parser.parse_args()
    known = STORIES | (LARGE_STORIES if options.node else {})
    if unknown := set(options.stories) - known.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the stories are {', '.join(known)}")
    chosen = options.stories or (LARGE_STORIES if options.node else STORIES)

    report = Report()
    with tempfile.TemporaryDirectory(prefix="foreword-clients-", ignore_cleanup_errors=True) as scratch:
        setting = Setting(
            options.binary.resolve(), Path(scratch), options.current, options.agents, options.litellm, options.node
        )
        # Stories do not see the end that `timeout` brings; what they started is of our process group and gets it too.
        signal.signal(signal.SIGTERM, lambda *_: (shutil.rmtree(scratch, ignore_errors=True), os._exit(143)))
        with ThreadPoolExecutor(AT_A_TIME) as threads:
            for name in chosen:
                threads.submit(begin, name, known[name], setting, report)
    print(f"clients: {report.passed} passed, {report.failed} failed")
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
