"""The filter for Open WebUI against the real server, and, where there is one, in a real Open WebUI.

usage: run.py --binary FILE [--openwebui DIR] [STORY…]
"""

import shutil
import sys
from pathlib import Path

from harness import options_of, run_stories
from serving import Setting
from stories import filter as filter_alone


def main() -> int:
    parser = options_of(__doc__)
    parser.add_argument("--openwebui", type=Path, help="the environment that has Open WebUI")
    options = parser.parse_args()
    stories = {"filter": filter_alone.run}
    if options.openwebui:
        from stories import administrator, application, copies, environment

        stories |= {"application": application.run, "copies": copies.run}
        stories |= {"environment": environment.run, "administrator": administrator.run}
    browser = shutil.which("chromium")
    return run_stories(
        "openwebui",
        stories,
        options.stories,
        lambda scratch: Setting(options.binary, scratch, options.openwebui, browser),
    )


if __name__ == "__main__":
    sys.exit(main())
