"""A real n8n with the flow of its page, and with the changes that the page speaks of."""

import copy
import http.cookiejar
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import processes
from bench import ANSWERED_WITHIN, KEY, QUESTION, READ_AGAIN, Bench, Setting
from counting import copies, numbered, strings
from harness import Report, expect, same, until
from page import ADDRESS, PAGES, words

OWNER = {"email": "ann@example.com", "firstName": "Ann", "lastName": "Ng", "password": "Of-the-tests-1"}
# It makes its database first.
READY_WITHIN = 200
# Nothing of its own is asked of the network, or told to it.
QUIET = {
    "N8N_COMMUNITY_PACKAGES_ENABLED": "false",
    "N8N_DIAGNOSTICS_ENABLED": "false",
    "N8N_DISABLED_MODULES": "mcp-registry",
    "N8N_DYNAMIC_BANNERS_ENABLED": "false",
    "N8N_LICENSE_AUTO_RENEW_ENABLED": "false",
    "N8N_PERSONALIZATION_ENABLED": "false",
    "N8N_TEMPLATES_ENABLED": "false",
    "N8N_VERSION_NOTIFICATIONS_ENABLED": "false",
}


class Client:
    """n8n's own API, as its editor uses it, for the owner."""

    def __init__(self, url: str):
        self.url = url
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def call(self, method: str, path: str, body: object = None) -> object:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "browser-id": "tests"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with self.opener.open(request, timeout=ANSWERED_WITHIN) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode(errors='replace')[:600]}") from error
        # While it starts it answers everything with a page.
        expect(text.startswith("{"), f"{method} {path}: {text[:600]}")
        return json.loads(text)

    def credential(self, name: str, kind: str, data: dict) -> None:
        self.call("POST", "/rest/credentials", {"name": name, "type": kind, "data": data})

    @contextmanager
    def published(self, flow: dict) -> Iterator[Callable[[str, str], str]]:
        """Asks `flow` a question in a session."""
        made = self.call("POST", "/rest/workflows", flow)["data"]
        path = f"/rest/workflows/{made['id']}"
        chat = f"/webhook/{node(made, 'chatTrigger')['webhookId']}/chat"

        def send(action: str, session: str, **more: str) -> object:
            return self.call("POST", chat, {"action": action, "sessionId": session} | more)

        self.call("POST", f"{path}/activate", {"versionId": made["versionId"]})
        try:
            # The trigger listens a moment later.
            until(lambda: send("loadPreviousSession", "none"), "the flow is published")
            yield lambda session, question: json.dumps(send("sendMessage", session, chatInput=question))
        finally:
            self.call("POST", f"{path}/deactivate", {})


@contextmanager
def running(bench: Bench, setting: Setting) -> Iterator[Client]:
    port = processes.free_port()
    own = {"N8N_USER_FOLDER": str(bench.home), "N8N_LISTEN_ADDRESS": "127.0.0.1", "N8N_PORT": str(port), "N8N_SECURE_COOKIE": "false"}
    programs = setting.n8n / "node_modules/.bin"
    own |= {"N8N_RUNNERS_BROKER_PORT": str(processes.free_port()), "PATH": f"{programs}:{bench.environment['PATH']}"}
    log = bench.home / "n8n.log"
    client = Client(f"http://127.0.0.1:{port}")

    def ready() -> object:
        return client.call("POST", "/rest/owner/setup", OWNER)

    environment = bench.environment | QUIET | own
    with processes.running([programs / "n8n", "start"], ready, log, READY_WITHIN, environment, bench.work):
        yield client
        said = log.read_text(errors="replace")
        expect("getaddrinfo" not in said, f"n8n looked for a host: {said[-2000:]}")


def node(flow: dict, kind: str) -> dict:
    """The one node of the flow that is of `kind`."""
    found = [node for node in flow["nodes"] if node["type"].endswith(f".{kind}")]
    same(len(found), 1, f"nodes of kind {kind}")
    return found[0]


def with_users(flow: dict) -> dict:
    flow = copy.deepcopy(flow)
    header = {"name": "X-User-Email", "value": "=" + words("n8n", "{{ $json.user")}
    node(flow, "httpRequest")["parameters"]["headerParameters"]["parameters"].append(header)
    tools = node(flow, "mcpClientTool")
    tools["parameters"]["authentication"] = "multipleHeadersAuth"
    tools["credentials"] = {"httpMultipleHeadersAuth": {"id": None, "name": "Foreword for a user"}}
    return flow


def with_endpoint(flow: dict, endpoint: str) -> dict:
    flow = copy.deepcopy(flow)
    node(flow, "mcpClientTool")["parameters"]["endpointUrl"] = endpoint
    return flow


def without_tools(flow: dict) -> dict:
    flow = copy.deepcopy(flow)
    flow["nodes"].remove(node(flow, "mcpClientTool"))
    flow["nodes"].remove(node(flow, "httpRequest"))
    del flow["connections"]["MCP Client"], flow["connections"]["System prompt"]
    flow["connections"]["When chat message received"]["main"][0][0]["node"] = "AI Agent"
    # What the node is without it, is "You are a helpful assistant".
    node(flow, "agent")["parameters"]["options"] = {"systemMessage": ""}
    node(flow, "lmChatOpenAi")["credentials"]["openAiApi"]["name"] = "Foreword as OpenAI"
    return flow


def run(setting: Setting, report: Report) -> None:
    with Bench(setting, report, "n8n") as bench, running(bench, setting) as n8n:
        flow = json.loads((PAGES / "n8n.json").read_text().replace(ADDRESS, bench.foreword.url))
        n8n.credential("Foreword", "httpBearerAuth", {"token": KEY})
        n8n.credential("OpenAI", "openAiApi", {"apiKey": "of-the-model", "url": f"{bench.model.url}/v1", "header": False})
        forms = bench.foreword.forms("7f3a")
        with n8n.published(flow) as asked:
            bench.count("the flow of the page", lambda question: asked("7f3a", question), forms, "full")
            with report.case("n8n: each session has its prompt, its tools and its workspace"):
                for session in ("8b21", "7f3a"):
                    its = bench.foreword.forms(session)
                    body = bench.asked(lambda question, session=session: asked(session, question), READ_AGAIN)
                    same([found.form for found in copies(body, its) if found.whole], ["full", "numbered"], session)
                    names = {tool["function"]["name"] for tool in body["tools"]}
                    same(names, {f"MCP_Client_{tool}" for tool in ("bash_tool", "view", "create_file", "str_replace")})
        with n8n.published(with_endpoint(flow, f"{bench.foreword.url}/mcp/c/my-flow")) as asked, report.case(
            "n8n: a fixed endpoint is one workspace for all sessions"
        ):
            shared = numbered(bench.foreword.forms("my-flow")["full"]).rstrip()
            for session in ("7f3a", "8b21"):
                body = bench.asked(lambda question, session=session: asked(session, question), READ_AGAIN)
                expect(any(shared in text for _, text in strings(body)), f"session {session} has another workspace")
        of_page = words("n8n", f"{ADDRESS}/mcp/c/").replace(ADDRESS, bench.foreword.url)
        mere = re.sub(r"\{\{.*\}\}", "{{ $json.sessionId }}", of_page)
        with report.case("n8n: at the tools `$json` is not the trigger's, which alone makes the difference"):
            with n8n.published(with_endpoint(flow, f"={of_page}")) as asked:
                bench.asked(lambda question: asked("7f3a", question), QUESTION)
            before = bench.model.count
            with n8n.published(with_endpoint(flow, f"={mere}")) as asked:
                try:
                    answer = asked("7f3a", QUESTION)
                except AssertionError as error:
                    expect("Error in workflow" in str(error), error)
                else:
                    raise AssertionError(f"it answered {answer}")
            same(bench.model.asked(before), [], "what the model was asked")
        users(bench, n8n, flow)
        alone(bench, n8n, flow)


def users(bench: Bench, n8n: Client, flow: dict) -> None:
    email = words("n8n", "{{ $('When chat message received').item.json.user")
    headers = [{"name": "Authorization", "value": f"Bearer {KEY}"}, {"name": "X-User-Email", "value": f"={email}"}]
    n8n.credential("Foreword for a user", "httpMultipleHeadersAuth", {"headers": {"values": headers}})
    forms = bench.foreword.forms("of-ann")
    forms |= {"full": bench.foreword.text(f"/system-prompt?chat_id=of-ann&user_email={OWNER['email']}")}
    with n8n.published(with_users(flow)) as asked:
        bench.count("with the user's address", lambda question: asked("of-ann", question), forms, "full")
        with bench.report.case("n8n: with the user's address the chat is that user's"):
            same((bench.foreword.data / "workspaces/of-ann/owner").read_text(), OWNER["email"])


def alone(bench: Bench, n8n: Client, flow: dict) -> None:
    url = words("n8n", ADDRESS + "/v1").replace(ADDRESS, bench.foreword.url)
    n8n.credential("Foreword as OpenAI", "openAiApi", {"apiKey": KEY, "url": url, "header": False})
    with n8n.published(without_tools(flow)) as asked:
        forms = bench.foreword.forms("default")
        bench.count("Foreword as the model's API", lambda question: asked("7f3a", question), forms, "without a workspace", again=False)
