"""The first steps of the README as a newcomer takes them: from an empty directory to a file that the model made, and to a model's API."""

import os
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path

import page
from bench import Setting
from harness import Report, expect, same, until
from model import ANSWER, Model
from processes import answers, free_port, running

README = "../../README"


class Newcomer:
    """Somebody with the program on the `PATH` and nothing else, in the directory that the README makes."""

    def __init__(self, setting: Setting):
        self.home = setting.directory("newcomer")
        self.prompts = self.home / "prompts"
        self.url = f"http://127.0.0.1:{free_port()}"
        programs = self.home / "bin"
        programs.mkdir()
        (programs / "foreword").symlink_to(setting.binary)
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{programs}:{os.environ['PATH']}",
            # The README's own port may be taken here.
            "FOREWORD_HTTP__LISTEN": self.url.removeprefix("http://"),
            "NO_PROXY": "127.0.0.1",
        }

    def block(self, language: str, holds: str) -> str:
        return page.block(README, language, holds).replace(page.ADDRESS, self.url)

    @contextmanager
    def server(self, commands: str):
        """Runs commands of which the last is the server; it takes the shell's place, so that it is the one to be ended."""
        script = re.sub(r"^(\w+=\S+ )*foreword\b", r"exec env \g<0>", commands, flags=re.MULTILINE)
        expect(script != commands, f"there is no server in {commands!r}")
        directory = self.prompts if self.prompts.exists() else self.home
        command = ["bash", "-ec", script]
        with running(command, answers(f"{self.url}/health"), self.home / "server.log", 60, self.environment, directory):
            yield

    def run(self, *command: str | Path) -> str:
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.prompts,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        expect(done.returncode == 0, f"ended with {done.returncode}: {(done.stdout + done.stderr)[-1200:]}")
        return done.stdout

    def shell(self, commands: str) -> str:
        return self.run("bash", "-ec", commands)


def run(setting: Setting, report: Report) -> None:
    newcomer = Newcomer(setting)
    # What is under test is built already.
    first = re.sub(r"^cargo install .*\n", "", newcomer.block("sh", "cargo install"), count=1)
    with newcomer.server(first):
        first_steps(newcomer, setting, report)
    with Model() as model:
        chat = newcomer.block("sh", "FOREWORD_CHAT__UPSTREAM__BASE_URL")
        server, ask = chat.replace("http://127.0.0.1:11434", model.url).split("\n", 1)
        with newcomer.server(server), report.case("README: a client that speaks no MCP has the prompt by another base URL"):
            expect(ANSWER in newcomer.shell(ask), "the model's answer does not come back")
            system = model.asked()[-1]["messages"][0]
            same(system["role"], "system")
            expect("You are a helpful assistant." in system["content"], system)


def first_steps(newcomer: Newcomer, setting: Setting, report: Report) -> None:
    with report.case("README: with nothing configured a chat has a prompt that ends with guide and skills"):
        said = newcomer.shell(newcomer.block("sh", "curl -H 'X-Chat-Id: chat-1' http"))
        expect("/home/assistant/README.md" in said and "\n## Skills\n" in said, said)
    with report.case("README: the doctor finds nothing that keeps the server from its work"):
        said = newcomer.run("foreword", "doctor")
        expect(said, "it says nothing")
        same([line for line in said.splitlines() if line.startswith("error")], [])
    with report.case("README: the file that it shows has no mistakes, and is live within seconds"):
        data = newcomer.prompts / "data"
        (data / "system_prompts.yaml").write_text(newcomer.block("yaml", "reviewer"))
        look = newcomer.block("sh", "foreword check")

        def live() -> bool:
            said = newcomer.shell(look)
            expect("0 errors, 0 warnings, 0 notes" in said, said)
            return "You work for Example Ltd." in said and "Review what you are shown." in said

        until(live, "the file is in the prompt")
    with report.case("README: sections change from the shell and over REST, and an edit is taken back"):
        edit = newcomer.block("sh", "foreword undo")
        by_shell, undo, by_rest = edit.replace("foreword undo", "\0foreword undo\0").split("\0")
        text = "Be kind. Be brief. Be sure."
        file = newcomer.prompts / "data/system_prompts.yaml"
        before = file.read_text()
        newcomer.shell(by_shell)
        expect(text in file.read_text(), file.read_text())
        newcomer.shell(undo)
        same(file.read_text(), before)
        expect(text in until(lambda: newcomer.shell(by_rest), "the server takes it"), "the section is not answered as it is kept")
        expect(text in file.read_text(), file.read_text())
    with report.case("README: the program gets the prompt as instructions, and the file that it makes is there for the user"):
        (newcomer.prompts / "client.py").write_text(newcomer.block("python", "client.instructions"))
        said = newcomer.run(setting.current / "bin/python", "client.py")
        prompt = newcomer.shell(newcomer.block("sh", "curl -H 'X-Chat-Id: chat-1' http"))
        same(said.rstrip(), prompt.rstrip())
        made = page.words(README, f"curl {page.ADDRESS}/files").replace(page.ADDRESS, newcomer.url)
        same(newcomer.shell(made), "hello\n")
