"""A person at a browser that shows Open WebUI."""

import json
from pathlib import Path

from browser import Browser
from harness import expect
from openwebui import Account, OpenWebUI
from serving import Setting

# What can be clicked, by its text or by what a screen reader says of it; of several the one that lies on top.
FIND = """
const found = [...document.querySelectorAll('button, a, [role=switch], [role^=menuitem]')].filter(
    (element) => element.offsetParent
        && [element.innerText.trim().replace(/\\s+/g, ' '), element.ariaLabel].includes(LABEL)
);
"""
# That tools are on in a chat.
TOOLS_ON = '[aria-label="Available Tools"]'
WITHIN = 60


class Person(Browser):
    """Somebody who is signed in."""

    def __init__(self, setting: Setting, app: OpenWebUI, account: Account):
        super().__init__(setting.browser)
        self.app = app
        self.look(1280, 900)
        self.open(f"{app.url}/auth")
        self.evaluate(f"localStorage.token = {json.dumps(account.token)}")

    def __enter__(self) -> "Person":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def go(self, path: str, until: str = "") -> None:
        self.open(self.app.url + path)
        self.sees(until)

    def close_news(self) -> None:
        """What is new in this version covers an administrator's first page."""
        self.go("/")
        self.click("Okay, Let's Go!")

    def sees(self, text: str) -> None:
        self.until(f"document.body.innerText.includes({json.dumps(text)})", WITHIN)

    def click(self, label: str) -> None:
        find = FIND.replace("LABEL", json.dumps(label))
        # At once, since a page that is drawn anew may take away what was there a moment ago.
        self.until(f"(() => {{ {find} found.at(-1)?.click(); return found.length > 0 }})()", WITHIN)

    def has(self, selector: str) -> None:
        self.until(f"!!document.querySelector({json.dumps(selector)})", WITHIN)

    def fill(self, selector: str, text: str) -> None:
        """Types into a field, in place of what is there."""
        self.has(selector)
        self.evaluate(f"(field => {{ field.focus(); field.select() }})(document.querySelector({json.dumps(selector)}))")
        self.call("Input.insertText", {"text": text})

    def paste(self, selector: str, text: str) -> None:
        """Pastes into an editor, in place of what is there."""
        self.has(selector)
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        everything = {"key": "a", "code": "KeyA", "windowsVirtualKeyCode": 65, "modifiers": 2}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", everything | {"type": kind})
        self.evaluate(
            f"""(text => {{
                const clipboardData = new DataTransfer();
                clipboardData.setData('text/plain', text);
                const event = new ClipboardEvent('paste', {{ clipboardData, bubbles: true, cancelable: true }});
                document.activeElement.dispatchEvent(event);
            }})({json.dumps(text)})"""
        )

    def attach(self, *files: Path) -> None:
        document = self.call("DOM.getDocument")["root"]["nodeId"]
        chosen = self.call("DOM.querySelector", {"nodeId": document, "selector": "input[type=file][multiple]"})
        self.call("DOM.setFileInputFiles", {"nodeId": chosen["nodeId"], "files": [str(file) for file in files]})
        for file in files:
            self.sees(file.name)

    def ask(self, question: str) -> tuple[str, list[dict]]:
        """Types a question into a new chat; the chat, and what the model's API got that ends with the question."""
        before = self.app.models.count
        self.has("#chat-input")
        self.evaluate("document.querySelector('#chat-input').focus()")
        self.call("Input.insertText", {"text": question})
        self.has("#send-message-button:not([disabled])")
        self.evaluate("document.querySelector('#send-message-button').click()")
        self.until("location.pathname.startsWith('/c/')", WITHIN)

        def asked() -> list[dict]:
            received = [request for request in self.app.models.received[before:] if request.method == "POST"]
            bodies = [request.json() for request in received]
            # What Open WebUI asks for itself, such as for a title, is not streamed.
            return [body for body in bodies if body.get("stream") and question in str(body["messages"][-1]["content"])]

        self.app.models.wait_for(asked, "the question", WITHIN)
        expect(len(asked()) == 1, f"asked {len(asked())} times")
        return self.evaluate("location.pathname").removeprefix("/c/"), asked()
