"""A real Open WebUI with the filter, with Foreword as an MCP server, and with both: what reaches the model."""

import json
import re
import time
from urllib.parse import quote

from hands import TOOLS_ON, Person
from harness import Report, expect, same, tell
from openwebui import Account, OpenWebUI, Turn, running, system_of
from server import marked
from serving import ADMIN_KEY, API_KEY, PAGE, Foreword, Setting
from upstream import CHUNKS

PICTURE = [
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
]
# What stands once in each copy of the prompt.
SENTENCE = "Be kind to everybody."
TOOL = ["server:mcp:foreword"]
KEY_OF_MODELS = "key-of-the-upstream"
MODELS_OWN = "You are the model of the marketing department."
USERS_OWN = "Answer in German."
AT_ONCE = 1.0
# What the model answers to everything.
SAID = "".join(CHUNKS)
LINKS_SHOWN = "!!document.querySelector('a[href*=\"/preview/\"]')"


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, conversations)


def conversations(setting: Setting, report: Report) -> None:
    with Foreword(setting, sandbox="namespace") as foreword, running(setting) as app:
        bob = app.add_user("Bob", "bob@example.org")
        app.add_model("marketing", system=MODELS_OWN)
        app.install_filter(foreword.url, API_KEY)
        app.set_valves(base_url=foreword.url, api_key=API_KEY, timeout_seconds=1, retry_seconds=0)
        through_filter(app, foreword, bob, report)
        files(app, foreword, bob, report)
        away(app, foreword, bob, report)
        app.switch_filter()
        app.connect(connection(foreword))
        through_mcp(app, foreword, bob, report)
        app.switch_filter()
        through_both(app, foreword, bob, report)
        measure(app, report)
        in_browser(setting, app, foreword, report)
        with report.case("application: no key, and nothing of a person, is in what the filter and Open WebUI log"):
            log = app.log_file.read_text(errors="replace")
            expect("Foreword does not answer" in log, "the log is not that of the filter")
            for secret in (API_KEY, ADMIN_KEY, KEY_OF_MODELS, app.ann.token):
                expect(secret not in log, f"{secret} is in the log: {log[max(0, log.find(secret) - 500) :][:1000]}")
            lines = [line for line in log.splitlines() if "Foreword" in line or "function_foreword" in line]
            for word in (app.ann.email, bob.email, foreword.url):
                same([line for line in lines if word in line], [], word)


def connection(foreword: Foreword, readers: str = "*") -> dict:
    """What docs/clients/open-webui.md says to enter."""
    headers = {"X-Chat-Id": "{{CHAT_ID}}", "X-User-Email": "{{USER_EMAIL}}", "X-User-Name": "{{USER_NAME}}"}
    grant = {"principal_type": "user", "principal_id": readers, "permission": "read"}
    return {
        "type": "mcp",
        "url": f"{foreword.url}/mcp",
        "path": "",
        "auth_type": "bearer",
        "key": API_KEY,
        "headers": headers,
        "config": {"enable": True, "access_grants": [grant]},
        "info": {
            "id": "foreword",
            "name": "Foreword",
            "description": "The house prompt, and a workspace for each chat",
        },
    }


def prompt_of(foreword: Foreword, turn: Turn | str, account: Account) -> tuple[str, str]:
    chat = turn if isinstance(turn, str) else turn.chat
    return foreword.prompt(chat, quote(account.email, safe="@"), quote(account.name, safe=""))


def through_filter(app: OpenWebUI, foreword: Foreword, bob: Account, report: Report) -> None:
    with report.case("application: the filter puts the prompt before a new chat, byte for byte, once"):
        for stream in (True, False):
            turn = app.ask("Hello", stream=stream)
            same(turn.system, marked(prompt_of(foreword, turn, app.ann)))
            expect(f"in chat {turn.chat} with {app.ann.name} at {app.ann.email}" in turn.system, turn.system)
            same(turn.asked[0]["messages"][1:], [{"role": "user", "content": "Hello"}])
    with report.case("application: OpenAI's newer models get it in the role that they have for it"):
        turn = app.ask("Hello", model="gpt-5")
        wanted = {"role": "developer", "content": marked(prompt_of(foreword, turn, app.ann))}
        same(turn.asked[0]["messages"], [wanted, {"role": "user", "content": "Hello"}])
    with report.case("application: the second turn sends the whole conversation, and has it once"):
        second = app.ask("And now?", after=app.ask("Hello"))
        same(second.system, marked(prompt_of(foreword, second, app.ann)))
        same([message["role"] for message in second.asked[0]["messages"]], ["system", "user", "assistant", "user"])
    with report.case("application: a script that sends back what the model got has it once, and always the present one"):
        for number, model in enumerate(("plain", "gpt-5")):
            asked = app.ask_plainly([{"role": "user", "content": "Hello"}], model=model)
            same(asked["messages"][0]["content"], marked(prompt_of(foreword, "", app.ann)))
            again = app.ask_plainly([*asked["messages"], {"role": "user", "content": "More"}], model=model)
            same(again["messages"][:2], asked["messages"])
            foreword.edit(SENTENCE, f"{SENTENCE} Be present, {number}.")
            again = app.ask_plainly([*asked["messages"], {"role": "user", "content": "More"}], model=model)
            same(again["messages"][0]["content"], marked(prompt_of(foreword, "", app.ann)))
            same([message["role"] for message in again["messages"][1:]], ["user", "user"])
            expect(f"Be present, {number}." in again["messages"][0]["content"], again["messages"][0])
    with report.case("application: a temporary chat has the prompt of its own"):
        asked = app.ask_plainly([{"role": "user", "content": "Hello"}], chat_id="local:Ab_1")
        same(system_of(asked), marked(prompt_of(foreword, "local:Ab_1", app.ann)))
        expect("in chat local:ab_1 with" in system_of(asked), system_of(asked))
    with report.case("application: a channel has one prompt for each that asks in it"):
        app.post("/api/v1/auths/admin/config", app.get("/api/v1/auths/admin/config") | {"ENABLE_CHANNELS": True})
        channel = f"channel:{app.post('/api/v1/channels/create', {'name': 'all', 'access_grants': []})['id']}"
        asked = app.ask_plainly([{"role": "user", "content": "Hello"}], chat_id=channel)
        same(system_of(asked), marked(prompt_of(foreword, channel, app.ann)))
    with report.case("application: the model's own system prompt stays before it, the user's own behind it"):
        for model, system in (("marketing", None), ("plain", USERS_OWN), ("marketing", USERS_OWN)):
            turn = app.ask("Hello", model=model, system=system)
            prompt = marked(prompt_of(foreword, turn, app.ann))
            wanted = [MODELS_OWN] * (model == "marketing") + [prompt] + [USERS_OWN] * bool(system)
            same(turn.system, "\n".join(wanted))
            second = app.ask("More", after=turn, model=model, system=system)
            same(second.system, turn.system)
    with report.case("application: pictures stay as they are"):
        turn = app.ask(PICTURE)
        same(turn.asked[0]["messages"][1:], [{"role": "user", "content": PICTURE}])
        same(turn.system, marked(prompt_of(foreword, turn, app.ann)))
    with report.case("application: each user has the prompt of their own"):
        turn = app.ask("Hello", account=bob)
        same(turn.system, marked(prompt_of(foreword, turn, bob)))
        expect(app.ann.email not in turn.system and bob.email in turn.system, turn.system)
    with report.case("application: an address that is not ASCII is one user's, by the filter"):
        joerg = app.add_user("Jörg", "jörg@exämple.org")
        turn = app.ask("Hello", account=joerg)
        same(turn.system, marked(prompt_of(foreword, turn, joerg)))
        expect("with Jörg at jörg@exämple.org." in turn.system, turn.system)
    with report.case("application: a change of the library is in the next turn"):
        first = app.ask("Hello")
        foreword.edit(SENTENCE, f"{SENTENCE} Be brief.")
        second = app.ask("More", after=first)
        expect("Be brief." in second.system and "Be brief." not in first.system, second.system)
        same(second.system, marked(prompt_of(foreword, second, app.ann)))


def files(app: OpenWebUI, foreword: Foreword, bob: Account, report: Report) -> None:
    with report.case("application: an attached file is in the chat's uploads, once, and under the user's name"):
        file = app.attach("Übersicht.csv", "a,b\n1,2\n")
        first = app.ask("What is in it?", files=[file])
        same(list(foreword.uploads(first.chat)), ["Übersicht.csv"])
        listed = foreword.ok(f"/api/uploads/{first.chat}/list").text
        second = app.ask("And now?", after=first, files=[file])
        same(foreword.ok(f"/api/uploads/{first.chat}/list").text, listed)
        same(foreword.get(f"/api/uploads/{first.chat}/list", {"X-User-Email": bob.email}).status, 403)
    with report.case("application: a file of somebody else's is not handed on"):
        turn = app.ask("What is in it?", account=bob, files=[file])
        same(foreword.uploads(turn.chat), {})
    with report.case("application: an answer has no links while the chat has no outputs"):
        same((second.shown, second.answer["content"]), (SAID, SAID))
    with report.case("application: once there are some it ends with them, once, and they are kept"):
        foreword.output(first.chat, "chart.html", "<p>made")
        headers = foreword.ok("/system-prompt", {"X-Chat-Id": first.chat, "X-User-Email": app.ann.email}).headers
        line = f"[Preview of the files]({headers['x-preview-url']}) · [All files as ZIP]({headers['x-archive-url']})"
        for stream in (True, False):
            third = app.ask("Make a chart", after=second, stream=stream)
            same((third.shown, third.answer["content"]), (f"{SAID}\n\n{line}",) * 2)
    with report.case("application: running it again changes nothing"):
        body = {"model": "plain", "chat_id": third.chat, "id": third.answer_id, "session_id": "s"}
        # Where there are none it does write them: it runs.
        for content in (third.answer["content"], SAID):
            messages = [{"id": third.answer_id, "role": "assistant", "content": content}]
            done = app.post("/api/chat/completed", body | {"messages": messages})
            same(done["messages"][-1]["content"], f"{SAID}\n\n{line}")
    with report.case("application: the model does not see the links of earlier answers"):
        fourth = app.ask("Thanks", after=third)
        answers = [message["content"] for message in fourth.asked[0]["messages"] if message["role"] == "assistant"]
        same(answers, [SAID] * 3)


def away(app: OpenWebUI, foreword: Foreword, bob: Account, report: Report) -> None:
    turn = app.ask("Hello")
    prompt = marked(prompt_of(foreword, turn, app.ann))
    app.set_valves(base_url=foreword.url, api_key=API_KEY, timeout_seconds=1, retry_seconds=600)
    with report.case("application: while Foreword is silent the last prompt is used, and only the first turn waits"):
        with foreword.silent():
            for most in (1 + AT_ONCE, AT_ONCE, AT_ONCE):
                started = time.monotonic()
                turn = app.ask("More", after=turn)
                seconds = time.monotonic() - started
                same(turn.system, prompt)
                expect(seconds < most, f"{seconds:.1f} s")
    with report.case("application: a new chat goes on without one, and says so"):
        new = app.ask("Hello")
        same(new.system, "")
        same([status["description"] for status in new.answer["statusHistory"]], ["Without the prompt of Foreword"])
    with report.case("application: it can be required"):
        app.set_valves(base_url=foreword.url, api_key=API_KEY, retry_seconds=600, required=True)
        before = app.models.count
        body = {"model": "plain", "messages": [{"role": "user", "content": "Hello"}]}
        status, text = app.send("POST", "/api/chat/completions", json.dumps(body).encode(), "application/json", bob)
        expect(status == 400 and "cannot be had from Foreword" in text, f"{status} {text}")
        same(app.models.count, before)
    # Another address is another server, of which nothing is known yet.
    app.set_valves(base_url=foreword.url.replace("127.0.0.1", "localhost"), api_key=API_KEY)
    with report.case("application: it is back"):
        turn = app.ask("More", after=turn)
        same(turn.system, marked(prompt_of(foreword, turn, app.ann)))


def instructions(prompt: tuple[str, str]) -> str:
    """As Open WebUI writes them into the system message."""
    return f'MCP server "foreword" instructions:\n{prompt[0]}'


def through_mcp(app: OpenWebUI, foreword: Foreword, bob: Account, report: Report) -> None:
    with report.case("application: without filter and tool there is no prompt"):
        same(app.ask("Hello").system, "")
    with report.case("application: over MCP the prompt of the chat and the user reaches the model, byte for byte"):
        joerg = app.add_user("Jörg", "jörg@exämple.com")
        for account in (app.ann, bob, joerg):
            turn = app.ask("Hello", account=account, tool_ids=TOOL)
            expect(f"with {account.name} at {account.email}." in turn.system, turn.system)
            same(turn.system, instructions(prompt_of(foreword, turn, account)))
            turn = app.ask("More", account=account, after=turn, tool_ids=TOOL)
            same(turn.system, instructions(prompt_of(foreword, turn, account)))
    with report.case("application: and the tools, with the hint at the end of two descriptions"):
        names = [
            tool["name"]
            for tool in foreword.caller(headers={"Authorization": f"Bearer {API_KEY}"}).listed("tools/list", "tools")
        ]
        same(turn.tools, [f"foreword_{name}" for name in names])
        hints = [
            tool["function"]["name"]
            for tool in turn.asked[0]["tools"]
            if "README.md again" in tool["function"]["description"]
        ]
        same(hints, ["foreword_bash_tool", "foreword_view"])
    with report.case("application: the model's and the user's own stay"):
        turn = app.ask("Hello", model="marketing", system=USERS_OWN, tool_ids=TOOL)
        same(turn.system, "\n".join([MODELS_OWN, USERS_OWN, instructions(prompt_of(foreword, turn, app.ann))]))
    with report.case("application: a tool runs in the chat's workspace, and the prompt is still there once"):
        command = "echo made > /mnt/user-data/outputs/a.txt; cat /home/assistant/README.md"
        turn = app.ask(f"call foreword_bash_tool {json.dumps({'command': command})}", tool_ids=TOOL)
        same(len(turn.asked), 2)
        same(system_of(turn.asked[1]), turn.system)
        result = turn.asked[1]["messages"][-1]
        same(result["role"], "tool")
        expect(prompt_of(foreword, turn, app.ann)[0] in result["content"], result["content"])
        outputs = foreword.ok(f"/api/outputs/{turn.chat}", {"X-User-Email": app.ann.email}).json()
        same([file["name"] for file in outputs["files"]], ["a.txt"])
        same(foreword.get(f"/api/outputs/{turn.chat}", {"X-User-Email": bob.email}).status, 403)


def through_both(app: OpenWebUI, foreword: Foreword, bob: Account, report: Report) -> None:
    with report.case("application: with both, the filter leaves the prompt to the MCP server"):
        turn = app.ask("Hello", tool_ids=TOOL)
        same(turn.system, instructions(prompt_of(foreword, turn, app.ann)))
        turn = app.ask("Hello")
        same(turn.system, marked(prompt_of(foreword, turn, app.ann)))
    with report.case("application: and still links the files, and copies those that are attached"):
        file = app.attach("notes.txt", "of the meeting")
        command = "cat /mnt/user-data/uploads/notes.txt > /mnt/user-data/outputs/copy.txt; cat /mnt/user-data/outputs/copy.txt"
        turn = app.ask(f"call foreword_bash_tool {json.dumps({'command': command})}", tool_ids=TOOL, files=[file])
        expect("of the meeting" in turn.asked[-1]["messages"][-1]["content"], turn.asked[-1]["messages"][-1])
        expect("[All files as ZIP](http" in turn.shown, turn.shown)
        # Before them Open WebUI asks what to look for in the files.
        answers = [asked for asked in turn.asked if asked.get("tools")]
        same([system_of(asked) for asked in answers], [instructions(prompt_of(foreword, turn, app.ann))] * 2)
    with report.case("application: whoever may not use the MCP server has the prompt from the filter all the same"):
        app.connect(connection(foreword, readers=app.ann.id))
        turn = app.ask("Hello", account=bob, tool_ids=TOOL, system=USERS_OWN)
        same(turn.system, f"{marked(prompt_of(foreword, turn, bob))}\n{USERS_OWN}")
        same(turn.tools, [])
        app.connect(connection(foreword))
    with report.case("application: while Foreword is gone the filter has the prompt that the MCP server gave before"):
        turn = app.ask("Hello", tool_ids=TOOL)
        prompt = marked(prompt_of(foreword, turn, app.ann))
        foreword.stop()
        turn = app.ask("More", after=turn, tool_ids=TOOL)
        same((turn.system, turn.tools), (prompt, []))
        foreword.start()
        app.set_valves(base_url=foreword.url, api_key=API_KEY, retry_seconds=0)
        turn = app.ask("More", after=turn, tool_ids=TOOL)
        same(turn.system, instructions(prompt_of(foreword, turn, app.ann)))
    with report.case("application: without the valve there are two copies, also after a tool"):
        app.set_valves(base_url=foreword.url, api_key=API_KEY, skip_when_attached=False)
        turn = app.ask('call foreword_bash_tool {"command": "true"}', tool_ids=TOOL, system=USERS_OWN)
        prompt = prompt_of(foreword, turn, app.ann)
        wanted = "\n".join([marked(prompt), USERS_OWN, instructions(prompt)])
        same([system_of(asked) for asked in turn.asked], [wanted, wanted])


def in_browser(setting: Setting, app: OpenWebUI, foreword: Foreword, report: Report) -> None:
    """The same by hand: a file is attached, a question typed."""
    # Nothing here is about time.
    app.set_valves(base_url=foreword.url, api_key=API_KEY, retry_seconds=0, timeout_seconds=20)
    app.connect(connection(foreword))
    path = setting.directory("attached") / "Übersicht.csv"
    path.write_text("a,b\n1,2\n")
    command = "cat /mnt/user-data/uploads/*.csv > /mnt/user-data/outputs/copy.csv; cat /mnt/user-data/outputs/copy.csv"
    question = f"call foreword_bash_tool {json.dumps({'command': command})}"
    with Person(setting, app, app.ann) as ann:
        with report.case("application: what is typed in a browser has the prompt once, the file, and its tool"):
            ann.close_news()
            before = app.models.count
            ann.go(f"/?model=plain&tools={TOOL[0]}")
            ann.has(TOOLS_ON)
            ann.attach(path)
            chat, asked = ann.ask(question)
            app.models.wait_for(
                lambda: any(b'"call_1"' in request.body for request in app.models.received[before:]),
                "a tool's result",
                60,
            )
            received = [request.json() for request in app.models.received[before:] if b'"call_1"' in request.body]
            asked += [request for request in received if request.get("tools")][:1]
            same([system_of(request) for request in asked], [instructions(prompt_of(foreword, chat, app.ann))] * 2)
            expect("1,2" in str(asked[1]["messages"][-1]["content"]), asked[1]["messages"][-1])
            same(list(foreword.uploads(chat)), ["Übersicht.csv"])
        with report.case("application: a browser shows the links, once, also after it was closed"):
            for _ in range(2):
                ann.until(LINKS_SHOWN, 60)
                same(ann.evaluate("document.querySelectorAll('a[href*=\"/preview/\"]').length"), 1)
                same(ann.evaluate("document.querySelectorAll('a[href$=\"/archive\"]').length"), 1)
                ann.go(f"/c/{chat}")


def measure(app: OpenWebUI, report: Report) -> None:
    """What docs/clients/open-webui.md says of each set-up."""
    rows = {"none": (False, [], True), "filter": (True, [], True), "MCP server": (False, TOOL, True)}
    rows |= {"both, `skip_when_attached` off": (True, TOOL, False), "both, `skip_when_attached` on": (True, TOOL, True)}
    active = True
    report.say("set-up | copies | bytes of the prompt | bytes of the tools")
    with report.case("application: copies in each set-up"):
        given = app.get("/api/v1/functions/id/foreword/valves")
        found = {}
        for name, (filtered, tools, skip) in rows.items():
            if filtered != active:
                active = app.switch_filter()
            app.set_valves(**given | {"skip_when_attached": skip})
            turn = app.ask("Hello", tool_ids=tools)
            found[name] = turn.system.count(SENTENCE)
            size = len(json.dumps(turn.asked[0].get("tools", []), ensure_ascii=False).encode()) if turn.tools else 0
            report.say(f"{name} | {found[name]} | {len(turn.system.encode())} | {size}")
        table = PAGE.read_text().partition("| Set-up | Copies of the prompt |")[2].partition("\n\n")[0]
        same(found, {name: int(count) for name, count in re.findall(r"^\| ([^|]+) \| (\d+) \|", table, re.MULTILINE)})
