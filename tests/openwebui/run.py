"""The filter for Open WebUI against the real server, and, where there is one, in a real Open WebUI.

usage: run.py --binary FILE [--openwebui DIR] [STORY…]
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from harness import Report
from serving import Setting
from stories import filter as filter_alone


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True, help="the foreword to test")
    parser.add_argument("--openwebui", type=Path, help="the environment that has Open WebUI")
    parser.add_argument("stories", nargs="*", metavar="STORY", help="only these: filter, application")
    options = parser.parse_args()
    stories = {"filter": filter_alone.run}
    if options.openwebui:
        from stories import application

        stories["application"] = application.run
    if unknown := set(options.stories) - stories.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the stories are {', '.join(stories)}")

    report = Report()
    with tempfile.TemporaryDirectory(prefix="foreword-openwebui-", ignore_cleanup_errors=True) as scratch:
        setting = Setting(options.binary.resolve(), options.openwebui, shutil.which("chromium"), Path(scratch))
        # What was started is of our process group and gets the signal too.
        signal.signal(signal.SIGTERM, lambda *_: (shutil.rmtree(scratch, ignore_errors=True), os._exit(143)))
        for name, story in stories.items():
            if options.stories and name not in options.stories:
                continue
            started = time.monotonic()
            try:
                story(setting, report)
            except BaseException as error:  # noqa: BLE001 - an end before its time is a failure like any other
                report.failure(f"{name}: it ended early", error)
            report.say(f"{name} took {time.monotonic() - started:.1f} s")
    print(f"openwebui: {report.passed} passed, {report.failed} failed")
    return 1 if report.failed or not report.passed else 0


if __name__ == "__main__":
    sys.exit(main())
