"""The official MCP conformance suite against the real server, for each protocol revision that we speak.

`conformance/<revision>.yaml` names the scenarios that cannot pass, each with its reason. The suite fails on any other
failure, and on a scenario that is named there but passes.

usage: conformance.py --binary FILE --node DIR
"""

import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import harness
from harness import Report, options_of, run_stories, same
from processes import free_port
from server import Foreword

EXPECTED_FAILURES = Path(__file__).with_name("conformance")
REVISIONS = ("2025-11-25", "2026-07-28")
# Scenarios that came too late to count for their revision, but that pass and must go on passing.
LATER_SCENARIOS = {"2026-07-28": ("http-header-validation",)}


@dataclass(frozen=True)
class Setting(harness.Setting):
    """And the installed packages of node/package-lock.json."""

    node: Path


def main() -> int:
    options = options_of(__doc__, "node").parse_args()
    stories = {revision: partial(conforms, revision) for revision in REVISIONS}
    return run_stories(
        "conformance", stories, options.stories, lambda scratch: Setting(options.binary, scratch, options.node)
    )


def conforms(revision: str, setting: Setting, report: Report) -> None:
    required = ["--requirements", revision, "--expected-failures", str(EXPECTED_FAILURES / f"{revision}.yaml")]
    runs = [required] + [
        ["--spec-version", revision, "--scenario", scenario] for scenario in LATER_SCENARIOS.get(revision, ())
    ]
    packages = setting.node / "node_modules"
    suite = packages / "@modelcontextprotocol/conformance/dist/index.js"
    # Without a key, as the suite can send none.
    with Foreword(setting, port=free_port()) as foreword:
        command = [packages / ".bin/node", suite, "server", "--url", f"{foreword.url}/mcp"]
        for arguments in runs:
            with report.case(f"conformance {' '.join(arguments)}"):
                report.say(f"conformance {' '.join(arguments)}")
                results = ["--output-dir", setting.directory("results")]
                same(subprocess.run([*command, *arguments, *results], check=False).returncode, 0, "its status")


if __name__ == "__main__":
    sys.exit(main())
