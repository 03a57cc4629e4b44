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
# Scenarios that came too late to count for their revision, but that pass and must go on passing.
LATER_SCENARIOS = {"2026-07-28": ("http-header-validation",)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True, help="the foreword to test")
    parser.add_argument("--node", type=Path, required=True, help="the installed packages of node/package-lock.json")
    options = parser.parse_args()

    passed = failed = 0
    # Without a key, as the suite can send none.
    with server.running(options.binary.resolve()) as foreword, tempfile.TemporaryDirectory() as results:
        for revision in REVISIONS:
            required = ["--requirements", revision, "--expected-failures", EXPECTED_FAILURES / f"{revision}.yaml"]
            runs = [required] + [
                ["--spec-version", revision, "--scenario", scenario] for scenario in LATER_SCENARIOS.get(revision, ())
            ]
            for arguments in runs:
                print("conformance", *arguments, flush=True)
                status = run_suite(options.node, foreword, [*arguments, "--output-dir", results])
                passed, failed = (passed, failed + 1) if status else (passed + 1, failed)
    print(f"conformance: {passed} passed, {failed} failed")
    return 1 if failed else 0


def run_suite(node: Path, foreword: server.Foreword, arguments: list) -> int:
    packages = node / "node_modules"
    suite = packages / "@modelcontextprotocol/conformance/dist/index.js"
    command = [packages / ".bin/node", suite, "server", "--url", f"{foreword.url}/mcp", *arguments]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
