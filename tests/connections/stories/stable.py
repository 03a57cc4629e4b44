"""The tools prompt: the same bytes whatever the order, nothing missing, and counted rightly."""

import peers
from harness import Report, expect, same, tell, until
from peers import Setting
from serving import Foreword
from wire import RpcError


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, order, settings, given)


def order(setting: Setting, report: Report) -> None:
    names = ["zebra", "alpha", "Middle", "b-2", "b_10"]

    def connections(order: int | None, reverse: bool = False) -> dict[str, dict]:
        chosen = names[::-1] if reverse else names
        return {name: peers.raw("plain" if name != "alpha" else "types", order=order) for name in chosen}

    with Foreword(setting, connections(None)) as foreword:
        foreword.ready(*names)
        tools, prompt, listed = foreword.tools_prompt(), foreword.prompt(), list(foreword.tools())
        with report.case("stable: the prompt has a heading, and one of each server, in order of names"):
            headings = [line for line in tools.split("\n") if line.startswith("#")]
            expect(headings[0].startswith("## "), headings)
            same([line.split()[-1].strip("`") for line in headings[1:]], sorted(names))
            expect(tools in prompt, "the tools prompt is not in the prompt as it is")
        with report.case("stable: the same bytes after a restart"):
            foreword.stop()
            foreword.start()
            foreword.ready(*names)
            same(foreword.tools_prompt(), tools)
            same(foreword.prompt(), prompt)
        for seed in (1, 2):
            with report.case(f"stable: the same bytes with servers and tools in another order ({seed})"):
                foreword.stop()
                foreword.configure(connections(seed, reverse=seed == 1))
                foreword.start()
                foreword.ready(*names)
                same(foreword.tools_prompt(), tools)
                same(foreword.prompt(), prompt)
                same(list(foreword.tools()), listed, "the order of the list")


def settings(setting: Setting, report: Report) -> None:
    connections = {"snake": peers.raw("snake-case"), "hidden": peers.raw("types", expose=False)}
    with Foreword(setting, connections, environment={"FOREWORD_TOOLS_PROMPT__MAX_TOOLS": "2"}) as foreword:
        foreword.ready("snake", "hidden")
        with report.case('stable: fault 38: "2 of 7 shown" is counted before the cut'):
            prompt = foreword.tools_prompt()
            expect("2 of 7" in prompt, prompt)
            expect("snake__other-1" in prompt and "snake__other-2" not in prompt, prompt)
            same(foreword.status()["tools_count"], 7)
        with report.case("stable: a server that is not exposed is neither in the prompt nor in the list"):
            expect("typed" not in foreword.tools_prompt(), foreword.tools_prompt())
            same([name for name in foreword.tools() if "typed" in name], [])
            expect("unknown tool" in refused(foreword, "hidden__typed"), "it can be called")
            same((foreword.servers()["hidden"]["exposed"], foreword.servers()["snake"]["exposed"]), (False, True))
    with Foreword(setting, connections) as foreword:
        foreword.ready("snake")
        with report.case("stable: fault 38: parameters under `input_schema` are shown"):
            prompt = foreword.tools_prompt()
            expect("needle" in prompt and "What to look for" in prompt, prompt)
        with report.case("stable: fault 38: and handed on as `inputSchema`"):
            tool = foreword.tools()["snake__search"]
            same(list(tool["inputSchema"]["properties"]), ["needle"])
    with Foreword(setting, connections, environment={"FOREWORD_TOOLS_PROMPT__INCLUDE_UNEXPOSED": "true"}) as foreword:
        foreword.ready("hidden")
        with report.case("stable: with `include_unexposed` it is in the prompt, under its own name, and not in the list"):
            expect("`typed`" in foreword.tools_prompt(), foreword.tools_prompt())
            same([name for name in foreword.tools() if "typed" in name], [])
    with Foreword(setting, {"braces": peers.raw("braces")}) as foreword:
        foreword.ready("braces")
        with report.case("stable: braces in a server's words stay as they are"):
            for wanted in ("in {chat_id} of", "an {user_email} or \\{date}"):
                expect(wanted in foreword.prompt("chat-7"), foreword.prompt("chat-7"))
            unresolved = foreword.ok("/system-prompt?format=json", {"X-Chat-Id": "c"}).json()["unresolved"]
            expect("date" not in unresolved, unresolved)
        with report.case("stable: a profile with `tools_prompt: false` has none, the others have it"):
            foreword.edit("    name: Other\n", "    name: Other\n    tools_prompt: false\n")
            other = {"X-Chat-Id": "c", "X-Profile-Id": "other"}
            until(lambda: "braces__" not in foreword.ok("/system-prompt", other).text, "without")
            expect("braces__" in foreword.prompt(), foreword.prompt())
    with Foreword(setting, connections, environment={"FOREWORD_TOOLS_PROMPT__ENABLED": "false"}) as foreword:
        foreword.ready("snake")
        with report.case("stable: switched off, the prompt has no tools, and they can be called all the same"):
            until(lambda: "snake__search" in foreword.tools(), "the list")
            expect("snake__search" not in foreword.prompt(), "it is in the prompt")
    more = {"plain": peers.raw(tools=["say", "fail"], instructions=False)}
    with Foreword(setting, more, environment={"FOREWORD_TOOLS_PROMPT__INCLUDE_SCHEMAS": "false"}) as foreword:
        foreword.ready("plain")
        with report.case("stable: `include_schemas` off leaves the parameters out"):
            prompt = foreword.tools_prompt()
            expect("plain__say" in prompt and "What to say" not in prompt, prompt)
        with report.case("stable: `tools` names which are handed on, and `instructions` off leaves the server's out"):
            same(sorted(name for name in foreword.tools() if "__" in name), ["plain__fail", "plain__say"])
            expect("unknown tool" in refused(foreword, "plain__wait"), "another can be called")
            expect("Words of the raw server" not in foreword.prompt(), foreword.tools_prompt())


def refused(foreword: Foreword, tool: str) -> str:
    try:
        return str(foreword.call(tool))
    except RpcError as error:
        return str(error)


def given(setting: Setting, report: Report) -> None:
    schema = {"type": "object", "properties": {"needle": {"type": "string", "description": "What to look for"}}}
    with Foreword(setting) as foreword:
        with report.case("stable: without connections there is no tools prompt"):
            same(foreword.tools_prompt(), "")
            same((foreword.status()["servers"], foreword.status()["tools_count"]), ([], 0))
        with report.case("stable: a given list: both spellings give the same bytes, in any order"):
            first = [
                {"name": "b", "description": "B.", "inputSchema": schema, "server": "s"},
                {"name": "a", "description": "A.", "inputSchema": schema, "server": "s"},
            ]
            second = [
                {"name": tool["name"], "description": tool["description"], "input_schema": schema, "server_name": "s"}
                for tool in reversed(first)
            ]
            prompts = [rendered(foreword, tools) for tools in (first, second)]
            same(prompts[0], prompts[1])
            expect("needle" in prompts[0], prompts[0])
            same(rendered(foreword, []), "")


def rendered(foreword: Foreword, tools: list[dict]) -> str:
    return foreword.ok("/api/prompts/mcp-tools", body={"tools": tools}).json()["mcp_tools_prompt"]
