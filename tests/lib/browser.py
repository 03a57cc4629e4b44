"""A headless Chromium, spoken to over its pipe: nothing but Python's library is needed."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from processes import end

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-pipe", "--hide-scrollbars",
]

# For what a page is asked, which may take a second on a machine that is busy.
ANSWERED_WITHIN = 60


class Browser:
    """One page in one browser with a fresh profile."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="foreword-browser-")
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def pipes():
            # Chromium reads from descriptor 3 and writes to 4.
            kept = os.dup(to_browser), os.dup(from_browser)
            os.dup2(kept[0], 3)
            os.dup2(kept[1], 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=pipes, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._waiting, self._next, self.events = b"", 1, []
        target = self.call("Target.createTarget", {"url": "about:blank"}, None)["targetId"]
        attached = self.call("Target.attachToTarget", {"targetId": target, "flatten": True}, None)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, params=None, session="page"):
        number, self._next = self._next, self._next + 1
        message = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWERED_WITHIN
        while True:
            answer = self._read(method, deadline)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self, method, deadline):
        while b"\0" not in self._waiting:
            readable, _, _ = select.select([self._in], [], [], max(0, deadline - time.monotonic()))
            if not readable:
                raise AssertionError(f"{method}: the browser did not answer within {ANSWERED_WITHIN} s")
            more = os.read(self._in, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self._waiting += more
        message, self._waiting = self._waiting.split(b"\0", 1)
        return json.loads(message)

    def evaluate(self, script):
        params = {"expression": script, "awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", params)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def until(self, script, seconds=15):
        """Waits until `script` is true in the page."""
        deadline = time.monotonic() + seconds
        while not (value := self.evaluate(script)):
            if time.monotonic() > deadline:
                page = self.evaluate("document.body.innerText")
                raise AssertionError(f"never true: {script}; the page says: {page}")
            time.sleep(0.05)
        return value

    def open(self, url):
        self.call("Page.navigate", {"url": url})
        self.until("document.readyState === 'complete'")

    def look(self, width, height, scheme="light"):
        """Sets the size of the window and the colour scheme of its user."""
        phone = width < 600
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", {"features": features})

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key})

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def errors(self):
        """What the console and failed scripts said so far; forgets it."""
        self.evaluate("0")
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:300])
            if method == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"])
            if method == "Runtime.consoleAPICalled" and params["type"] == "error":
                found.append(json.dumps(params["args"])[:300])
        self.events.clear()
        return found

    def close(self):
        with contextlib.suppress(Exception):
            self.call("Browser.close", session=None)
        end(self.process)
        shutil.rmtree(self.profile, ignore_errors=True)
