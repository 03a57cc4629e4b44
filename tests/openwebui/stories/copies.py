"""How often the prompt reaches the model in each set-up, and what it weighs: the rows of Open WebUI in docs/clients.md.

The library, the model and the way of counting are those of the other clients, in tests/clients.
"""

from collections.abc import Callable
from urllib.parse import quote

from bench import KEY, QUESTION, Bench
from counting import copies
from harness import Report, expect, same
from openwebui import OpenWebUI, Turn, running
from serving import Setting
from stories.application import TOOL, connection


def run(setting: Setting, report: Report) -> None:
    # So that the models' API is told whose a request is.
    forwarding = {"ENABLE_FORWARD_USER_INFO_HEADERS": "true"}
    with Bench(setting, report, "open-webui") as bench, running(setting, bench.model, **forwarding) as app:
        app.install_filter(bench.foreword.url, KEY)
        app.connect(connection(bench.foreword) | {"key": KEY})
        chat = app.post("/api/v1/chats/new", {"chat": {}})["id"]
        forms = forms_of(bench, app, chat)
        asked, with_tools = asking(app, chat), asking(app, chat, tool_ids=TOOL)

        bench.count("filter", asked, forms, "full", again=False)
        bench.count("filter and MCP server", with_tools, forms, "full")
        set_valves(app, bench, skip_when_attached=False)
        bench.count("filter and MCP server, skip_when_attached off", with_tools, forms, "full", "full")
        app.switch_filter()
        bench.count("MCP server", with_tools, forms, "full")
        with report.case("open-webui: ENABLE_FORWARD_USER_INFO_HEADERS names chat and user where the connection does not"):
            app.connect(connection(bench.foreword) | {"key": KEY, "headers": {}})
            same([copy.form for copy in bench.reached(with_tools, QUESTION, forms)], ["full"])
            app.connect(connection(bench.foreword) | {"key": KEY})
        models_are_behind(app, bench)
        bench.count("/v1", asked, forms, "without a workspace", again=False)
        with report.case("open-webui: /v1: what finds a title has the prompt too"):
            before = bench.model.count
            messages = [{"role": "user", "content": QUESTION}]
            app.post("/api/v1/tasks/title/completions", {"model": "plain", "messages": messages, "chat_id": chat})
            found = copies(bench.model.asked(before)[-1], forms)
            same([(copy.form, copy.whole) for copy in found], [("without a workspace", True)])
        bench.count("/v1 and MCP server", with_tools, forms, "full", "without a workspace")
        app.switch_filter()
        bench.count("/v1 and filter", asked, forms, "without a workspace", again=False)


def forms_of(bench: Bench, app: OpenWebUI, chat: str) -> dict[str, str]:
    """The texts in which the chat's prompt is known, by name."""
    session = f"chat_id={chat}&user_email={app.ann.email}&user_name={quote(app.ann.name)}"
    full = bench.foreword.text(f"/system-prompt?{session}")
    alone, guide, _ = full.partition("\n\nThese instructions as a whole")
    expect(guide, "the guide does not begin as it did")
    return {"full": full, "without a workspace": alone}


def asking(app: OpenWebUI, chat: str, **more: object) -> Callable[[str], str]:
    """Asks each question as the first one of the chat."""
    return lambda question: app.ask(question, after=Turn(chat, None, {}, []), **more).shown


def set_valves(app: OpenWebUI, bench: Bench, **valves: object) -> None:
    app.set_valves(base_url=bench.foreword.url, api_key=KEY, **valves)


def models_are_behind(app: OpenWebUI, bench: Bench) -> None:
    """Foreword's chat endpoint as the models' API, as docs/clients/open-webui.md says."""
    given = {"OPENAI_API_BASE_URLS": [f"{bench.foreword.url}/v1"], "OPENAI_API_KEYS": [KEY], "OPENAI_API_CONFIGS": {}}
    app.post("/openai/config/update", {"ENABLE_OPENAI_API": True} | given)
    app.get("/api/models?refresh=true")
