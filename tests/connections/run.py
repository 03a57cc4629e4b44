"""Real MCP servers behind the real server: is what Foreword makes of them true, in time, and harmless?

Each story has servers and a Foreword of its own; several run at a time, since most of them mostly wait.

usage: run.py --binary FILE --current DIR --legacy DIR --node DIR [STORY…]
"""

import sys

from harness import options_of, run_stories
from peers import Setting
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
    options = options_of(__doc__, "current", "legacy", "node").parse_args()
    environments = (options.current, options.legacy, options.node)
    return run_stories(
        "connections",
        STORIES,
        options.stories,
        lambda scratch: Setting(options.binary, scratch, *environments),
        AT_A_TIME,
    )


if __name__ == "__main__":
    sys.exit(main())
