"""Whole clients between the real server and a model that notes what it is told, each with what its page says to paste.

usage: run.py --binary FILE --current DIR --agents DIR --litellm DIR --peers DIR [--node DIR] [--n8n DIR] [STORY…]
"""

import sys
from pathlib import Path

from bench import Setting
from harness import options_of, run_stories
from stories import blocks, claude_code, codex, inspector, langchain, litellm, mcpo, n8n, openai_agents, readme

AT_A_TIME = 3
# The longest first.
STORIES = {
    "litellm": litellm.run,
    "langchain": langchain.run,
    "openai-agents": openai_agents.run,
    "mcpo": mcpo.run,
    "inspector": inspector.run,
    "blocks": blocks.run,
    "readme": readme.run,
}
# Their packages have hundreds of megabytes, so they are no part of what CI runs.
LARGE_STORIES = {
    "n8n": n8n.run,
    "claude-code": claude_code.run,
    "codex": codex.run,
}


def main() -> int:
    parser = options_of(__doc__, "current", "agents", "litellm", "peers")
    parser.add_argument("--node", type=Path, help="the installed packages of the large stories, which are told only then")
    parser.add_argument("--n8n", type=Path, help="the installed packages of the story `n8n`")
    options = parser.parse_args()
    stories = STORIES
    if options.node:
        stories = STORIES | LARGE_STORIES if options.stories else LARGE_STORIES
    environments = (options.current, options.agents, options.litellm, options.peers, options.node, options.n8n)
    return run_stories(
        "clients", stories, options.stories, lambda scratch: Setting(options.binary, scratch, *environments), AT_A_TIME
    )


if __name__ == "__main__":
    sys.exit(main())
