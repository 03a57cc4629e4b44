"""A LiteLLM proxy with the configuration of its page: as a gateway for MCP, with Foreword's prompts, and before Foreword's models."""

import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import openai
from bench import KEY, Bench, Setting
from counting import numbered
from harness import Report, same, until
from server import free_port
from wire import Caller

GATEWAY_KEY = "sk-key-of-the-gateway"
# It reads its own code for half a minute, on an idle machine.
READY_WITHIN = 200
# A model that is not Foreword's, which a user of LiteLLM has, and the key that its clients show.
REST = """  - model_name: gpt-5
    litellm_params: {{model: openai/gpt-5, api_base: "{url}/v1", api_key: of-the-model}}
general_settings: {{master_key: {key}}}
litellm_settings: {{telemetry: false}}
"""


@contextmanager
def proxy(bench: Bench, setting: Setting) -> Iterator[str]:
    blocks = [bench.block("yaml", holds) for holds in ("mcp_servers:", "prompts:", "model_list:")]
    config = bench.work / "config.yaml"
    config.write_text("\n".join(blocks) + REST.format(url=bench.model.url, key=GATEWAY_KEY))
    port = free_port()
    # Nothing of its own is fetched from elsewhere.
    own = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "NO_DOCS": "True"}
    own |= {"PATH": f"{setting.litellm}/bin:{bench.environment['PATH']}"}
    arguments = ["--config", config, "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    log = bench.home / "litellm.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [setting.litellm / "bin/litellm", *arguments],
            env=bench.environment | own,
            cwd=bench.work,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def ready() -> bool:
        if process.poll() is not None:
            raise SystemExit(f"litellm ended with {process.returncode}: {log.read_text(errors='replace')[-2000:]}")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=2) as response:
            return response.status == 200

    try:
        until(ready, "litellm is ready", READY_WITHIN)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run(setting: Setting, report: Report) -> None:
    with Bench(setting, report, "litellm") as bench, proxy(bench, setting) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key=GATEWAY_KEY, max_retries=0, timeout=30)

        def asking(model: str, **more: object):
            def ask(question: str) -> str:
                messages = [{"role": "user", "content": question}]
                answer = client.chat.completions.create(model=model, messages=messages, **more)
                return answer.choices[0].message.content

            return ask

        forms = bench.foreword.forms("alice")
        prompt = {"extra_body": {"prompt_id": "default"}}
        bench.count("prompt management", asking("gpt-5", **prompt), forms, "neutral", again=False)
        bench.count("Foreword as the model's API", asking("assistant"), forms, "without a workspace", again=False)
        both = asking("assistant", **prompt)
        bench.count("both of them", both, forms, "neutral", "without a workspace", again=False)
        tools = [{"type": "mcp", "server_url": "litellm_proxy/mcp/foreword", "server_label": "foreword", "require_approval": "never"}]
        headers = {"X-Chat-Id": "alice"}
        bench.count("tools by the gateway", asking("gpt-5", tools=tools, extra_headers=headers), forms)

        def caller(chat: str) -> Caller:
            return Caller(f"{url}/mcp/", "legacy", {"X-Chat-Id": chat, "Authorization": f"Bearer {GATEWAY_KEY}"})

        with report.case("litellm: through the gateway each chat has its own workspace and uploads, and the same instructions"):
            for chat in ("alice", "bob"):
                path = f"/api/uploads/{chat}/of-{chat}.txt"
                request = urllib.request.Request(bench.foreword.url + path, b"x", {"X-Foreword-Key": KEY}, method="PUT")
                urllib.request.urlopen(request, timeout=20).close()
            for chat in ("alice", "bob", "alice"):
                of = caller(chat)
                guide = of.call("foreword-view", {"path": "/home/assistant/README.md"})["content"][0]["text"]
                same(guide.rstrip(), numbered(bench.foreword.forms(chat)["full"]).rstrip())
                uploads = [resource["uri"] for resource in of.listed("resources/list", "resources")]
                same(uploads, [f"file://uploads/{chat}/of-{chat}.txt"])
                same(of.request("initialize")["instructions"].strip(), forms["neutral"].strip())
