"""What docs/clients/open-webui.md says to click, in a browser: each label has to be on the page and in Open WebUI."""

import ast
import re
import time

from hands import TOOLS_ON, Person
from harness import Report, expect, same, tell, until
from openwebui import FILTER_ID, OpenWebUI, running, system_of
from server import marked
from serving import API_KEY, FILTER, PAGE, Foreword, Setting
from stories.application import TOOL, connection, instructions, prompt_of

# Longer than calls that are well, and shorter than the command below.
TOOL_SECONDS = 4
# Within this it is over, long before the command and what Foreword gives it, two minutes.
OVER_WITHIN = 30
BUTTONS = "[...document.querySelectorAll('button')]"


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, clicks)


def clicks(setting: Setting, report: Report) -> None:
    limit = {"AIOHTTP_CLIENT_TIMEOUT_TOOL_SERVER": str(TOOL_SECONDS)}
    with (
        Foreword(setting, sandbox="namespace") as foreword,
        running(setting, **limit) as app,
        Person(setting, app, app.ann) as ann,
    ):
        ann.close_news()
        filter_by_hand(ann, app, foreword, report)
        server_by_hand(ann, app, foreword, report)
        with report.case("administrator: a tool may take as long as AIOHTTP_CLIENT_TIMEOUT_TOOL_SERVER says"):
            started = time.monotonic()
            turn = app.ask('call foreword_bash_tool {"command": "sleep 60"}', tool_ids=TOOL)
            seconds = time.monotonic() - started
            result = turn.asked[-1]["messages"][-1]
            told = f"{seconds:.1f} s: {result}; Foreword said at last: {foreword.log()[-600:]}"
            expect(TOOL_SECONDS <= seconds < OVER_WITHIN, told)
            expect(result["role"] == "tool" and "timed out" in result["content"].lower(), told)
            # That would be Foreword's own limit.
            expect("timed out after" not in result["content"], told)


def follow(person: Person, *labels: str) -> None:
    """Clicks what the page names."""
    for label in labels:
        said(label)
        person.click(label)


def said(label: str) -> None:
    pieces = [piece for text in re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", PAGE.read_text()) for piece in text.split(" → ")]
    expect(label in pieces, f"{PAGE.name} does not name {label}: {pieces}")


def filter_by_hand(ann: Person, app: OpenWebUI, foreword: Foreword, report: Report) -> None:
    with report.case("administrator: the filter is pasted, and named by what it says of itself"):
        ann.click("User menu")
        follow(ann, "Admin Panel", "Functions", "Create")
        ann.paste('[aria-label="Code Editor"]', FILTER.read_text())
        for field, value in {"Name": "Foreword", "ID": FILTER_ID}.items():
            ann.until(f"document.querySelector('[aria-label=\"Function {field}\"]').value === '{value}'")
        follow(ann, "Save & Create", "Confirm")
        ann.sees("Function created successfully")
        # Open WebUI breaks its lines anew.
        same(meaning(app.get(f"/api/v1/functions/id/{FILTER_ID}")["content"]), meaning(FILTER.read_text()))
    with report.case("administrator: its valves"):
        follow(ann, "Valves")
        said("Default")
        ann.sees("Default")
        for _ in ("base_url", "api_key"):
            ann.evaluate(f"{BUTTONS}.find(button => button.innerText.trim() === 'Default').click()")
        ann.fill('textarea[placeholder="Base Url"]', f"{foreword.url}/\n")
        ann.fill("#valve-api_key", f" {API_KEY}")
        follow(ann, "Save")
        ann.sees("Valves updated successfully")
        ann.click("Close")
    with report.case("administrator: it is switched on, for all models"):
        ann.click("Enabled")
        ann.click("Function Menu")
        said("Global")
        ann.sees("Global")
        ann.evaluate("[...document.querySelectorAll('[role=switch]')].pop().click()")
        until(lambda: app.get(f"/api/v1/functions/id/{FILTER_ID}")["is_global"], "it is global")
        same(app.get(f"/api/v1/functions/id/{FILTER_ID}")["is_active"], True)
    with report.case("administrator: and then a question has the prompt"):
        ann.go("/?model=plain")
        chat, asked = ann.ask("Hello")
        same(system_of(asked[0]), marked(prompt_of(foreword, chat, app.ann)))


def meaning(program: str) -> str:
    """The program without comments, whichever way its lines are broken."""
    tree = ast.parse(program)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = " ".join(node.value.split())
    return ast.unparse(tree)


def server_by_hand(ann: Person, app: OpenWebUI, foreword: Foreword, report: Report) -> None:
    table = PAGE.read_text().partition("| Field | Value |")[2].partition("\n\n")[0]
    fields = dict(re.findall(r"^\| ([A-Z][\w ]+) \| (.+) \|$", table, re.MULTILINE))
    headers = re.search(r'^\{"X-Chat-Id": .*\}$', PAGE.read_text(), re.MULTILINE)[0]
    with report.case("administrator: the MCP server is connected as the table of the page says"):
        ann.click("User menu")
        follow(ann, "Admin Panel", "Settings", "Integrations")
        said("External Tool Servers")
        ann.sees("External Tool Servers")
        ann.evaluate("document.querySelector('[aria-label=\"Add Connection\"]').click()")
        ann.click("OpenAPI")
        ann.click("Advanced")
        for field in fields:
            ann.sees(field)
        said("MCP Streamable HTTP")
        ann.sees("Streamable HTTP")
        ann.fill("#enter-name", "Foreword")
        ann.fill("#enter-id", fields["Connection ID"].strip("`"))
        ann.fill("#api-base-url", fields["URL"].strip("`").replace("http://foreword:8081", foreword.url))
        ann.fill("[id^=password-input]", API_KEY)
        ann.fill('textarea[placeholder^="Enter additional headers"]', headers)
        ann.click("Access Control")
        ann.click("Visibility Private")
        follow(ann, "Public")
        ann.click("Close")
        ann.click("Verify Connection")
        ann.sees("Connection successful")
        follow(ann, "Save")
        ann.until("!document.querySelector('#enter-name')")
        (found,) = app.get("/api/v1/configs/tool_servers")["TOOL_SERVER_CONNECTIONS"]
        wanted = connection(foreword)
        for name in ("type", "url", "auth_type", "key", "headers"):
            same(found[name], wanted[name], name)
        same(found["info"]["id"], wanted["info"]["id"])
        same(found["config"]["access_grants"], wanted["config"]["access_grants"])
    with report.case("administrator: a user switches the tool on in a chat, and has the prompt from it, once"):
        ann.go("/?model=plain")
        follow(ann, "Integrations")
        said("Tools")
        ann.click("Tools 1")
        ann.click("Foreword")
        ann.has(TOOLS_ON)
        chat, asked = ann.ask("Hello again")
        same(system_of(asked[0]), instructions(prompt_of(foreword, chat, app.ann)))
