"""The filter for Open WebUI against the real server, and, where there is one, in a real Open WebUI.

usage: run.py --binary FILE [--openwebui DIR] [STORY…]
"""

import argparse
import shutil
import sys
from pathlib import Path

from harness import run_stories
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
        from stories import administrator, application, copies, environment

        stories |= {"application": application.run, "copies": copies.run}
        stories |= {"environment": environment.run, "administrator": administrator.run}
    if unknown := set(options.stories) - stories.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the stories are {', '.join(stories)}")

    chosen = {name: story for name, story in stories.items() if not options.stories or name in options.stories}
    browser = shutil.which("chromium")
    return run_stories(
        "openwebui", chosen, lambda scratch: Setting(options.binary.resolve(), options.openwebui, browser, scratch)
    )


if __name__ == "__main__":
    sys.exit(main())
