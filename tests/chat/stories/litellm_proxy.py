"""A real LiteLLM proxy: it takes its prompts from Foreword, stands behind it, and stands before it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import gateway
import openai
from harness import Report, expect, same, tell
from processes import free_port
from serving import ASK, Foreword, Setting, behind, exchange, is_prompt
from upstream import CHUNKS, Upstream
from wire import minimal_environment

ANSWER = "".join(CHUNKS)
API_KEY = "key-of-foreword"
PROFILES = ["default", "developer"]


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, management, prompts_and_chain)


def managed(foreword: Foreword, query: str) -> dict:
    response = exchange(foreword, f"/beta/litellm_prompt_management{query}", b"", {"X-Foreword-Key": API_KEY}, "GET")
    same(response.status, 200, response.body)
    return response.json()


def neutral(foreword: Foreword, profile: str) -> str:
    """The form that knows no session; headers do not count there."""
    text = foreword.ok(f"/system-prompt?form=neutral&profile_id={profile}", {"X-Foreword-Key": API_KEY}).text
    expect("(known at call time)" in text and ("Rust" in text) == (profile == "developer"), text)
    return text


def management(setting: Setting, report: Report) -> None:
    """What LiteLLM asks for, without LiteLLM."""
    with Foreword(setting, environment={"FOREWORD_API_KEY": API_KEY}) as foreword:
        with report.case("litellm: a prompt in the shape of its prompt management, in the neutral form"):
            for profile in PROFILES:
                told = managed(foreword, f"?prompt_id={profile}")
                same(told["prompt_id"], profile)
                same(told["prompt_template"], [{"role": "system", "content": neutral(foreword, profile)}])
        with report.case("litellm: sessions and unknown parameters change nothing"):
            told = managed(foreword, "?prompt_id=developer&chat_id=chat-7&user_email=ada%40example.org&own=1")
            same(told, managed(foreword, "?prompt_id=developer"))
        with report.case("litellm: an unknown prompt is 404, none is an error, and no key is 401"):
            path = "/beta/litellm_prompt_management"
            key = {"X-Foreword-Key": API_KEY}
            same(exchange(foreword, f"{path}?prompt_id=nobody", b"", key, "GET").status, 404)
            expect(exchange(foreword, path, b"", key, "GET").status in (200, 400, 422), "none")
            same(exchange(foreword, f"{path}?prompt_id=default", b"", method="GET").status, 401)


@contextmanager
def proxy(setting: Setting, foreword: Foreword, upstream: Upstream, port: int) -> Iterator[str]:
    """A LiteLLM whose models are the upstream's and Foreword's own, and whose prompts are Foreword's."""
    models = {
        "gpt-5": {"model": "openai/gpt-5", "api_base": f"{upstream.url}/v1", "api_key": "key-from-the-gateway"},
        "through-foreword": {"model": "openai/gpt-5", "api_base": f"{foreword.url}/v1", "api_key": API_KEY},
    }
    prompts = [
        {
            "prompt_id": profile,
            "litellm_params": {
                "prompt_id": profile,
                "prompt_integration": "generic_prompt_management",
                "api_base": foreword.url,
                "api_key": API_KEY,
            },
        }
        for profile in PROFILES
    ]
    listed = [{"model_name": name, "litellm_params": parameters} for name, parameters in models.items()]
    settings = {
        "general_settings": {"master_key": gateway.KEY},
        "litellm_settings": {"drop_params": False, "telemetry": False},
    }
    directory = setting.directory("litellm")
    environment = minimal_environment(HOME=str(directory))
    # JSON is YAML.
    config = json.dumps({"model_list": listed, "prompts": prompts} | settings)
    with gateway.litellm(setting.litellm, config, directory, environment, port) as url:
        yield f"{url}/v1"


def prompts_and_chain(setting: Setting, report: Report) -> None:
    port = free_port()
    through_gateway = {"chat.upstream": {"base_url": f"http://127.0.0.1:{port}/v1", "api_key": gateway.KEY}}
    with (
        behind(setting, environment={"FOREWORD_API_KEY": API_KEY}) as (foreword, upstream),
        Foreword(setting, settings=through_gateway) as before_gateway,
    ):
        started = time.monotonic()
        with proxy(setting, foreword, upstream, port) as url:
            report.say(f"litellm was ready after {time.monotonic() - started:.1f} s")
            client = openai.OpenAI(base_url=url, api_key=gateway.KEY, max_retries=0, timeout=30)
            for profile in PROFILES:
                for stream in (False, True):
                    with report.case(f"litellm: it takes the prompt `{profile}` from Foreword (stream: {stream})"):
                        wanted = neutral(foreword, profile)
                        answer = client.chat.completions.create(
                            model="gpt-5", messages=[ASK], stream=stream, extra_body={"prompt_id": profile}
                        )
                        same(text_of(answer, stream), ANSWER)
                        same(upstream.last.messages[0], {"role": "system", "content": wanted})
                        same(upstream.last.messages[1:], [ASK])
                        same(upstream.last.json()["model"], "gpt-5")
            with report.case("litellm: before Foreword: its model is Foreword's, with the prompt in place"):
                for stream in (False, True):
                    answer = client.chat.completions.create(model="through-foreword", messages=[ASK], stream=stream)
                    same(text_of(answer, stream), ANSWER)
                    is_prompt(upstream.last.messages[0], foreword.session({"X-Foreword-Key": API_KEY}))
                    same(upstream.last.messages[1:], [ASK])
            with report.case("litellm: behind Foreword: the prompt goes through it as it is"):
                for stream in (False, True):
                    own = before_gateway.openai()
                    answer = own.chat.completions.create(
                        model="gpt-5@developer", messages=[ASK], stream=stream, extra_headers={"X-Chat-Id": "chat-7"}
                    )
                    same(text_of(answer, stream), ANSWER)
                    session = before_gateway.session({"X-Chat-Id": "chat-7", "X-Profile-Id": "developer"})
                    is_prompt(upstream.last.messages[0], session)
                    same(upstream.last.json()["model"], "gpt-5")
            with report.case("litellm: behind Foreword: its models are listed, and its refusals kept"):
                same({model.id for model in before_gateway.openai().models.list()}, {"gpt-5", "through-foreword"})
                try:
                    before_gateway.openai().chat.completions.create(model="no-such-model", messages=[ASK])
                except openai.APIStatusError as error:
                    expect(error.status_code in (400, 404) and "no-such-model" in error.message, error)
                else:
                    raise AssertionError("no error")


def text_of(answer, stream: bool) -> str:
    if not stream:
        return answer.choices[0].message.content
    return "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)
