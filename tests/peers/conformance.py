"""The official MCP conformance suite against the real server, for each protocol revision that we speak.

`conformance/<revision>.yaml` names the scenarios that cannot pass, each with its reason. The suite fails on any other
failure, and on a scenario that is named there but passes.

usage: conformance.py --binary FILE --node DIR
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import server

EXPECTED_FAILURES = Path(__file__).with_name("conformance")
REVISIONS = ("2025-11-25", "2026-07-28")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True, help="the foreword to test")
    parser.add_argument("--node", type=Path, required=True, help="the installed packages of node/package-lock.json")
    options = parser.parse_args()

    failed = []
    # Without a key, as the suite can send none.
    with server.running(options.binary.resolve()) as foreword, tempfile.TemporaryDirectory() as results:
        for revision in REVISIONS:
            print(f"conformance with {revision}", flush=True)
            if run_suite(options.node, foreword, revision, Path(results)) != 0:
                failed.append(revision)
    print(f"conformance: {len(REVISIONS) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def run_suite(node: Path, foreword: server.Foreword, revision: str, results: Path) -> int:
    packages = node / "node_modules"
    command = [
        packages / ".bin/node",
        packages / "@modelcontextprotocol/conformance/dist/index.js",
        "server",
        *("--url", f"{foreword.url}/mcp"),
        *("--requirements", revision),
        *("--expected-failures", EXPECTED_FAILURES / f"{revision}.yaml"),
        *("--output-dir", results / revision),
    ]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
