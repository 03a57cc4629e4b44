"""mcpo, with the configuration and the command of its page."""

import json
import shlex
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import processes
from bench import KEY, Bench, Setting
from counting import copies, numbered
from harness import Report, same
from page import filled, words

KEY_OF_MCPO = "a-key-of-mcpo"
VERSIONS = Path(__file__).parents[1] / "python/agents.in"


@contextmanager
def running(bench: Bench, setting: Setting):
    (bench.work / "config.json").write_text(filled(bench.block("json"), {"KEY": KEY}))
    port = processes.free_port()
    command = filled(bench.block("sh", "--config"), {"8000": str(port), "SECRET": KEY_OF_MCPO})
    environment = bench.environment | {"PATH": f"{setting.agents}/bin:{bench.environment['PATH']}"}
    method, tool = words("mcpo", "POST ").split()
    same(method, "POST")
    url = tool.replace("8000", str(port)).removesuffix("/bash_tool")

    def get(path: str, body: object = None) -> object:
        headers = {"Authorization": f"Bearer {KEY_OF_MCPO}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(url + path, data=data, headers=headers), timeout=20) as answer:
            return json.loads(answer.read())

    def ready() -> object:
        return get("/openapi.json")["paths"]

    with processes.running(shlex.split(command), ready, bench.home / "mcpo.log", 120, environment, bench.work):
        yield get


def run(setting: Setting, report: Report) -> None:
    with Bench(setting, report, "mcpo") as bench, running(bench, setting) as get:
        forms = bench.foreword.forms("my-project")
        with report.case("mcpo: the description of the API is the prompt, and no operation holds it"):
            described = get("/openapi.json")
            same(described["info"]["description"], forms["full"])
            same([copy.place for copy in copies(described, forms)], ["/info/description"])
            same(set(described["paths"]), {"/bash_tool", "/view", "/create_file", "/str_replace"})
        with report.case("mcpo: a tool works in the chat that the configuration names"):
            guide = get("/view", {"path": "/home/assistant/README.md"})
            same(guide.rstrip(), numbered(forms["full"]).rstrip())
            same(get("/bash_tool", {"command": "echo hello"}).strip(), "hello")
        with report.case("mcpo: the page names the versions that are tried here"):
            named = set(shlex.split(bench.block("sh", "pip install"))[2:])
            same(named - set(VERSIONS.read_text().splitlines()), set())
