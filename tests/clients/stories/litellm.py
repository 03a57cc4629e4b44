"""A LiteLLM proxy with the configuration of its page: as a gateway for MCP, with Foreword's prompts, and before Foreword's models."""

from contextlib import AbstractContextManager

import gateway
import openai
from bench import Bench, Setting
from counting import numbered
from harness import Report, same
from wire import Caller

# A model that is not Foreword's, which a user of LiteLLM has, and the key that its clients show.
REST = """  - model_name: gpt-5
    litellm_params: {{model: openai/gpt-5, api_base: "{url}/v1", api_key: of-the-model}}
general_settings: {{master_key: {key}}}
litellm_settings: {{telemetry: false}}
"""


def proxy(bench: Bench, setting: Setting) -> AbstractContextManager[str]:
    blocks = [bench.block("yaml", holds) for holds in ("mcp_servers:", "prompts:", "model_list:")]
    config = "\n".join(blocks) + REST.format(url=bench.model.url, key=gateway.KEY)
    return gateway.litellm(setting.litellm, config, bench.work, bench.environment)


def run(setting: Setting, report: Report) -> None:
    with Bench(setting, report, "litellm") as bench, proxy(bench, setting) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key=gateway.KEY, max_retries=0, timeout=30)

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
            return Caller(f"{url}/mcp/", "legacy", {"X-Chat-Id": chat, "Authorization": f"Bearer {gateway.KEY}"})

        with report.case("litellm: through the gateway each chat has its own workspace and uploads, and the same instructions"):
            for chat in ("alice", "bob"):
                bench.foreword.upload(chat, f"of-{chat}.txt", b"x")
            for chat in ("alice", "bob", "alice"):
                of = caller(chat)
                guide = of.call("foreword-view", {"path": "/home/assistant/README.md"})["content"][0]["text"]
                same(guide.rstrip(), numbered(bench.foreword.forms(chat)["full"]).rstrip())
                uploads = [resource["uri"] for resource in of.listed("resources/list", "resources")]
                same(uploads, [f"file://uploads/{chat}/of-{chat}.txt"])
                same(of.request("initialize")["instructions"].strip(), forms["neutral"].strip())
