"""The blocks of pages whose clients do not run here: each is read as its client would, and leads to a Foreword with the prompt."""

import json
import re

import page
from bench import KEY, Bench, Setting
from harness import Report, expect, same
from wire import Caller, Stdio

# The page, and what tells its blocks apart.
BLOCKS = [
    ("claude-desktop", '"command"'),
    ("cursor", '"url"'),
    ("cursor", '"command"'),
    ("vscode", '"url"'),
    ("vscode", '"command"'),
]


def run(setting: Setting, report: Report) -> None:
    for client, holds in BLOCKS:
        with Bench(setting, report, client) as bench, report.case(f"{client}: the block with {holds} leads to the prompt"):
            leads_to_prompt(bench, json.loads(bench.block("json", holds)))
    with Bench(setting, report, "cursor") as bench, report.case("cursor: the command writes the prompt into a file"):
        bench.run(["bash", "-ec", bench.block("sh", "foreword.mdc")])
        neutral = bench.foreword.ok("/system-prompt?form=neutral", {"Authorization": f"Bearer {KEY}"}).text
        same((bench.work / ".cursor/rules/foreword.mdc").read_text(), f"---\nalwaysApply: true\n---\n{neutral}")
    with Bench(setting, report, "overview") as bench, report.case("clients.md: the program in it gets the prompt, and calls a tool"):
        program = page.block("../clients", "python").replace(page.ADDRESS, bench.foreword.url)
        (bench.work / "client.py").write_text(program)
        said = bench.run([setting.current / "bin/python", bench.work / "client.py"])
        same(said.split(), [*bench.foreword.forms("chat-1")["full"].split(), "hello"])
    with Bench(setting, report, "n8n") as bench, report.case("n8n: the prompt that its steps fetch is that of the server that they name"):
        prompt, endpoint = steps_of_n8n()
        headers = {name: value.replace("{{ $json.sessionId }}", "7f3a") for name, value in page.table("n8n", "Name")}
        authorization = {"Authorization": f"Bearer {KEY}"}
        # n8n's own `Accept`; the page's beats it.
        told = bench.foreword.ok(prompt.removeprefix(page.ADDRESS), {"Accept": "application/json"} | headers | authorization).text
        same(told, bench.foreword.forms("7f3a")["full"])
        server = Caller(re.sub(r"\{\{.*\}\}", "7f3a", endpoint.replace(page.ADDRESS, bench.foreword.url)), "legacy", authorization)
        guide = server.call("bash_tool", {"command": "cat README.md"})["content"][0]["text"]
        same(guide.rstrip(), told.rstrip())
    with report.case("n8n: the flow beside the page is that of its steps"):
        flow_is_that_of_the_steps()


def steps_of_n8n() -> tuple[str, str]:
    """Where the prompt is, and the tools."""
    return page.words("n8n", f"{page.ADDRESS}/system-prompt"), page.words("n8n", f"{page.ADDRESS}/mcp/c/")


def flow_is_that_of_the_steps() -> None:
    flow = json.loads((page.PAGES / "n8n.json").read_text())
    trigger, request, agent, model, tools = flow["nodes"]
    prompt, endpoint = steps_of_n8n()
    same(trigger["name"], page.words("n8n", "When chat message received"))
    same(request["parameters"]["url"], prompt)
    headers = [[header["name"], header["value"].removeprefix("=")] for header in request["parameters"]["headerParameters"]["parameters"]]
    same(headers, page.table("n8n", "Name"))
    same(agent["parameters"]["text"], "=" + page.words("n8n", "{{ $('When chat message received').item.json.chatInput"))
    same(agent["parameters"]["options"]["systemMessage"], "=" + page.words("n8n", "{{ $json.data"))
    same(tools["parameters"]["endpointUrl"], f"={endpoint}")
    # No key is handed around with it, and no id of somebody's n8n.
    same([node["credentials"] for node in (request, tools)], [{"httpBearerAuth": {"id": None, "name": "Foreword"}}] * 2)
    same(model["credentials"], {"openAiApi": {"id": None, "name": "OpenAI"}})


def leads_to_prompt(bench: Bench, config: dict) -> None:
    servers = config.get("mcpServers") or config["servers"]
    same(list(servers), ["foreword"])
    server = servers["foreword"]
    if "url" in server:
        headers = {name: re.sub(r"\$\{[^}]*\}", KEY, value) for name, value in server["headers"].items()}
        said = Caller(server["url"], "legacy", headers).request("initialize")["instructions"]
        same(said, bench.foreword.forms("my-project")["full"])
        return
    same(server["command"].rpartition("/")[2], "foreword")
    chat = server["args"][server["args"].index("--chat") + 1]
    command = [str(bench.setting.binary), *server["args"]]
    with Stdio(command, bench.environment, bench.home / "stdio.log") as client:
        expect(f"You work in chat {chat}." in client.greeting["instructions"], client.greeting)
        guide = client.request("tools/call", {"name": "bash_tool", "arguments": {"command": "cat README.md"}})
        same(guide["content"][0]["text"].rstrip(), client.greeting["instructions"].rstrip())
