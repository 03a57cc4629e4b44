"""Real clients of model APIs in front of the real server, and an upstream behind it that notes every byte.

Each story has servers of its own; several run at a time, since most of them mostly wait.

usage: run.py --binary FILE --litellm DIR [STORY…]
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

from harness import Report
from serving import Setting
from stories import anthropic_package, bytes_on_the_wire, litellm_proxy, models, openai_package, small_chat, trouble

AT_A_TIME = 4
# The longest first.
STORIES = {
    "litellm": litellm_proxy.run,
    "trouble": trouble.run,
    "huge": trouble.huge,
    "openai": openai_package.run,
    "prompts": openai_package.prompts,
    "bytes": bytes_on_the_wire.run,
    "anthropic": anthropic_package.run,
    "small_chat": small_chat.run,
    "models": models.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True, help="the foreword to test")
    parser.add_argument("--litellm", type=Path, required=True, help="the environment of the gateway")
    parser.add_argument("stories", nargs="*", metavar="STORY", help=f"only these, of {', '.join(STORIES)}")
    options = parser.parse_args()
    if unknown := set(options.stories) - STORIES.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the stories are {', '.join(STORIES)}")

    report = Report()
    with tempfile.TemporaryDirectory(prefix="foreword-chat-", ignore_cleanup_errors=True) as scratch:
        setting = Setting(options.binary.resolve(), options.litellm, Path(scratch))
        # Stories do not see the end that `timeout` brings; what they started is of our process group and gets it too.
        signal.signal(signal.SIGTERM, lambda *_: (shutil.rmtree(scratch, ignore_errors=True), os._exit(143)))
        chosen = {name: story for name, story in STORIES.items() if not options.stories or name in options.stories}
        with ThreadPoolExecutor(AT_A_TIME) as threads:
            for name, story in chosen.items():
                threads.submit(begin, name, story, setting, report)
    print(f"chat: {report.passed} passed, {report.failed} failed")
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
