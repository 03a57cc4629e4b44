"""What the stories share: a Foreword that can be killed and started again, how to wait for something, what to report."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import NamedTuple, TypeVar

import server
from wire import Caller, Stdio

Value = TypeVar("Value")
# For what happens in a moment on an idle machine: others have its processors too.
SOON = 20.0


@dataclass(frozen=True)
class Setting:
    """What is under test, and the packages of its peers."""

    binary: Path
    current: Path
    legacy: Path
    node: Path
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


def run_stories(suite: str, stories: dict[str, Callable], setting_in: Callable[[Path], object], at_a_time: int = 1) -> int:
    """Tells stories, some at a time, each with what `setting_in` makes of one scratch directory; the exit status of the suite."""
    report = Report()
    with tempfile.TemporaryDirectory(prefix=f"foreword-{suite}-", ignore_cleanup_errors=True) as scratch:
        setting = setting_in(Path(scratch))
        # Stories do not see the end that `timeout` brings; what they started is of our process group and gets it too.
        signal.signal(signal.SIGTERM, lambda *_: (shutil.rmtree(scratch, ignore_errors=True), os._exit(143)))

        def begin(name: str, story: Callable) -> None:
            started = time.monotonic()
            try:
                story(setting, report)
            except BaseException as error:  # noqa: BLE001 - an end before its time is a failure like any other
                report.failure(f"{name}: it ended early", error)
            report.say(f"{name} took {time.monotonic() - started:.1f} s")

        with ThreadPoolExecutor(at_a_time) as threads:
            for name, story in stories.items():
                threads.submit(begin, name, story)
    print(f"{suite}: {report.passed} passed, {report.failed} failed")
    return 1 if report.failed or not report.passed else 0


def explain(error: BaseException) -> str:
    """The causes inside an exception group, and where in a story an error came from."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(explain(inner) for inner in error.exceptions)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).parent.name == "stories"]
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
        except (OSError, AssertionError, KeyError) as error:
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {within:g} s; at last {last!r}")
        time.sleep(0.03)


class Answer(NamedTuple):
    """An answer over HTTP, whatever its status."""

    status: int
    headers: dict[str, str]
    text: str

    def json(self) -> dict:
        return json.loads(self.text)


def lowered(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class Foreword:
    """A server with a data directory of its own; the process may end and be started again."""

    def __init__(
        self,
        setting: Setting,
        connections: dict[str, dict] | None = None,
        sandbox: str = "none",
        environment: dict[str, str] | None = None,
    ):
        self.setting = setting
        self.data = setting.directory("data")
        self.sandbox = sandbox
        self.more_environment = environment or {}
        self.process: subprocess.Popen | None = None
        shutil.copy(server.LIBRARY, self.data / "system_prompts.yaml")
        if connections is not None:
            self.configure(connections)

    def __enter__(self) -> "Foreword":
        self.start()
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        """Stops it, and sees to it that nothing of it or its peers is left, whatever the story was about."""
        try:
            if self.process and self.process.poll() is None:
                below = descendants(self.process.pid)
                server.stop(self.process)
                all_gone(below, 5)
        finally:
            if self.process and self.process.poll() is None:
                self.process.kill()
            if kind:
                print(f"foreword said at last:\n{self.log()[-3000:]}", file=sys.stderr, flush=True)

    def start(self) -> None:
        # Not at construction: between two starts another process may take the port.
        self.url = f"http://127.0.0.1:{server.free_port()}"
        with self.log_file.open("ab") as output:
            self.process = subprocess.Popen(
                [self.setting.binary, "serve", "--listen", self.url.removeprefix("http://"), "--data", self.data],
                env=self.environment,
                cwd=self.data,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        server.wait_until_ready(self.process, self.url)

    def stop(self) -> None:
        server.stop(self.process)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def environment(self) -> dict[str, str]:
        """Of its own alone: the person's settings must not decide what is tested."""
        fixed = {"FOREWORD_SANDBOX__BACKEND": self.sandbox, "NO_COLOR": "1", "HOME": str(self.data)}
        # The same after a restart on another port, so that prompts can be compared.
        fixed["FOREWORD_PUBLIC_BASE_URL"] = "http://127.0.0.1:1"
        return fixed | {"PATH": os.environ["PATH"], "SECRET_OF_FOREWORD": "not-for-peers"} | self.more_environment

    @property
    def log_file(self) -> Path:
        return self.data.with_name(self.data.name + ".log")

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def configure(self, connections: dict[str, dict] | str) -> None:
        """Writes the file of the connections in the way of most editors: beside it, and renamed over it."""
        text = connections if isinstance(connections, str) else json.dumps({"mcpServers": connections}, indent=2)
        beside = self.data / "connections.json.new"
        beside.write_text(text)
        beside.rename(self.data / "connections.json")

    def get(self, path: str, headers: dict[str, str] | None = None, body: object = None, timeout: float = 30) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        sent = (headers or {}) | ({} if body is None else {"Content-Type": "application/json"})
        request = urllib.request.Request(self.url + path, data=data, headers=sent)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return Answer(response.status, lowered(response.headers), response.read().decode())
        except urllib.error.HTTPError as error:
            return Answer(error.code, lowered(error.headers), error.read().decode(errors="replace"))

    def ok(self, path: str, headers: dict[str, str] | None = None, body: object = None) -> Answer:
        answer = self.get(path, headers, body)
        expect(answer.status == 200, f"{path}: {answer.status} {answer.text[:300]}")
        return answer

    def prompt(self, chat: str = "c") -> str:
        return self.ok("/system-prompt", {"X-Chat-Id": chat}).text

    def status(self) -> dict:
        return self.ok("/api/prompts/mcp-tools").json()

    def tools_prompt(self) -> str:
        return self.status()["mcp_tools_prompt"]

    def servers(self) -> dict[str, dict]:
        return {entry["name"]: entry for entry in self.status()["servers"]}

    def in_state(self, name: str, state: str, within: float = SOON) -> dict:
        def probe() -> dict | None:
            entry = self.servers().get(name) or {}
            if entry.get("state") != state:
                raise AssertionError(f"{name} is {entry}")
            return entry

        return until(probe, f"{name} {state}", within)

    def ready(self, *names: str, within: float = SOON) -> None:
        for name in names:
            self.in_state(name, "ready", within)

    def caller(self, era: str = "legacy", chat: str = "c", headers: dict[str, str] | None = None) -> Caller:
        return Caller(f"{self.url}/mcp", era, {"X-Chat-Id": chat} | (headers or {}))

    def tools(self, era: str = "legacy") -> dict[str, dict]:
        return {tool["name"]: tool for tool in self.caller(era).listed("tools/list", "tools")}

    def call(self, name: str, arguments: dict | None = None, timeout: float = 40, headers: dict | None = None) -> dict:
        """The result of a tool; an error of the protocol is an error here."""
        return self.caller(headers=headers).call(name, arguments, timeout)

    @contextmanager
    def stdio(self, chat: str = "c") -> Iterator[Stdio]:
        command = [str(self.setting.binary), "stdio", "--chat", chat, "--data", str(self.data)]
        with Stdio(command, self.environment, self.log_file) as client:
            yield client


def words(result: dict) -> str:
    """All text of a tool's result."""
    return "\n".join(block.get("text", "") for block in result["content"])


def failed(result: dict, name: str) -> None:
    """The result must be an error that names the server."""
    expect(result.get("isError") is True, f"no error: {str(result)[:300]}")
    expect(name in words(result), f"does not name {name}: {words(result)[:300]}")


def records(file: Path, event: str | None = None) -> list[dict]:
    """What a peer noted."""
    if not file.exists():
        return []
    lines = [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
    return [line for line in lines if event in (None, line["event"])]


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


# Processes.


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


def peer_processes(foreword: Foreword, word: str) -> list[int]:
    """The processes of a peer below Foreword, without the supervisor, whose arguments hold `word` too."""
    below = [pid for pid in descendants(foreword.process.pid) if alive(pid)]
    lines = {pid: command_line(pid) for pid in below}
    return [pid for pid, line in lines.items() if any(word in part for part in line) and "child-init" not in line]


def peer_process(foreword: Foreword, word: str) -> int:
    return until(lambda: peer_processes(foreword, word), f"a process of {word}")[-1]


def strike(pid: int, blow: signal.Signals = signal.SIGKILL) -> None:
    os.kill(pid, blow)
