"""
title: Foreword
author: The Foreword authors
version: 0.1.0
required_open_webui_version: 0.12.4
license: MIT OR Apache-2.0
description: Puts the prompt that Foreword composes for the chat before each conversation, hands attached files on, and links to files that the model made.
"""

# What it promises: a chat gets its own prompt, exactly once, or none; never that of another user. A turn waits
# `timeout_seconds` at most for the prompt, `upload_timeout_seconds` for all of its files, and twice `timeout_seconds` for links.
# When Foreword falls silent, all turns that ask it just then wait; from then on, until it answers, only one in each
# `retry_seconds` does. Log lines name neither keys, nor addresses, nor chats. Deliberately absent: packages that Open WebUI does
# not bring along.

import asyncio
import hashlib
import json
import logging
import os
import re
import string
import sys
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, Field
from yarl import URL

log = logging.getLogger(__name__)

# The last line of a prompt in a conversation, by which it is known again; Foreword's chat endpoint writes the same one.
MARK = re.compile(rb"^<!-- foreword ([0-9a-f]{16}) -->[ \t\r]*$", re.MULTILINE)
REVISION = re.compile(r"[0-9a-f]{16}")
CODE = re.compile(r"[a-z_]{1,60}")
ZERO_REVISION = b"0" * 16
# How many marks of one text are looked at, how many places of a prompt can be its own revision, how many bytes are hashed to find
# what the marks of one request name, and how many of them a hash costs at least.
MOST_MARKS = 16
MOST_PLACES = 4
MARKED_BYTES = 16 << 20
HASH_BYTES = 2 << 10
# What Open WebUI itself fills in, in a system message that comes back, and how long that may be.
VARIABLE = re.compile(r"\{\{[^{}\n]*\}\}")
VARIABLE_LENGTH = 256
# Who speaks for the system; some models call it otherwise.
SYSTEM = ("system", "developer")
# The line that `outlet` puts behind an answer. Its links change from week to week, so it is known by their shape.
LINKS = re.compile(r"\[[^]]*\]\(https?://[^\s()]+/preview/[^\s()]+\) · \[[^]]*\]\(https?://[^\s()]+/archive\)")
LINKS_LENGTH = 4096
LINK = re.compile(r"https?://[!-~]+")
# What stays as it is in the destination of a link; parentheses would end it.
LINK_SAFE = ":/?#[]@!$&+,;=%~"
# What says that Foreword is not there, or answers nobody now.
NOBODY_THERE = (502, 503, 504)
# What one answer, and all prompts that are kept, may hold.
ANSWER_BYTES = 4 << 20
KEPT_BYTES = 64 << 20
# How many files' hashes and refusals are remembered, and how many bytes of a file are hashed at a time.
KEPT_HASHES = 4096
PIECE_BYTES = 1 << 20
MEBIBYTE = 1 << 20
# A file that is refused for its size, or for want of room, is not sent to that chat again for so long.
NO_ROOM = (413, 507)
REFUSED_SECONDS = 3600


class Filter:
    class Valves(BaseModel):
        base_url: str = Field(
            default="http://127.0.0.1:8081",
            description="Where Foreword is, as Open WebUI's server reaches it.",
        )
        api_key: str = Field(
            default="",
            description="A key of Foreword's with the role `api`; empty if it has none.",
            json_schema_extra={"input": {"type": "password"}},
        )
        profile_id: str = Field(
            default="",
            description="The profile of the prompt; empty for the library's default one.",
        )
        skip_when_attached: bool = Field(
            default=True,
            description="Leave the prompt to Foreword's MCP server in chats that have it as a tool: Open WebUI then puts the same text there.",
        )
        mcp_server_id: str = Field(
            default="foreword",
            description="The id of that MCP server in Open WebUI's settings.",
        )
        required: bool = Field(
            default=False,
            description="Refuse to chat where the prompt cannot be had, instead of chatting without it.",
        )
        file_links: bool = Field(
            default=True,
            description="End answers with links to the files that the model made in this chat, once there are any.",
        )
        preview_label: str = Field(default="Preview of the files", description="The text of the first link.")
        archive_label: str = Field(default="All files as ZIP", description="The text of the second link.")
        sync_uploads: bool = Field(
            default=True,
            description="Copy the files that a user attaches into the chat's uploads in Foreword, where its tools find them.",
        )
        upload_max_mib: int = Field(
            default=100,
            ge=0,
            description="Files over this size are not copied, in MiB; see Foreword's `uploads.max_bytes`.",
        )
        upload_timeout_seconds: float = Field(
            default=60, gt=0, allow_inf_nan=False, description="How long copying the files of one message may take."
        )
        timeout_seconds: float = Field(
            default=2, gt=0, allow_inf_nan=False, description="How long Foreword may take for any other answer."
        )
        retry_seconds: float = Field(
            default=15,
            ge=0,
            allow_inf_nan=False,
            description="How long a Foreword that did not answer is not asked again; meanwhile its last prompts are used.",
        )
        cache_entries: int = Field(
            default=1000,
            ge=1,
            description="How many prompts are kept, one for each chat and user; the oldest go first.",
        )
        priority: int = Field(default=0, description="Filters with a larger number run later.")

    def __init__(self):
        self.valves = self.Valves()
        self.kept: OrderedDict[Session, Prompt] = OrderedDict()
        self.kept_bytes = 0
        self.hashes: OrderedDict[str, str] = OrderedDict()
        # Until when which file is not sent to which chat again.
        self.refused: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        # Until when which Foreword is taken to be away, on the clock of `time.monotonic`.
        self.away: tuple[str, float] = ("", 0.0)

    async def inlet(
        self,
        body: dict,
        __user__: dict | None = None,
        __metadata__: dict | None = None,
        __event_emitter__: Callable[[dict], Awaitable[None]] | None = None,
        __id__: str = "",
    ) -> dict:
        """Puts the prompt in place before Open WebUI gathers the tools."""
        session = Session.of(self.valves, body, __user__, __metadata__)
        messages = body.get("messages") or []
        before = self.kept.get(session)
        # Also where it is left to the MCP server, so that there is one if that gives none.
        prompt = await self.prompt(session)
        body["messages"] = without_prompt(without_links(messages), before, prompt)
        left = self.leaves_it(body, __metadata__)
        Choice(prompt, left).note(__metadata__, __id__)
        if not left:
            await self.inject(body, prompt, __event_emitter__)
        if self.valves.sync_uploads and session.chat:
            files = attached_files(body, __metadata__)
            try:
                async with asyncio.timeout(self.valves.upload_timeout_seconds):
                    await self.sync_uploads(session, files, (__user__ or {}).get("id"))
            except Away as away:
                log.warning("files of a chat were not copied to Foreword: %s", str(away) or "it does not answer")
            except Exception as error:  # noqa: BLE001 - the conversation goes on without them
                log.warning("files of a chat were not copied to Foreword: %s", reason(error))
        return body

    async def request(
        self,
        body: dict,
        __user__: dict | None = None,
        __metadata__: dict | None = None,
        __event_emitter__: Callable[[dict], Awaitable[None]] | None = None,
        __id__: str = "",
    ) -> dict:
        """Makes up for a prompt that was left to Foreword's MCP server, which gave none; takes one out that it gave as well, since
        a later filter added it. This runs again after each tool call, with what is there by then, and with what Open WebUI put
        before and behind it: the prompt is the same as before, whatever became of the library meanwhile."""
        choice = Choice.noted(__metadata__, __id__)
        if not choice:
            prompt = await self.prompt(Session.of(self.valves, body, __user__, __metadata__))
            choice = Choice(prompt, self.leaves_it(body, __metadata__))
            choice.note(__metadata__, __id__)
        gave = self.server_gave_it(__metadata__)
        if choice.left and not gave:
            await self.inject(body, choice.prompt, __event_emitter__ if not choice.told else None)
            choice._replace(told=True).note(__metadata__, __id__)
        elif not choice.left and gave and self.valves.skip_when_attached and choice.prompt:
            body["messages"] = without_text(body.get("messages") or [], marked(choice.prompt))
        return body

    async def outlet(self, body: dict, __user__: dict | None = None, __metadata__: dict | None = None) -> dict:
        """Ends the answer with links to the chat's files."""
        session = Session.of(self.valves, body, __user__, __metadata__)
        answers = [message for message in body.get("messages") or [] if message.get("role") == "assistant"]
        if self.valves.file_links and session.chat and answers:
            try:
                await self.add_links(session, answers[-1])
            except Away as away:
                # If it was away before, the log says so already.
                log.log(
                    logging.WARNING if str(away) else logging.DEBUG, "an answer has no links to its files: %s", away
                )
            except Exception as error:  # noqa: BLE001 - an answer without links is an answer
                log.warning("an answer has no links to its files: %s", reason(error))
        return body

    # The prompt.

    def leaves_it(self, body: dict, metadata: dict | None) -> bool:
        """Whether this chat has Foreword's MCP server, and the prompt is left to it."""
        chosen = body.get("tool_ids") or (metadata or {}).get("tool_ids") or []
        return self.valves.skip_when_attached and f"server:mcp:{self.valves.mcp_server_id}" in chosen

    def server_gave_it(self, metadata: dict | None) -> bool:
        client = ((metadata or {}).get("mcp_clients") or {}).get(self.valves.mcp_server_id)
        return bool(getattr(client, "instructions", None))

    async def inject(self, body: dict, prompt: "Prompt | None", emit: Callable | None = None) -> None:
        if prompt:
            body["messages"] = with_prompt(body.get("messages") or [], prompt)
        elif prompt is None and self.valves.required:
            raise RuntimeError(
                "the prompt of this chat cannot be had from Foreword; try again, or ask your administrator"
            )
        elif prompt is None and emit:
            await emit({"type": "status", "data": {"description": "Without the prompt of Foreword", "done": True}})

    async def prompt(self, session: "Session") -> "Prompt | None":
        """The session's prompt: as Foreword has it now, or as it had it last while it is away."""
        kept = self.kept.get(session)
        known = {"If-None-Match": f'"{kept.revision}"'} if kept else {}
        try:
            answer = await self.ask(session, "/system-prompt", known, tells=True)
            if answer.status == 304 and kept:
                kept = kept._replace(**links_of(answer.headers))
            elif answer.status == 200 and REVISION.fullmatch(answer.headers.get("X-Prompt-Revision", "")):
                revision = answer.headers["X-Prompt-Revision"]
                text = answer.body.decode()
                kept = Prompt(text, sys.getsizeof(text), revision, **links_of(answer.headers))
            elif answer.code and answer.status < 500 and answer.status != 429:
                # It is there, and says that this session gets none.
                self.forget(session)
                log.warning("Foreword gave no prompt: %s", answer.trouble())
                return None
            else:
                # The trouble of this session alone, or the word of somebody who stands between.
                log.warning("Foreword gave no prompt: %s; the last one of the chat is used", answer.trouble())
                return self.last(session)
        except Away:
            return self.last(session)
        except Exception as error:  # noqa: BLE001 - a conversation without the prompt, if there was none before
            # A chat id or an address that cannot be sent, an answer that is no text, or too long.
            log.warning("Foreword gave no prompt: %s; the last one of the chat is used", reason(error))
            return self.last(session)
        self.keep(session, kept)
        return kept

    def last(self, session: "Session") -> "Prompt | None":
        if prompt := self.kept.get(session):
            self.kept.move_to_end(session)
        return prompt

    def keep(self, session: "Session", prompt: "Prompt") -> None:
        self.forget(session)
        self.kept[session] = prompt
        self.kept_bytes += prompt.size
        while len(self.kept) > self.valves.cache_entries or self.kept_bytes > KEPT_BYTES:
            _, oldest = self.kept.popitem(last=False)
            self.kept_bytes -= oldest.size

    def forget(self, session: "Session") -> None:
        if gone := self.kept.pop(session, None):
            self.kept_bytes -= gone.size

    # Foreword.

    async def ask(
        self,
        session: "Session",
        path: str,
        headers: dict | None = None,
        file: str | None = None,
        seconds: float | None = None,
        tells: bool = False,
    ) -> "Answer":
        """Its answer, or `Away`. A file is sent with PUT. Only a request that `tells` decides whether it is away, for all: others
        may be slow for reasons of their own. Whoever answers is there, but for a proxy that says that nobody is behind it."""
        known_away = self.away[0] == session.base_url
        if known_away and time.monotonic() < self.away[1]:
            raise Away
        if known_away and tells:
            # This one finds out; the others do not wait for it.
            self.away = (session.base_url, time.monotonic() + self.valves.retry_seconds)
        try:
            answer = await exchange(session, path, headers or {}, file, seconds or self.valves.timeout_seconds)
            trouble = answer.trouble() if answer.status in NOBODY_THERE else ""
        except (aiohttp.ClientConnectionError, asyncio.TimeoutError, OSError) as error:
            trouble = reason(error)
        if trouble:
            if tells:
                self.is_away(session, trouble)
            raise Away(trouble)
        if tells and self.away[0] == session.base_url:
            log.info("Foreword answers again")
            self.away = ("", 0.0)
        return answer

    def is_away(self, session: "Session", why: str) -> None:
        if self.away[0] != session.base_url:
            log.warning("Foreword does not answer (%s); its last prompts are used until it does", why)
        self.away = (session.base_url, time.monotonic() + self.valves.retry_seconds)

    # Files.

    async def add_links(self, session: "Session", answer: dict) -> None:
        outputs = await self.ask(session, f"/api/outputs/{quote(session.chat, safe='')}?limit=1")
        if outputs.status != 200 or not outputs.json().get("total"):
            return
        prompt = await self.prompt(session)
        if not (prompt and prompt.preview_url and prompt.archive_url):
            return
        line = f"[{label(self.valves.preview_label)}]({prompt.preview_url}) · [{label(self.valves.archive_label)}]({prompt.archive_url})"
        # What would not be known again is not written either.
        if not is_links(line):
            return
        if isinstance(answer.get("content"), str) and answer["content"].strip():
            answer["content"] = linked(answer["content"], line)
        # What the browser shows, where it is there.
        for part in reversed(texts_of(answer)):
            if part["text"].strip():
                part["text"] = linked(part["text"], line)
                break

    async def sync_uploads(self, session: "Session", ids: list[str], user_id: str | None) -> None:
        """Puts those files into the chat's uploads that are not there yet."""
        if not ids:
            return
        # Inside of Open WebUI only.
        from open_webui.models.files import Files
        from open_webui.storage.provider import Storage

        there: dict[str, str] | None = None
        for id in ids:
            file = await Files.get_file_by_id(id)
            # A request may name any file: only those of the user himself are his to hand on.
            if not file or file.user_id != user_id or not file.path or self.is_refused(session, id):
                continue
            # As Open WebUI counted it. Getting the file can take as long as copying it, so it comes last.
            if self.is_too_large((file.meta or {}).get("size")):
                continue
            chat = f"/api/uploads/{quote(session.chat, safe='')}"
            if there is None:
                # Foreword hashes what it has not hashed yet, which can take as long too.
                manifest = await self.ask(session, f"{chat}/manifest", seconds=self.valves.upload_timeout_seconds)
                if manifest.status != 200:
                    log.warning("files of a chat were not copied to Foreword: %s", manifest.trouble())
                    return
                there = manifest.json()
            if self.is_there(file.filename, id, there):
                continue
            path = await asyncio.to_thread(Storage.get_file, file.path)
            if self.is_too_large(await asyncio.to_thread(os.path.getsize, path)):
                continue
            digest = self.hashes[id] = self.hashes.get(id) or await asyncio.to_thread(md5, path)
            while len(self.hashes) > KEPT_HASHES:
                self.hashes.popitem(last=False)
            name = free_name(file.filename, digest, there)
            if there.get(name) == digest:
                continue
            answer = await self.ask(
                session, f"{chat}/{quote(name, safe='')}", file=path, seconds=self.valves.upload_timeout_seconds
            )
            if answer.status in (200, 201):
                there[name] = digest
                continue
            log.warning("a file was not copied to Foreword: %s", answer.trouble())
            if answer.status in NO_ROOM:
                self.refused[session.base_url, session.chat, id] = time.monotonic() + REFUSED_SECONDS
                while len(self.refused) > KEPT_HASHES:
                    self.refused.popitem(last=False)

    def is_there(self, filename: str, id: str, there: dict[str, str]) -> bool:
        """Whether the chat has the file, as far as that is known without reading it."""
        digest = self.hashes.get(id)
        return digest is not None and there.get(free_name(filename, digest, there)) == digest

    def is_too_large(self, size: object) -> bool:
        too_large = isinstance(size, int) and size > self.valves.upload_max_mib * MEBIBYTE
        if too_large:
            log.warning("a file was not copied to Foreword: it is over `upload_max_mib`")
        return too_large

    def is_refused(self, session: "Session", id: str) -> bool:
        return time.monotonic() < self.refused.get((session.base_url, session.chat, id), 0.0)


class Session(NamedTuple):
    """All that a prompt depends on, and so what it is kept under."""

    base_url: str
    api_key: str
    profile: str
    chat: str
    email: str
    name: str

    @classmethod
    def of(cls, valves: Filter.Valves, body: dict, user: dict | None, metadata: dict | None) -> "Session":
        chat = (metadata or {}).get("chat_id") or body.get("chat_id") or ""
        user = user or {}
        email, name = (str(user.get(field) or "").strip() for field in ("email", "name"))
        return cls(
            valves.base_url.strip().rstrip("/"), valves.api_key.strip(), valves.profile_id.strip(), str(chat), email, name
        )

    def headers(self) -> dict[str, str]:
        # The address is written as Open WebUI writes it into the headers of MCP servers, since a chat belongs to one address.
        given = {
            "Authorization": f"Bearer {self.api_key}" if self.api_key else "",
            "X-Profile-Id": self.profile,
            "X-Chat-Id": self.chat,
            "X-User-Email": quote(self.email, safe=string.punctuation),
            "X-User-Name": quote(self.name, safe=""),
        }
        return {name: value for name, value in given.items() if value}


class Prompt(NamedTuple):
    text: str
    size: int
    revision: str
    preview_url: str
    archive_url: str


class Choice(NamedTuple):
    """The prompt of one request to Open WebUI, however often it asks the model, and whether it was left to the MCP server."""

    prompt: Prompt | None
    left: bool
    # The chat knows already that there is none.
    told: bool = False

    def note(self, metadata: dict | None, id: str) -> None:
        """Where all functions of one request find it; another filter of this kind has one of its own."""
        if metadata is not None:
            metadata[f"foreword:{id}"] = self

    @staticmethod
    def noted(metadata: dict | None, id: str) -> "Choice | None":
        return (metadata or {}).get(f"foreword:{id}")


class Answer(NamedTuple):
    status: int
    headers: Any
    body: bytes

    def json(self) -> dict:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """What is wrong, in Foreword's stable word for it, which names nobody; empty if this is nothing of Foreword's."""
        try:
            code = str(self.json().get("code", ""))
        except (ValueError, AttributeError, RecursionError):
            code = ""
        return code if CODE.fullmatch(code) else ""

    def trouble(self) -> str:
        """What is wrong, for the log."""
        return f"{self.status} {self.code}" if self.code else f"status {self.status}; is `base_url` Foreword's?"


class Away(Exception):
    """Foreword cannot be reached, or cannot answer now."""


async def exchange(session: Session, path: str, headers: dict, file: str | None, seconds: float) -> Answer:
    """One request. Redirects are not followed: the key is for this server alone."""
    url = URL(session.base_url + path, encoded=True)
    stream = await asyncio.to_thread(open, file, "rb") if file else None
    try:
        timeout = aiohttp.ClientTimeout(total=seconds)
        async with (
            aiohttp.ClientSession(timeout=timeout) as client,
            client.request(
                "PUT" if stream else "GET",
                url,
                headers=session.headers() | headers,
                data=stream,
                allow_redirects=False,
            ) as response,
        ):
            body = b""
            async for piece in response.content.iter_chunked(1 << 16):
                body += piece
                if len(body) > ANSWER_BYTES:
                    raise ValueError("the answer is too long")
            return Answer(response.status, response.headers, body)
    finally:
        if stream:
            stream.close()


def reason(error: BaseException) -> str:
    """For the log: messages of errors can hold addresses and chats, their types cannot."""
    return type(error).__name__


# Messages.


def marked(prompt: Prompt) -> str:
    return f"{prompt.text}\n<!-- foreword {prompt.revision} -->"


def with_prompt(messages: list[dict], prompt: Prompt) -> list[dict]:
    """The prompt before all else. A system message that comes first stays as it is behind it, in the same message: Open WebUI
    makes one message of all in the end, and keeps only the first one when it asks the model again after a tool."""
    text = marked(prompt)
    first = messages[0] if messages else {}
    there = first.get("role") == "system" and text in str(first.get("content"))
    if there or not prompt.text.strip():
        return messages
    if first.get("role") == "system" and isinstance(first.get("content"), str):
        return [first | {"content": f"{text}\n{first['content']}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def without_prompt(messages: list[dict], *known: Prompt | None) -> list[dict]:
    """The messages without what Foreword put into the system's before: these prompts, and all that a mark names."""

    budget = Budget(MARKED_BYTES)

    def without(content: str) -> str:
        for prompt in dict.fromkeys(known):
            content = without_known(content, prompt)
        return unmarked(content, budget)

    return rewritten(messages, without)


@dataclass
class Budget:
    """How many bytes may still be hashed: whoever waits for it holds up all of Open WebUI."""

    left: int


def rewritten(messages: list[dict], change: Callable[[str], str]) -> list[dict]:
    """The messages with another text of the system's, and without those of which nothing is left by that."""
    kept = []
    for message in messages:
        content = message.get("content")
        if message.get("role") in SYSTEM and content:
            if isinstance(content, str):
                content = change(content)
            elif isinstance(content, list):
                parts = [(part, changed_part(part, change)) for part in content]
                content = [changed for part, changed in parts if changed is part or changed["text"]]
            if not content:
                continue
            message = message | {"content": content}
        kept.append(message)
    return kept


def changed_part(part: Any, change: Callable[[str], str]) -> Any:
    """A part of a message with another text, if it has one."""
    text = part.get("text") if isinstance(part, dict) else None
    return part | {"text": change(text)} if isinstance(text, str) and text else part


def unmarked(content: str, budget: Budget) -> str:
    """The text without prompts that hash to the mark behind them. Anybody can write a mark: what is no prompt stays."""
    text = content.encode("utf-8", "surrogatepass")
    rest, at = b"", 0
    for mark in islice(MARK.finditer(text), MOST_MARKS):
        end = mark.start() - 1
        revision = mark[1]
        places = [place.start() for place in islice(re.finditer(revision, text[at : max(at, end)]), MOST_PLACES)]
        start = at
        while start <= end and budget.left > 0:
            # The prompt may hold its own revision, in one place.
            for own in (None, *(at + place for place in places if at + place >= start)):
                budget.left -= end - start + HASH_BYTES
                if revision_of(text, start, end, own) == revision:
                    rest += text[at:start]
                    at = mark.end() + (text[mark.end() : mark.end() + 1] == b"\n")
                    break
            else:
                line = text.find(b"\n", start, end)
                if line < 0:
                    break
                start = line + 1
                continue
            break
    return (rest + text[at:]).decode("utf-8", "surrogatepass")


def revision_of(text: bytes, start: int, end: int, own: int | None) -> bytes:
    """The revision of a part of the text, which may hold it itself at `own`."""
    view = memoryview(text)
    hasher = hashlib.sha256()
    if own is None:
        hasher.update(view[start:end])
    else:
        for piece in (view[start:own], ZERO_REVISION, view[own + len(ZERO_REVISION) : end]):
            hasher.update(piece)
    return hasher.hexdigest()[: len(ZERO_REVISION)].encode()


def without_text(messages: list[dict], text: str) -> list[dict]:
    """The messages without this text in the system's."""

    def without(content: str) -> str:
        before, _, behind = content.partition(text)
        return before + behind.removeprefix("\n") if text in content else content

    return rewritten(messages, without)


def without_known(content: str, prompt: Prompt | None) -> str:
    """The text without this prompt in which Open WebUI has filled in its own variables: that one hashes to something else."""
    if not prompt or not VARIABLE.search(prompt.text):
        return content
    first, *others = VARIABLE.split(marked(prompt))
    for start in islice(line_starts(content, first), MOST_MARKS):
        end = filled_in(content, start + len(first), others)
        if end:
            return content[:start] + content[end:].removeprefix("\n")
    return content


def line_starts(content: str, text: str) -> Iterator[int]:
    """Where a line begins with `text`, which may have more lines than one."""
    if content.startswith(text):
        yield 0
    at = content.find(f"\n{text}")
    while at >= 0:
        yield at + 1
        at = content.find(f"\n{text}", at + 1)


def filled_in(content: str, end: int, parts: list[str]) -> int:
    """Where the last of these parts ends, if they follow each other from `end` on with what was filled in between them; else 0."""
    for part in parts:
        found = content.find(part, end, end + VARIABLE_LENGTH + len(part))
        if found < 0:
            return 0
        end = found + len(part)
    return end


def without_links(messages: list[dict]) -> list[dict]:
    """The messages without the links of `outlet`, which are for people: a model would make them up itself soon."""
    return [
        message | {"content": unlinked(message["content"])}
        if message.get("role") == "assistant" and isinstance(message.get("content"), str)
        else message
        for message in messages
    ]


def linked(text: str, line: str) -> str:
    """The text with the line at its end, once."""
    return f"{unlinked(text).rstrip()}\n\n{line}"


def unlinked(text: str) -> str:
    """The text without such a line at its end."""
    before, _, last = text.rstrip().rpartition("\n")
    return before.rstrip() if is_links(last) else text


def is_links(line: str) -> bool:
    return len(line) <= LINKS_LENGTH and LINKS.fullmatch(line) is not None


def texts_of(message: dict) -> list[dict]:
    """The pieces of text of a message in the shape of the Responses API."""
    items = [item for item in message.get("output") or [] if isinstance(item, dict) and item.get("type") == "message"]
    parts = [part for item in items for part in item.get("content") or [] if isinstance(part, dict)]
    return [part for part in parts if isinstance(part.get("text"), str)]


def links_of(headers: Any) -> dict[str, str]:
    """Only what is safe inside of a link in Markdown."""
    found = {}
    for field, header in (("preview_url", "X-Preview-URL"), ("archive_url", "X-Archive-URL")):
        url = headers.get(header, "")
        found[field] = quote(url, safe=LINK_SAFE) if LINK.fullmatch(url) else ""
    return found


def label(text: str) -> str:
    return re.sub(r"[\[\]\\\s]+", " ", text).strip() or "Files"


# Files that are attached.


def attached_files(body: dict, metadata: dict | None) -> list[str]:
    """The ids of all files of the request, each once."""
    asked = ((metadata or {}).get("user_message") or {}).get("files") or []
    ids = []
    for item in [*(body.get("files") or []), *asked]:
        if isinstance(item, dict) and item.get("type") in ("file", "image"):
            inner = item.get("file") if isinstance(item.get("file"), dict) else {}
            id = item.get("id") or inner.get("id") or item.get("url")
            if isinstance(id, str) and re.fullmatch(r"[0-9a-zA-Z-]{1,64}", id):
                ids.append(id)
    return list(dict.fromkeys(ids))


def free_name(name: str, digest: str, there: dict[str, str]) -> str:
    """The file's own name, or one that holds its hash where another file has that name."""
    name = PurePosixPath(name.replace("\\", "/")).name or "file"
    if there.get(name, digest) == digest:
        return name
    path = PurePosixPath(name)
    return f"{path.stem}-{digest[:8]}{path.suffix}"


def md5(path: str) -> str:
    """What Foreword's manifest has for a file; it protects nothing."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
