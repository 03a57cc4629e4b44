"""What the stories share: a Foreword, a model, a client that stands between them, and what is said of it in `docs/clients.md`."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import harness
import page
import server
from counting import Copy, copies, strings
from harness import Report, expect, same
from model import AGAIN, ANSWER, Model
from wire import Stdio

FORMS = ("full", "brief", "neutral", "hint")
LIBRARY = Path(__file__).with_name("library.yaml")
KEY = "a-key-of-foreword-for-tests"
# What the pages ask, and what is asked instead when the model is to read its guide again.
QUESTION = "Who are you?"
READ_AGAIN = f"Please {AGAIN}."
# For the programs, which load for long on a machine that is busy.
ANSWERED_WITHIN = 150


@dataclass(frozen=True)
class Setting(harness.Setting):
    """And the packages of the clients."""

    current: Path
    agents: Path
    litellm: Path
    peers: Path
    node: Path | None
    n8n: Path | None


class Foreword(server.Foreword):
    """A server with workspaces and a key, whose chat endpoints lead to `model`."""

    def __init__(self, setting: Setting, model: Model):
        upstreams = {"chat.upstream": f"{model.url}/v1", "chat.anthropic": model.url}
        settings = {name: {"base_url": url, "api_key": "of-the-model"} for name, url in upstreams.items()}
        super().__init__(setting, library=LIBRARY, settings=settings, sandbox="namespace", key=KEY)

    def text(self, path: str) -> str:
        return self.ok(path).text

    def forms(self, chat: str) -> dict[str, str]:
        """The texts in which the chat's prompt is known, by name."""
        forms = {form: self.text(f"/system-prompt?form={form}&chat_id={chat}") for form in FORMS}
        # The chat endpoints leave the guide out, and skills; a request that names no chat is of this one.
        alone, guide, _ = self.text("/system-prompt?chat_id=default").partition("\n\nThese instructions as a whole")
        expect(guide, "the guide does not begin as it did")
        return forms | {"without a workspace": alone}


class Bench(ExitStack):
    """A Foreword, a model behind a client, and a home in which the client finds what its page says."""

    def __init__(self, setting: Setting, report: Report, client: str):
        super().__init__()
        self.setting, self.report, self.client = setting, report, client
        self.home = setting.directory("home")

    def __enter__(self) -> "Bench":
        super().__enter__()
        self.model = self.enter_context(Model())
        self.foreword = self.enter_context(Foreword(self.setting, self.model))
        programs = self.home / "bin"
        programs.mkdir()
        (programs / "foreword").symlink_to(self.setting.binary)
        # For `foreword stdio`, which has a data directory of its own.
        data = self.home / ".local/share/foreword"
        data.mkdir(parents=True)
        (data / "system_prompts.yaml").write_text(LIBRARY.read_text())
        self.work = self.home / "my-project"
        self.work.mkdir()
        return self

    @property
    def environment(self) -> dict[str, str]:
        """Of its own alone: the person's settings must not decide what is tested."""
        keys = {"FOREWORD_API_KEY": KEY, "OPENAI_API_KEY": "of-the-model", "OPENAI_BASE_URL": f"{self.model.url}/v1"}
        return keys | {"HOME": str(self.home), "PATH": f"{self.home}/bin:{os.environ['PATH']}", "NO_PROXY": "127.0.0.1"}

    def block(self, language: str, holds: str = "") -> str:
        """What the client's page says to paste, with this Foreword's address."""
        text = page.block(self.client, language, holds)
        return text.replace(page.ADDRESS, self.foreword.url)

    def run(self, command: list[str | Path], environment: dict[str, str] | None = None) -> str:
        """What a program prints that ends well."""
        done = subprocess.run(
            command,
            env=self.environment | (environment or {}),
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWERED_WITHIN,
            check=False,
        )
        said = done.stdout.decode(errors="replace")
        expect(done.returncode == 0, f"ended with {done.returncode}: {(said + done.stderr.decode(errors='replace'))[-1200:]}")
        return said

    def forms_on_stdio(self) -> dict[str, str]:
        """The same as `Foreword.forms`, of a server that is started in the client's directory."""
        forms = {}
        for form in ("full", "brief"):
            # Clients do not hand the key on, which nobody needs here.
            environment = self.environment | {"FOREWORD_DELIVERY__INSTRUCTIONS": form}
            del environment["FOREWORD_API_KEY"]
            command = ["env", "-C", str(self.work), str(self.setting.binary), "stdio"]
            with Stdio(command, environment, self.home / "stdio.log") as client:
                forms[form] = client.greeting["instructions"]
        return forms

    def count(self, set_up: str, ask: Callable[[str], str], forms: dict[str, str], *expected: str, again: bool = True) -> None:
        """The copies that reach the model must be of the `expected` forms, and as many and as large as the table of `docs/clients.md` says.

        An expected form that ends with `…` is one that the client cuts. Without `again` the table has no numbers of the second kind.
        """
        row = f"`{set_up}` in docs/clients.md"
        with self.report.case(f"{self.client}: {set_up}: {len(expected)} at first"):
            first = self.reached(ask, QUESTION, forms)
            kinds = [copy.form if copy.whole else f"{copy.form}…" for copy in first]
            same(sorted(kinds), sorted(expected), described(first))
            self.report.say(f"{self.client}: {set_up}: {described(first)}")
            said, said_again = said_of(self.client, set_up)
            same(said, measured(first), row)
            if not again:
                same(said_again, None, f"{row}, after reading again")
        if not again:
            return
        with self.report.case(f"{self.client}: {set_up}: one more when the model reads its guide again"):
            more = self.reached(ask, READ_AGAIN, forms)
            kinds = [copy.form if copy.whole else f"{copy.form}…" for copy in more]
            same(sorted(kinds), sorted((*expected, "numbered")), described(more))
            self.report.say(f"{self.client}: {set_up}, read again: {described(more)}")
            same(said_of(self.client, set_up)[1], measured(more), f"{row}, after reading again")

    def tells(self, set_up: str, ask: Callable[[str], str], text: str) -> None:
        """The model must be told `text` as it is."""
        with self.report.case(f"{self.client}: {set_up}: the text reaches the model as it is"):
            body = self.asked(ask, QUESTION)
            places = [place for place, told in strings(body) if text.rstrip() in told]
            same(len(places), 1, f"places of {text!r}")

    def reached(self, ask: Callable[[str], str], question: str, forms: dict[str, str]) -> list[Copy]:
        """The copies in the last request that the model gets for `question`."""
        return copies(self.asked(ask, question), forms)

    def asked(self, ask: Callable[[str], str], question: str) -> dict:
        """The last request that the model gets for `question`."""
        before = self.model.count
        answer = ask(question)
        expect(ANSWER in answer, f"the model's answer is not in {answer[-500:]!r}")
        asked = [body for body in self.model.asked(before) if question in json.dumps(body)]
        expect(asked, "the question did not reach the model")
        return asked[-1]


def measured(found: list[Copy]) -> tuple[int, int]:
    """How many there are, and their bytes together. Nothing in them has another length in another run: links begin with a fixed address."""
    return len(found), sum(copy.bytes for copy in found)


def described(found: list[Copy]) -> str:
    count, size = measured(found)
    parts = [f"{copy.bytes} bytes of `{copy.form}`{'' if copy.whole else ', cut,'} in {copy.place}" for copy in found]
    return f"{count} copies, {size} bytes: {'; '.join(parts)}" if found else "none"


def said_of(client: str, set_up: str) -> list[tuple[int, int] | None]:
    """The copies and bytes that the table of `docs/clients.md` has, at first and after the model read its guide again; none where it has "–"."""
    text = (page.PAGES.parent / "clients.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if f"clients/{client}.md" in line]
    found = [row for row in rows if len(row) == 6 and row[1].replace("`", "") == set_up]
    expect(len(found) == 1, f"docs/clients.md has {len(found)} rows for {client}, `{set_up}`, not 1")
    _, _, *cells = found[0]
    return [pair_of(*cells[:2]), pair_of(*cells[2:])]


def pair_of(count: str, size: str) -> tuple[int, int] | None:
    """The numbers of two cells; a word behind the first says what became of a copy."""
    if (count, size) == ("–", ""):
        return None
    found = re.fullmatch(r"(\d+)(?:, [a-z ]+)? \| ([\d,]+)", f"{count} | {size}")
    expect(found, f"docs/clients.md has `{count} | {size}` where two numbers belong")
    return int(found[1]), int(found[2].replace(",", ""))
