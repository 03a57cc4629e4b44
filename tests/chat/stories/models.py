"""`GET /v1/models`: the upstream's, and with `chat.list_profiles` each with each profile."""

import openai
from harness import Report, expect, same, tell
from serving import UPSTREAM_KEY, Foreword, Setting, behind, exchange
from upstream import LIST, MODELS

PROFILES = ["default", "developer", "analyst"]


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, listed, combined, missing)


def listed(setting: Setting, report: Report) -> None:
    with behind(setting) as (foreword, upstream):
        with report.case("models: they are the upstream's"):
            same([model.id for model in foreword.openai().models.list()], MODELS)
            same(upstream.last.headers["authorization"], f"Bearer {UPSTREAM_KEY}")
            same((upstream.last.method, upstream.last.path.split("?")[0]), ("GET", "/v1/models"))
        with report.case("models: byte for byte"):
            same(exchange(foreword, "/v1/models", b"", method="GET").body, LIST)


def combined(setting: Setting, report: Report) -> None:
    with behind(setting, settings={"chat": {"list_profiles": True}}) as (foreword, upstream):
        client = foreword.openai()
        with report.case("models: with `chat.list_profiles` each is there with each profile too"):
            models = list(client.models.list())
            ids = [model.id for model in models]
            same([id for id in ids if id in MODELS], MODELS, "the upstream's own")
            same(
                sorted(set(ids) - set(MODELS)), sorted(f"{model}@{profile}" for model in MODELS for profile in PROFILES)
            )
            same(len(ids), len(set(ids)), "none is there twice")
            same({model.owned_by for model in models}, {"tests"})
        with report.case("models: the upstream's own entries stay as they are, byte for byte"):
            body = exchange(foreword, "/v1/models", b"", method="GET").body
            for entry in LIST[LIST.index(b"[") + 1 : LIST.index(b"]")].split(b" ,"):
                expect(entry in body, f"{entry!r} is not in {body!r}")
        with report.case("models: each that is listed can be asked, and is the profile's"):
            for id in ids:
                message = {"role": "user", "content": "x"}
                raw = client.chat.completions.with_raw_response.create(model=id, messages=[message])
                model, _, profile = id.rpartition("@")
                wanted = (id, "default") if id in MODELS else (model, profile)
                same((upstream.last.json()["model"], raw.headers["x-profile-id"]), wanted)


def missing(setting: Setting, report: Report) -> None:
    with Foreword(setting) as foreword:
        with report.case("models: without an upstream it is 501, which says what to set"):
            try:
                foreword.openai().models.list()
            except openai.APIStatusError as error:
                same(error.status_code, 501)
                expect("chat.upstream.base_url" in error.message, error.message)
            else:
                raise AssertionError("no error")
