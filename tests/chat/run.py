"""Real clients of model APIs in front of the real server, and an upstream behind it that notes every byte.

Each story has servers of its own; several run at a time, since most of them mostly wait.

usage: run.py --binary FILE --litellm DIR [STORY…]
"""

import argparse
import sys
from pathlib import Path

from harness import run_stories
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

    chosen = {name: story for name, story in STORIES.items() if not options.stories or name in options.stories}
    return run_stories(
        "chat", chosen, lambda scratch: Setting(options.binary.resolve(), options.litellm, scratch), AT_A_TIME
    )


if __name__ == "__main__":
    sys.exit(main())
