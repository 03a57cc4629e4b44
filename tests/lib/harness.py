"""What every suite shares: how stories are chosen and told, what is reported of them, how to wait for something."""

import argparse
import http.client
import os
import shutil
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")
# For what happens in a moment on an idle machine: others have its processors too.
SOON = 20.0


@dataclass(frozen=True)
class Setting:
    """What is under test, and where files may lie; suites add what else they need."""

    binary: Path
    scratch: Path

    def directory(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.scratch))


class Report:
    """Counts cases, and prints each with what is wrong with it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.passed = self.failed = 0

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        """A case that fails if its body raises, and then leaves the cases after it alone."""
        started = time.monotonic()
        try:
            yield
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever went wrong is what is reported
            self.failure(name, error)
        else:
            with self.lock:
                self.passed += 1
                print(f"ok {name} ({time.monotonic() - started:.1f} s)", flush=True)

    def failure(self, name: str, error: BaseException) -> None:
        with self.lock:
            self.failed += 1
            print(f"FAIL {name}: {explain(error)}", flush=True)

    def say(self, line: str) -> None:
        with self.lock:
            print(f"     {line}", flush=True)


def tell(setting: Setting, report: Report, *parts: Callable[[Setting, Report], None]) -> None:
    """The parts of a story, each to its end, whatever became of the others."""
    for part in parts:
        name = f"{part.__module__.rpartition('.')[2]}: {part.__name__}"
        with report.case(f"{name}: it came to its end, and left nothing behind"):
            part(setting, report)


def options_of(description: str, *environments: str) -> argparse.ArgumentParser:
    """What each suite is started with: the binary, the environments of its packages, and stories."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--binary", type=lambda name: Path(name).resolve(), required=True, help="the foreword to test")
    for environment in environments:
        parser.add_argument(f"--{environment}", type=Path, required=True, help="its installed packages")
    parser.add_argument("stories", nargs="*", metavar="STORY", help="only these")
    return parser


def run_stories(
    suite: str,
    stories: dict[str, Callable[[Setting, Report], None]],
    names: list[str],
    setting_in: Callable[[Path], Setting],
    at_a_time: int = 1,
) -> int:
    """Tells the stories of these names, or all, each with what `setting_in` makes of one scratch directory; the exit status."""
    if unknown := set(names) - stories.keys():
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; the stories are {', '.join(stories)}")
    report = Report()
    with tempfile.TemporaryDirectory(prefix=f"foreword-{suite}-", ignore_cleanup_errors=True) as scratch:
        setting = setting_in(Path(scratch))
        # Stories do not see the end that `timeout` brings; what they started is of our process group and gets it too.
        signal.signal(signal.SIGTERM, lambda *_: (shutil.rmtree(scratch, ignore_errors=True), os._exit(143)))

        def begin(name: str, story: Callable[[Setting, Report], None]) -> None:
            started = time.monotonic()
            try:
                story(setting, report)
            except BaseException as error:  # noqa: BLE001 - an end before its time is a failure like any other
                report.failure(f"{name}: it ended early", error)
            report.say(f"{name} took {time.monotonic() - started:.1f} s")

        with ThreadPoolExecutor(at_a_time) as threads:
            for name, story in stories.items():
                if not names or name in names:
                    threads.submit(begin, name, story)
    print(f"{suite}: {report.passed} passed, {report.failed} failed")
    return 1 if report.failed or not report.passed else 0


def explain(error: BaseException) -> str:
    """The causes inside an exception group, and where in a story an error came from."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(explain(inner) for inner in error.exceptions)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).parent.name == "stories"] or frames
    where = f" [{Path(ours[-1].filename).name}:{ours[-1].lineno}]" if ours else ""
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    return f"{kind}{error}{where}"[:1500]


def expect(holds: object, otherwise: object) -> None:
    """Like `assert`, which `python -O` would leave out."""
    if not holds:
        raise AssertionError(otherwise if isinstance(otherwise, str) else repr(otherwise))


def same(got: object, wanted: object, what: object = "") -> None:
    expect(got == wanted, f"{f'{what}: ' if what else ''}{got!r}, not {wanted!r}")


def until(probe: Callable[[], Value], what: str, within: float = SOON) -> Value:
    """What `probe` answers, once it is neither nothing nor an error."""
    deadline = time.monotonic() + within
    last: object = None
    while True:
        try:
            last = probe()
            if last:
                return last
        # An answer that is half written is one that is not there yet.
        except (OSError, http.client.HTTPException, AssertionError, KeyError, ValueError) as error:
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {within:g} s; at last {last!r}")
        time.sleep(0.03)


class Background:
    """A function in a thread of its own, whose result is waited for later."""

    def __init__(self, function: Callable[..., object], *arguments: object, **named: object):
        self.result: object = None
        self.error: BaseException | None = None

        def run() -> None:
            try:
                self.result = function(*arguments, **named)
            except BaseException as error:  # noqa: BLE001 - raised again by `wait`
                self.error = error

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def wait(self, within: float = SOON) -> object:
        self.thread.join(within)
        expect(not self.thread.is_alive(), f"no answer within {within:g} s")
        if self.error:
            raise self.error
        return self.result
