"""The filter for Open WebUI against the real server, and, if one is named, in a real Open WebUI and a browser.

usage: run.py --binary FILE [--openwebui DIR --browser FILE] [STORY…]
"""

import sys
from pathlib import Path

from harness import options_of, run_stories
from serving import Setting
from stories import filter as filter_alone


def main() -> int:
    parser = options_of(__doc__)
    parser.add_argument("--openwebui", type=Path, help="the environment that has Open WebUI")
    parser.add_argument("--browser", default="", help="a chromium, which stories of Open WebUI need")
    options = parser.parse_args()
    stories = {"filter": filter_alone.run}
    if options.openwebui:
        if not options.browser:
            parser.error("--openwebui needs --browser")
        from stories import administrator, application, copies, environment

        stories |= {"application": application.run, "copies": copies.run}
        stories |= {"environment": environment.run, "administrator": administrator.run}
    return run_stories(
        "openwebui",
        stories,
        options.stories,
        lambda scratch: Setting(options.binary, scratch, options.openwebui, options.browser),
    )


if __name__ == "__main__":
    sys.exit(main())
