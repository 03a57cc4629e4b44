"""A real Open WebUI with a fresh data directory, and conversations through its own API."""

import json
import os
import re
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import processes
import upstream
from harness import expect, same, until
from serving import FILTER, Setting, run_block

# It reads its own code and migrates its database for a quarter of a minute, on an idle machine.
READY_WITHIN = 180
PASSWORD = "pass-word-1A!"
FILTER_ID = "foreword"


@dataclass(frozen=True)
class Account:
    id: str
    name: str
    email: str
    token: str


@dataclass(frozen=True)
class Turn:
    """A question, its answer as it is kept, and what the model's API got meanwhile."""

    chat: str
    answer_id: str
    answer: dict
    asked: list[dict]

    @property
    def system(self) -> str:
        """The text of the system message of the first request, which has to be the only one."""
        return system_of(self.asked[0])

    @property
    def tools(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.asked[0].get("tools", [])]

    @property
    def shown(self) -> str:
        """What the browser shows of the answer."""
        items = [item for item in self.answer.get("output") or [] if item["type"] == "message"]
        return "\n".join(part["text"] for item in items for part in item["content"]) or self.answer["content"]


def system_of(request: dict) -> str:
    found = [message["content"] for message in request["messages"] if message["role"] == "system"]
    expect(len(found) <= 1, f"{len(found)} system messages: {found}")
    expect(not found or request["messages"][0]["role"] == "system", "it is not the first message")
    return found[0] if found else ""


class Calling(upstream.Answer):
    """Calls the tool that the question names, with the arguments that it gives: `call NAME {…}`."""

    def wants_tool(self) -> dict | None:
        last = self.body["messages"][-1]
        asked = re.search(r"call (foreword_\w+) (\{.*\})", str(last["content"]))
        tools = {tool["function"]["name"]: tool for tool in self.body.get("tools", [])}
        if last["role"] != "user" or not asked or asked[1] not in tools:
            return None
        self.arguments = asked[2]
        return tools[asked[1]]

    def call(self, tool: dict) -> dict:
        return {
            "id": "call_1",
            "type": "function",
            "function": {"name": tool["function"]["name"], "arguments": self.arguments},
        }


class OpenWebUI:
    """A running Open WebUI whose models are the upstream's, with an administrator."""

    def __init__(self, url: str, models: upstream.Upstream, log_file: Path):
        self.url, self.models, self.log_file = url, models, log_file
        signed = self.post(
            "/api/v1/auths/signup", {"name": "Ann Ö'Neil", "email": "ann@example.org", "password": PASSWORD}
        )
        self.ann = Account(signed["id"], signed["name"], signed["email"], signed["token"])

    def send(self, method: str, path: str, data: bytes | None, kind: str, account: Account | None) -> tuple[int, str]:
        headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {account.token}"} if account else {})
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")

    def post(self, path: str, body: object = None, account: Account | None = None, method: str = "POST") -> dict:
        data = None if method == "GET" else json.dumps(body or {}).encode()
        account = account or getattr(self, "ann", None)
        status, text = self.send(method, path, data, "application/json", account)
        expect(status == 200, f"{path}: {status} {text[:500]}")
        return json.loads(text)

    def get(self, path: str, account: Account | None = None) -> dict:
        return self.post(path, account=account, method="GET")

    def add_user(self, name: str, email: str) -> Account:
        given = {"name": name, "email": email, "password": PASSWORD, "role": "user"}
        made = self.post("/api/v1/auths/add", given)
        return Account(made["id"], made["name"], made["email"], made["token"])

    def install_filter(self, foreword_url: str, key: str) -> None:
        """With what docs/clients/open-webui.md says to run in a shell."""
        run_block("functions/", OPEN_WEBUI=self.url, TOKEN=self.ann.token, FOREWORD=foreword_url, KEY=key)
        made = self.get(f"/api/v1/functions/id/{FILTER_ID}")
        same((made["type"], made["meta"]["manifest"]["title"]), ("filter", "Foreword"))
        same((made["content"], made["is_active"], made["is_global"]), (FILTER.read_text(), True, True))
        valves = self.get(f"/api/v1/functions/id/{FILTER_ID}/valves")
        same((valves["base_url"], valves["api_key"]), (foreword_url, key))

    def switch_filter(self) -> bool:
        return self.post(f"/api/v1/functions/id/{FILTER_ID}/toggle")["is_active"]

    def set_valves(self, **valves) -> None:
        self.post(f"/api/v1/functions/id/{FILTER_ID}/valves/update", valves)

    def connect(self, *servers: dict) -> None:
        self.post("/api/v1/configs/tool_servers", {"TOOL_SERVER_CONNECTIONS": list(servers)})

    def add_model(self, name: str, **params) -> None:
        """A model of one's own over `plain`."""
        given = {"id": name, "base_model_id": "plain", "name": name, "meta": {}, "params": params}
        self.post("/api/v1/models/create", given)
        self.get("/api/models?refresh=true")

    def attach(self, name: str, text: str, account: Account | None = None) -> dict:
        """Uploads a file as the browser does, and gives what a question then names."""
        edge = uuid.uuid4().hex
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'
        data = f"{head}{text}\r\n--{edge}--\r\n".encode()
        kind = f"multipart/form-data; boundary={edge}"
        status, made = self.send("POST", "/api/v1/files/?process=false", data, kind, account or self.ann)
        expect(status == 200, made)
        file = json.loads(made)
        return {"type": "file", "id": file["id"], "name": name, "url": file["id"], "file": file}

    def ask(
        self,
        content: object,
        after: Turn | None = None,
        account: Account | None = None,
        model: str = "plain",
        system: str | None = None,
        stream: bool = True,
        **more,
    ) -> Turn:
        """A question in a new chat, or in that of an earlier turn, as the browser asks it."""
        question, answer = str(uuid.uuid4()), str(uuid.uuid4())
        parent = after.answer_id if after else None
        message = {
            "id": question,
            "parentId": parent,
            "childrenIds": [answer],
            "role": "user",
            "content": content,
            "timestamp": 1,
        }
        if "files" in more:
            message["files"] = more["files"]
        before = self.models.count
        chats = {chat["id"] for chat in self.get("/api/v1/chats/", account)}
        messages = ([{"role": "system", "content": system}] if system else []) + [{"role": "user", "content": content}]
        body = {
            "model": model,
            "stream": stream,
            "messages": messages,
            "user_message": message,
            "id": answer,
            "parent_id": parent,
        }
        body |= ({"chat_id": after.chat} if after else {}) | more
        self.post_chat(body, account)
        chat = after.chat if after else ({chat["id"] for chat in self.get("/api/v1/chats/", account)} - chats).pop()

        def kept() -> dict | None:
            found = self.get(f"/api/v1/chats/{chat}", account)["chat"]["history"]["messages"][answer]
            return found if found.get("done") else None

        found = until(kept, "the answer", 60)
        asked = [request.json() for request in self.models.received[before:] if request.path == "/v1/chat/completions"]
        return Turn(chat, answer, found, asked)

    def ask_plainly(self, messages: list[dict], account: Account | None = None, **more) -> dict:
        """A question outside of any chat, as scripts ask it; what the model's API got."""
        before = self.models.count
        self.post_chat({"model": "plain", "messages": messages} | more, account)
        return self.models.next(before).json()

    def post_chat(self, body: dict, account: Account | None) -> None:
        status, text = self.send(
            "POST", "/api/chat/completions", json.dumps(body).encode(), "application/json", account or self.ann
        )
        expect(status == 200 and '"error"' not in text, f"{status} {text[:500]}")


@contextmanager
def running(setting: Setting, models: upstream.Upstream | None = None, **more: str) -> Iterator[OpenWebUI]:
    """With `models` that run already, or some of its own, and with `more` in its environment."""
    directory = setting.directory("openwebui")
    port = processes.free_port()
    url = f"http://127.0.0.1:{port}"
    with nullcontext(models) if models else upstream.Upstream(Calling) as models:
        # Nothing is fetched from elsewhere.
        environment = {
            "DATA_DIR": str(directory),
            "HOME": str(directory),
            "PATH": f"{setting.openwebui}/bin:{os.environ['PATH']}",
            "WEBUI_SECRET_KEY": "secret-of-the-test",
            "OFFLINE_MODE": "true",
            "HF_HUB_OFFLINE": "1",
            "ENABLE_OLLAMA_API": "False",
            "ENABLE_VERSION_UPDATE_CHECK": "False",
            "RAG_EMBEDDING_ENGINE": "openai",
            "BYPASS_EMBEDDING_AND_RETRIEVAL": "True",
            "OPENAI_API_BASE_URL": f"{models.url}/v1",
            "OPENAI_API_KEY": "key-of-the-upstream",
            "BYPASS_MODEL_ACCESS_CONTROL": "True",
            "SCARF_NO_ANALYTICS": "true",
            "DO_NOT_TRACK": "true",
            "ANONYMIZED_TELEMETRY": "false",
        } | more
        command = [setting.openwebui / "bin/open-webui", "serve", "--host", "127.0.0.1", "--port", str(port)]
        log = directory.with_suffix(".log")
        ready = processes.answers(f"{url}/health")
        with processes.running(command, ready, log, READY_WITHIN, environment, directory):
            yield OpenWebUI(url, models, log)
