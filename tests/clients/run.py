"""Whole clients between the real server and a model that notes what it is told, each with what its page says to paste.

usage: run.py --binary FILE --current DIR --agents DIR --litellm DIR --peers DIR [--node DIR] [--n8n DIR] [STORY…]
"""

import argparse
import sys
from pathlib import Path

from bench import Setting
from harness import run_stories
from stories import blocks, claude_code, codex, inspector, langchain, litellm, mcpo, n8n, openai_agents

AT_A_TIME = 3
# The longest first.
STORIES = {
    "litellm": litellm.run,
    "langchain": langchain.run,
    "openai-agents": openai_agents.run,
    "mcpo": mcpo.run,
    "inspector": inspector.run,
    "blocks": blocks.run,
}
# Their packages have hundreds of megabytes, so they are no part of what CI runs.
LARGE_STORIES = {
    "n8n": n8n.run,
    "claude-code": claude_code.run,
    "codex": codex.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True, help="the foreword to test")
    for environment in ("current", "agents", "litellm", "peers"):
        parser.add_argument(f"--{environment}", type=Path, required=True, help="its installed packages")
    parser.add_argument("--node", type=Path, help="the installed packages of the large stories, which are told only then")
    parser.add_argument("--n8n", type=Path, help="the installed packages of the story `n8n`")
    parser.add_argument("stories", nargs="*", metavar="STORY", help="only these")
    options = parser.parse_args()
    known = STORIES | (LARGE_STORIES if options.node else {})
    if unknown := set(options.stories) - known.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the stories are {', '.join(known)}")
    chosen = options.stories or (LARGE_STORIES if options.node else STORIES)

    environments = (options.current, options.agents, options.litellm, options.peers, options.node, options.n8n)
    return run_stories(
        "clients",
        {name: known[name] for name in chosen},
        lambda scratch: Setting(options.binary.resolve(), scratch, *environments),
        AT_A_TIME,
    )


if __name__ == "__main__":
    sys.exit(main())
