"""Real clients of model APIs in front of the real server, and an upstream behind it that notes every byte.

Each story has servers of its own; several run at a time, since most of them mostly wait.

usage: run.py --binary FILE --litellm DIR [STORY…]
"""

import sys

from harness import options_of, run_stories
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
    options = options_of(__doc__, "litellm").parse_args()
    return run_stories(
        "chat", STORIES, options.stories, lambda scratch: Setting(options.binary, scratch, options.litellm), AT_A_TIME
    )


if __name__ == "__main__":
    sys.exit(main())
