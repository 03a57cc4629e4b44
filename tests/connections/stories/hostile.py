"""Servers that are broken, or mean it: each may harm itself, and nobody else."""

import json
import os
import re
import subprocess
import time
import unicodedata
from pathlib import Path

import peers
from harness import Report, expect, same, tell, until
from markdown_it import MarkdownIt
from peers import Setting, failed, peer_processes, records, words
from serving import Foreword
from wire import RpcError

CLIENTS = Path(__file__).parents[2] / "peers/clients"
BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
MEGABYTE = 1 << 20
INSTRUCTIONS_LIMIT, DESCRIPTION_LIMIT, PROMPT_LIMIT = 4096, 2048, 65536


def run(setting: Setting, report: Report) -> None:
    tell(setting, report, odd_lists, breaking_out, pages, asking)


def odd_lists(setting: Setting, report: Report) -> None:
    connections = {
        "broken": peers.raw("broken-schemas"),
        "bare": peers.raw("undescribed"),
        "names": peers.raw("many-names"),
        "types": peers.raw("types"),
        "plain": peers.raw(),
        "s": peers.raw("underscores"),
        "s_": peers.raw("underscores"),
    }
    with Foreword(setting, connections) as foreword:
        with report.case("hostile: broken schemas: the tools beside them work"):
            foreword.ready("broken", "plain")
            for tool in ("good", "also-good"):
                expect(f"broken__{tool}" in foreword.prompt(), f"{tool} is not in the prompt")
                expect(f"{tool} was called" in words(foreword.call(f"broken__{tool}", {"text": "x"})), tool)
        with report.case("hostile: broken schemas: the status says what is wrong with which tool"):
            problems = "\n".join(foreword.servers()["broken"]["problems"])
            for tool in ("schema-text", "schema-array", "twice"):
                expect(tool in problems, f"{tool} is not in {problems}")
        with report.case("hostile: broken schemas: what is handed on is what the protocol allows"):
            for era in ("legacy", "modern"):
                tools = foreword.caller(era).listed("tools/list", "tools")
                for tool in tools:
                    expect(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", tool["name"]), f"the name {tool['name']!r}")
                    schema = tool["inputSchema"]
                    expect(isinstance(schema, dict) and schema.get("type") == "object", f"{tool['name']}: {schema}")
                    expect(isinstance(tool.get("description", ""), str), f"{tool['name']}: {tool}")
                    expect(isinstance(schema.get("properties", {}), dict), f"{tool['name']}: {schema}")
                    expect(isinstance(schema.get("required", []), list), f"{tool['name']}: {schema}")
                names = [tool["name"] for tool in tools]
                same(len(names), len(set(names)), f"different names in {era}")
        strict = [("typescript_sdk.mjs", "legacy"), ("typescript_client.mjs", "legacy"), ("typescript_client.mjs", "modern")]
        for script, era in strict:
            with report.case(f"hostile: broken schemas: a strict client gets the others ({script}, {era})"):
                answer = strict_client(foreword, script, era)
                expect({"broken__good", "plain__say", "read_me"} <= set(answer.get("tools", ())), answer)
        with report.case("hostile: tools without a description are offered and listed"):
            foreword.ready("bare")
            expect({"bare__bare", "bare__empty", "bare__blank"} <= foreword.tools().keys(), sorted(foreword.tools()))
            prompt = foreword.tools_prompt()
            expect(all(name in prompt for name in ("bare__bare", "bare__empty", "bare__blank")), prompt)
            expect("None" not in prompt and "null" not in section(prompt, "bare"), section(prompt, "bare"))
        with report.case("hostile: long and odd names become names that clients take, and can be called"):
            foreword.ready("names")
            names = [name for name in foreword.tools() if name.startswith("names__")]
            expect(all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) for name in names), names)
            long = [name for name in names if "nnn" in name]
            same(len(long), 2, f"long names in {names}")
            called = sorted(words(foreword.call(name)).split()[0] for name in long)
            same(called, ["n" * 100, "n" * 100 + "2"], "what was called")
        with report.case("hostile: a name that two servers come to is told, and stays the one's"):
            foreword.ready("s", "s_")
            # `s` with `_x` is `s_` with `x`; `s_` with `_x` is a name of its own.
            same([name for name in foreword.tools() if name.startswith("s__")], ["s____x", "s___x", "s__x"])
            problems = {name: " ".join(foreword.servers()[name]["problems"]) for name in ("s", "s_")}
            expect("s___x" in problems["s"] + problems["s_"], problems)
        with report.case("hostile: types print as a reader would write them"):
            foreword.ready("types")
            prompt = foreword.tools_prompt()
            for wanted in ("string | null", "integer | null", "array of string", "object", "red", "green"):
                expect(wanted in section(prompt, "types"), f"{wanted!r} is not in {section(prompt, 'types')}")


def strict_client(foreword: Foreword, script: str, era: str) -> dict:
    """What a TypeScript client gets, which looks at a list as a whole and takes all of it or nothing."""
    case = {"url": f"{foreword.url}/mcp", "headers": {}, "command": None, "environment": {}, "era": era}
    done = subprocess.run(
        [foreword.setting.node / "node_modules/.bin/node", CLIENTS / script],
        input=json.dumps(case).encode() + b"\n",
        stdout=subprocess.PIPE,
        env=os.environ | {"FOREWORD_PEERS_NODE": str(foreword.setting.node)},
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


def settled(foreword: Foreword, name: str) -> dict | None:
    entry = foreword.servers()[name]
    return entry if entry["state"] == "ready" or entry["last_error"] else None


def section(prompt: str, name: str) -> str:
    """The part of the tools prompt about one server."""
    found = re.search(rf"^### .*{name}.*?(?=^### |\Z)", prompt, re.DOTALL | re.MULTILINE)
    expect(found, f"no section of {name} in {prompt[:500]}")
    return found[0]


def breaking_out(setting: Setting, report: Report) -> None:
    connections = {"escapes": peers.raw("escapes"), "odd": peers.raw("unwanted"), "zebra": peers.raw()}
    with Foreword(setting, connections) as foreword:
        foreword.ready(*connections)
        prompt, whole = foreword.tools_prompt(), foreword.prompt()
        with report.case("hostile: Markdown of a server starts no line outside its item"):
            expect("FAKE-end" in prompt, f"its words are not there at all: {prompt[:500]}")
            outside = [line for line in prompt.split("\n") if "FAKE" in line and not line.startswith((" ", ">", "-", "*"))]
            same(outside, [])
            # A list item may start a line, if it is ours: one that the server wrote is deeper.
            forged = [line for line in prompt.split("\n") if re.match(r"[-*] .?FAKE-(tool|star)", line)]
            same(forged, [])
        with report.case("hostile: Markdown of a server stays in its item for a reader of Markdown"):
            same(escaped(prompt), [])
            same(escaped(whole), [], "the whole prompt")
        with report.case("hostile: after Markdown of a server, the next tools and servers stand where they should"):
            headings = [text for level, text in outline(prompt) if level == 3]
            same(len(headings), 3, f"headings {headings}")
            expect("zebra" in headings[2], headings)
            items = top_items(prompt)
            for tool in ("escapes__aaa", "escapes__zzz", "zebra__say"):
                expect(any(tool in item for item in items), f"{tool} is not an item of its own in {items}")
        with report.case("hostile: control and bidirectional characters are not in the prompt"):
            found = {f"U+{ord(character):04X}" for character in whole if unwanted(character)}
            same(found, set())
        with report.case("hostile: descriptions are handed on as they were, control characters included"):
            expect("\u202e" in foreword.tools()["odd__odd"]["description"], "it was cleaned")
        with report.case("hostile: long words are cut, and it is said"):
            foreword.configure({"long": peers.raw("long-words"), "zebra": peers.raw()})
            foreword.ready("long", "zebra")
            until(lambda: "long__long-1" in foreword.tools_prompt(), "the long ones")
            prompt = foreword.tools_prompt()
            size = len(prompt.encode())
            expect(size <= PROMPT_LIMIT + 1024, f"the tools prompt has {size} bytes")
            longest = max(len(words) for words in re.findall(r"(?:description\s+)+", prompt))
            expect(longest <= DESCRIPTION_LIMIT + 64, f"a description of {longest} bytes")
            longest = max(len(words) for words in re.findall(r"(?:instructions\s+)+", prompt))
            expect(longest <= INSTRUCTIONS_LIMIT + 64, f"instructions of {longest} bytes")
            expect(re.search(r"\bcut|shortened|omitted|left out|more\b|shown", prompt), "nothing says that it was cut")
            same(len(foreword.tools()["long__long-1"]["description"]), 120_000, "the description handed on")


def unwanted(character: str) -> bool:
    if character in "\n\t":
        return False
    return unicodedata.category(character) in ("Cc", "Zl", "Zp") or character in BIDIRECTIONAL


def escaped(prompt: str) -> list[str]:
    """What a server wrote and a Markdown reader would see outside of a list item or a quotation."""
    found, depth = [], 0
    for token in MarkdownIt("commonmark").enable("table").parse(prompt):
        if token.type in ("list_item_open", "blockquote_open"):
            depth += 1
        elif token.type in ("list_item_close", "blockquote_close"):
            depth -= 1
        elif depth == 0 and "FAKE" in token.content:
            found.append(f"{token.type}: {token.content[:80]!r}")
    return found


def outline(prompt: str) -> list[tuple[int, str]]:
    tokens = MarkdownIt("commonmark").parse(prompt)
    return [
        (int(token.tag[1]), tokens[number + 1].content)
        for number, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]


def top_items(prompt: str) -> list[str]:
    """The first words of each item of the outermost lists, or of headings."""
    tokens = MarkdownIt("commonmark").parse(prompt)
    items = [text for _, text in outline(prompt)]
    for number, token in enumerate(tokens):
        if token.type == "list_item_open" and token.level == 1:
            items.append(next((later.content for later in tokens[number:] if later.type == "inline"), ""))
    return items


def pages(setting: Setting, report: Report) -> None:
    connections = {
        "same": peers.raw("same-cursor", timeout=5),
        "fresh": peers.raw("fresh-cursors", timeout=5),
        "thousand": peers.raw("thousand"),
        "plain": peers.raw(),
    }
    with Foreword(setting, connections) as foreword:
        with report.case("hostile: a thousand tools on twenty pages are all there, and the last can be called"):
            foreword.ready("thousand", "plain")
            same(foreword.servers()["thousand"]["tools"], 1000)
            for era in ("legacy", "modern"):
                same(sum(name.startswith("thousand__") for name in foreword.tools(era)), 1000, era)
            expect("tool-999 was called" in words(foreword.call("thousand__tool-999", {"text": "x"})), "the last")
        with report.case("hostile: of a thousand tools the prompt shows what fits, and says of how many"):
            prompt = foreword.tools_prompt()
            expect(len(prompt.encode()) <= PROMPT_LIMIT + 1024, f"{len(prompt.encode())} bytes")
            count = foreword.status()["tools_count"]
            expect(str(count) in prompt, f"{count} is not in {prompt[:300]} … {prompt[-300:]}")
        with report.case("hostile: with a thousand tools the shorter forms are as short as ever"):
            for form, limit in (("brief", 2000), ("hint", 512)):
                text = foreword.ok(f"/system-prompt?form={form}", {"X-Chat-Id": "c"}).text
                expect(len(text.encode("utf-16-le")) // 2 <= limit, f"{form}: {len(text)}")
        for name in ("same", "fresh"):
            with report.case(f"hostile: pages without an end ({name} cursors) come to an end, and the status says why"):
                entry = until(lambda name=name: told(foreword, name), "a word about it", 60)
                expect(re.search("page|cursor|tools", entry["last_error"] or " ".join(entry["problems"])), entry)
                same(words(foreword.call("plain__say", {"text": "x"})), "x", "the others")
        with report.case("hostile: pages without an end keep no processor busy"):
            before, started = processor_time(foreword), time.monotonic()
            time.sleep(3)
            share = (processor_time(foreword) - before) / (time.monotonic() - started)
            expect(share < 0.5, f"{share:.0%} of a processor")


def told(foreword: Foreword, name: str) -> dict | None:
    entry = foreword.servers()[name]
    return entry if entry["last_error"] or entry["problems"] else None


def processor_time(foreword: Foreword) -> float:
    fields = Path(f"/proc/{foreword.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def noise(setting: Setting, report: Report) -> None:
    directory = setting.directory("noise")
    connections = {
        "line": peers.raw("long-line", timeout=10),
        "garbage": peers.raw("garbage"),
        "endless": peers.raw("only-garbage", timeout=3),
        "loud": peers.raw("loud", record=directory / "loud"),
        "plain": peers.raw(timeout=5),
    }
    with Foreword(setting, connections) as foreword:
        with report.case("hostile: noise on standard output is passed over"):
            foreword.ready("garbage", "plain")
            same(words(foreword.call("garbage__say", {"text": "x"})), "x")
            same(words(foreword.call("garbage__chatter")), "amid the noise")
        with report.case("hostile: one that makes nothing but noise harms no other"):
            expect(foreword.servers()["endless"]["state"] in ("connecting", "down"), foreword.servers()["endless"])
        with report.case("hostile: a result on a line of 100 MB is an error that names the server, which comes back"):
            failed(foreword.call("plain__flood"), "plain")
            until(lambda: words(foreword.call("plain__say", {"text": "back"})) == "back", "it answers again", 40)
            peak = foreword.memory_peak()
            expect(peak < 250 * MEGABYTE, f"{peak // MEGABYTE} MB at the most")
        with report.case("hostile: 40 MB on standard error do not stop it, and the log stays small"):
            foreword.ready("loud")
            until(lambda: records(directory / "loud", "shouted"), "it has said it all", 40)
            same(words(foreword.call("loud__say", {"text": "x"})), "x")
            size = foreword.log_file.stat().st_size
            expect(size < 2 * MEGABYTE, f"the log has {size} bytes")
            expect("loud" in foreword.log(), "the log does not name it")
        with report.case("hostile: a list on a line of 100 MB is an error, and is not held in memory"):
            entry = until(lambda: told(foreword, "line"), "a word about it", 40)
            expect(entry["state"] != "ready", entry)
            peak = foreword.memory_peak()
            expect(peak < 250 * MEGABYTE, f"{peak // MEGABYTE} MB at the most")


def never_ready(setting: Setting, report: Report) -> None:
    directory = setting.directory("never")
    connections = {
        "exits": peers.raw("exits", record=directory / "exits"),
        "missing": {"command": "/no/such/program"},
        "deaf": peers.raw("deaf", timeout=2),
        "mute": peers.raw("mute", timeout=2),
        "unlike": peers.raw("unlike"),
        "deep": peers.raw("too-deep"),
        "nobody": {"url": "http://127.0.0.1:9/mcp"},
        "plain": peers.raw(),
    }
    with Foreword(setting, connections) as foreword:
        started = time.monotonic()
        with report.case("hostile: one that cannot start harms no other"):
            foreword.ready("plain")
            same(words(foreword.call("plain__say", {"text": "x"})), "x")
        with report.case("hostile: one that never answers is waited for, since it may have to be downloaded first"):
            same((foreword.servers()["mute"]["state"], foreword.servers()["mute"]["tools"]), ("connecting", 0))
        for name in ("exits", "missing", "deaf", "nobody"):
            with report.case(f"hostile: never ready ({name}): the status says why, and `/readyz` stays ready"):
                entry = until(lambda name=name: told(foreword, name), "a word about it", 45)
                expect(entry["state"] in ("down", "connecting") and entry["last_error"], entry)
                answer = foreword.get("/readyz")
                same(answer.status, 200)
                expect(name in answer.text, f"not named in {answer.text}")
        with report.case("hostile: a schema deeper than parsers go harms its own server at most"):
            entry = until(lambda: settled(foreword, "deep"), "it is decided", 60)
            if entry["state"] == "ready":
                expect("good was called" in words(foreword.call("deep__good", {"text": "x"})), "good does not work")
            else:
                expect(entry["last_error"], "no word about why")
            same(words(foreword.call("plain__say", {"text": "x"})), "x", "the others")
        with report.case("hostile: of one that ends at once, the log has what it said"):
            until(lambda: "the licence has run out" in foreword.log(), "its last words")
        with report.case("hostile: a revision that nobody knows does no harm"):
            entry = until(lambda: settled(foreword, "unlike"), "it is decided")
            expect(entry["state"] == "ready" or entry["last_error"], entry)
        with report.case("hostile: one that ends at once is started again ever more seldom"):
            while time.monotonic() - started < 8:
                time.sleep(0.1)
            starts = len(records(directory / "exits", "started"))
            # With 1, 2, 4, 8 … seconds between, and jitter.
            expect(2 <= starts <= 8, f"{starts} starts in 8 s")
        with report.case("hostile: of one that is never ready no more than one process is there"):
            for word in ("deaf", "mute"):
                expect(len(peer_processes(foreword, word)) <= 1, f"{word}: {peer_processes(foreword, word)}")
        with report.case("hostile: a call of one that is not there is refused, and names it"):
            try:
                failed(foreword.call("nobody__thing"), "nobody")
            except RpcError as error:
                expect("nobody" in str(error), error)


def asking(setting: Setting, report: Report) -> None:
    record = setting.directory("asking") / "record"
    with Foreword(setting, {"plain": peers.raw(record=record)}) as foreword:
        foreword.ready("plain")
        with report.case("hostile: sampling, roots and elicitation are not offered"):
            greeting = next(
                line["message"]["params"] for line in records(record, "received") if line["message"].get("method") == "initialize"
            )
            offered = greeting["capabilities"].keys() & {"sampling", "roots", "elicitation", "tasks"}
            same(offered, set())
        with report.case("hostile: who asks for them is refused, and a ping is answered"):
            told = json.loads(words(foreword.call("plain__ask")))
            same((told["ping"], told["no/such/method"]), ({}, -32601))
            same(told["sampling/createMessage"], -32601)
            # Answers that give nothing away are as good as errors.
            expect(told["roots/list"] in (-32601, {"roots": []}), told)
            expect(told["elicitation/create"] in (-32601, {"action": "decline"}, {"action": "cancel"}), told)
