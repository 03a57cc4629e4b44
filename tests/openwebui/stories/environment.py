"""Open WebUI as deploy/compose.yaml starts it: the environment is taken from that file, and nobody has set anything up."""

import json
import re

import upstream
import yaml
from hands import TOOLS_ON, Person
from harness import Report, expect, same, tell
from openwebui import Calling, OpenWebUI, running, system_of
from serving import API_KEY, PAGE, ROOT, Foreword, Setting
from stories.application import SENTENCE, TOOL, connection, instructions, prompt_of

COMPOSE = ROOT / "deploy/compose.yaml"
# Where Foreword is in the network of the containers.
INSIDE = "http://foreword:8081"
VALUE = re.compile(r"\$\{(\w+)(?::\?[^}]*|:-([^}]*))?\}")


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, from_compose)


def from_compose(setting: Setting, report: Report) -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    hosts = services["foreword"]["environment"]["FOREWORD_HTTP__ALLOWED_HOSTS"]
    with (
        upstream.Upstream(Calling) as models,
        Foreword(setting, sandbox="namespace", FOREWORD_HTTP__ALLOWED_HOSTS=hosts) as foreword,
    ):
        # What a person fills in in deploy/.env.
        values = {"FOREWORD_API_KEY": API_KEY, "WEBUI_SECRET_KEY": "secret-of-the-person"}
        values |= {"OPENAI_API_BASE_URL": f"{models.url}/v1", "OPENAI_API_KEY": "key-of-the-person"}
        given = filled(services["open-webui"]["environment"], values, foreword)
        with running(setting, models, **given) as app:
            as_it_starts(app, foreword, report)
            in_browser(setting, app, foreword, report)


def filled(environment: dict[str, str], values: dict[str, str], foreword: Foreword) -> dict[str, str]:
    """As Docker Compose fills the file in, with the address that this Foreword has."""

    def value(found: re.Match) -> str:
        name, otherwise = found.groups()
        expect(name in values or otherwise is not None, f"compose.yaml wants {name}")
        return values.get(name, otherwise)

    return {name: VALUE.sub(value, text).replace(INSIDE, foreword.url) for name, text in environment.items()}


def as_it_starts(app: OpenWebUI, foreword: Foreword, report: Report) -> None:
    with report.case("environment: Foreword is among the tools, as the page says to connect it"):
        (found,) = app.get("/api/v1/configs/tool_servers")["TOOL_SERVER_CONNECTIONS"]
        wanted = connection(foreword)
        same({name: value for name, value in found.items() if name in wanted}, wanted)
    with report.case("environment: the variables of the page are those of compose.yaml"):
        same(of_page("TOOL_SERVER_CONNECTIONS", foreword), [connection(foreword)])
        same(of_page("DEFAULT_MODEL_METADATA", foreword), {"toolIds": TOOL})
    with report.case("environment: Foreword lets itself be called by its name there"):
        same(foreword.get("/system-prompt", {"Host": INSIDE.removeprefix("http://")}).status, 200)
        same(foreword.get("/system-prompt", {"Host": "another:8081"}).status, 403)
    with report.case("environment: the models are where compose.yaml says, and get its key"):
        app.ask("Hello")
        same(app.models.last.headers["authorization"], "Bearer key-of-the-person")


def of_page(name: str, foreword: Foreword) -> object:
    """The value that docs/clients/open-webui.md gives a variable."""
    found = re.findall(rf"^{name}='(.*?)'$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    expect(len(found) == 1, f"{name} is set {len(found)} times in {PAGE.name}")
    return json.loads(found[0].replace(INSIDE, foreword.url).replace("the key of Foreword", API_KEY))


def in_browser(setting: Setting, app: OpenWebUI, foreword: Foreword, report: Report) -> None:
    bob = app.add_user("Bob", "bob@example.org")
    case = report.case("environment: whoever types a question in a new chat has the prompt, once, and the tools")
    with case, Person(setting, app, bob) as person:
        person.go("/?model=plain")
        person.has(TOOLS_ON)
        chat, asked = person.ask("Hello")
        same(system_of(asked[0]), instructions(prompt_of(foreword, chat, bob)))
        expect("foreword_bash_tool" in [tool["function"]["name"] for tool in asked[0]["tools"]], asked[0]["tools"])
    with report.case("environment: what finds a title and the like has no prompt"):
        app.models.wait_for(lambda: any(b"concise title" in request.body for request in app.models.received), "a title")
        tasks = [request for request in app.models.received if b"### Task:" in request.body]
        same([request.body.decode().count(SENTENCE) for request in tasks], [0] * len(tasks))
