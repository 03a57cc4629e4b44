"""Starts the real `foreword` binary on a free port with a library of its own, and stops it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LIBRARY = Path(__file__).with_name("library.yaml")
READY_WITHIN_SECONDS = 20
STOPPED_WITHIN_SECONDS = 15


@dataclass(frozen=True)
class Foreword:
    """A running server."""

    binary: Path
    data: Path
    url: str
    environment: dict[str, str]

    def request(self, path: str, headers: dict[str, str], body: bytes | None = None) -> bytes:
        """The body of an answer; any other status than 200 is an error."""
        request = urllib.request.Request(self.url + path, data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.read()


@contextmanager
def running(binary: Path, api_key: str | None = None, sandbox: str = "none") -> Iterator[Foreword]:
    """A server that is ready. Its data directory and its process are gone afterwards, whatever happens meanwhile."""
    # `timeout` and the terminal end us with a signal; the clean-up below must run then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="foreword-peers-") as directory:
        data = Path(directory)
        shutil.copy(LIBRARY, data / "system_prompts.yaml")
        url = f"http://127.0.0.1:{free_port()}"
        environment = {"FOREWORD_PUBLIC_BASE_URL": url, "FOREWORD_SANDBOX__BACKEND": sandbox, "NO_COLOR": "1"}
        if api_key:
            environment["FOREWORD_API_KEY"] = api_key
        log = data / "server.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [binary, "serve", "--listen", url.removeprefix("http://"), "--data", data],
                # The person's own settings must not decide what is tested.
                env=environment | {"HOME": directory, "PATH": os.environ["PATH"]},
                cwd=directory,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until_ready(process, url)
            yield Foreword(binary, data, url, environment)
        except BaseException:
            process.kill()
            process.wait()
            print(f"foreword said:\n{log.read_text()}", file=sys.stderr)
            raise
        stop(process)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(process: subprocess.Popen, url: str) -> None:
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"foreword ended with {process.returncode} before it was ready")
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=2):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.05)
    raise SystemExit(f"foreword was not ready within {READY_WITHIN_SECONDS} s")


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(STOPPED_WITHIN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise SystemExit(f"foreword did not stop within {STOPPED_WITHIN_SECONDS} s of SIGTERM") from None
    if process.returncode != 0:
        raise SystemExit(f"foreword ended with {process.returncode} after SIGTERM, not with 0")
