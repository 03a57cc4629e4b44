"""Programs that suites start: a port for them, when they are ready, how they end, and what is left of them."""

import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import expect, until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(
    command: list[str | Path],
    ready: Callable[[], object],
    log: Path,
    within: float,
    environment: dict[str, str],
    directory: Path,
) -> Iterator[None]:
    """A program that is `ready`, which is ended afterwards."""
    process = start(command, log, environment, directory)
    name = Path(command[0]).name
    try:
        wait_until_ready(process, name, ready, within)
        yield
    except BaseException:
        print(f"{name} said at last:\n{log.read_text(errors='replace')[-5000:]}", flush=True)
        raise
    finally:
        process.terminate()
        end(process, 15)


def start(
    command: list[str | Path], log: Path, environment: dict[str, str] | None = None, directory: Path | None = None
) -> subprocess.Popen:
    """A program without input, which says what it has to say at the end of `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command, env=environment, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )


def wait_until_ready(process: subprocess.Popen, name: str, ready: Callable[[], object], within: float) -> None:
    def probe() -> object:
        if process.poll() is not None:
            raise SystemExit(f"{name} ended with {process.returncode} before it was ready")
        return ready()

    until(probe, f"{name} is ready", within)


def answers(url: str) -> Callable[[], bool]:
    """A probe that holds once `url` is there, and an error until then."""

    def probe() -> bool:
        with urllib.request.urlopen(url, timeout=2):
            return True

    return probe


def end(process: subprocess.Popen, within: float = 10) -> bool:
    """Waits for one that was told to end, and kills it when its time is over; whether it ended in time."""
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


def alive(pid: int) -> bool:
    """Whether a process is there and does anything; what only waits for its parent to ask is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def all_gone(pids: list[int], within: float) -> None:
    """Waits until none is left. Those that are left all the same go with the failure."""
    try:
        until(lambda: none_alive(pids), "all are gone", within)
    finally:
        for pid in filter(alive, pids):
            strike(pid)


def none_alive(pids: list[int]) -> bool:
    left = {pid: " ".join(command_line(pid))[-120:] for pid in pids if alive(pid)}
    expect(not left, f"left: {left}")
    return True


def descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


def strike(pid: int, blow: signal.Signals = signal.SIGKILL) -> None:
    os.kill(pid, blow)
