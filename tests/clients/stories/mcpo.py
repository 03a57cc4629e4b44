"""mcpo, with the configuration of its page."""

import json
import subprocess
import urllib.request
from contextlib import contextmanager

from bench import KEY, Bench, Setting
from counting import copies, numbered
from harness import Report, expect, same, until
from processes import free_port

KEY_OF_MCPO = "a-key-of-mcpo"


@contextmanager
def running(bench: Bench, setting: Setting):
    config = bench.work / "config.json"
    config.write_text(bench.block("json").replace("KEY", KEY))
    port = free_port()
    arguments = ["--host", "127.0.0.1", "--port", str(port), "--api-key", KEY_OF_MCPO, "--config", config]
    log = bench.home / "mcpo.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [setting.agents / "bin/mcpo", *arguments],
            env=bench.environment,
            cwd=bench.work,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}/foreword"

    def get(path: str, body: object = None) -> object:
        headers = {"Authorization": f"Bearer {KEY_OF_MCPO}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(url + path, data=data, headers=headers), timeout=20) as answer:
            return json.loads(answer.read())

    try:
        until(lambda: process.poll() is not None or get("/openapi.json")["paths"], "mcpo is ready", 120)
        expect(process.poll() is None, f"mcpo ended with {process.poll()}: {log.read_text()[-800:]}")
        yield get
    finally:
        process.terminate()
        process.wait(10)


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
