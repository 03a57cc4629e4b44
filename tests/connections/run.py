"""Real MCP servers behind the real server: is what Foreword makes of them true, in time, and harmless?

Each story has servers and a Foreword of its own; several run at a time, since most of them mostly wait.

usage: run.py --binary FILE --current DIR --legacy DIR --node DIR [STORY…]
"""

import argparse
import sys
from pathlib import Path

from harness import Setting, run_stories
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

    environments = (options.current, options.legacy, options.node)
    chosen = {name: story for name, story in STORIES.items() if not options.stories or name in options.stories}
    return run_stories(
        "connections", chosen, lambda scratch: Setting(options.binary.resolve(), *environments, scratch), AT_A_TIME
    )


if __name__ == "__main__":
    sys.exit(main())
