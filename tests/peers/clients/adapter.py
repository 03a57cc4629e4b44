"""The conversation between the driver and a Python client.

The driver writes one case a line, as JSON, and waits for one line that says what the client got. All cases of a client
run in one process, so that whatever the client keeps between connections is put to the test as well.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TypedDict


class Case(TypedDict):
    """One connection to make: over HTTP (`url`, `headers`) or over stdio (`command`, `environment`)."""

    url: str | None
    headers: dict[str, str]
    command: list[str] | None
    environment: dict[str, str]
    era: str


class Answer(TypedDict):
    """What the client got, each through its own API."""

    protocol: str | None
    instructions: str | None
    tools: list[str]
    read_me: str


def serve(connect: Callable[[Case], Awaitable[Answer]]) -> None:
    """Answers cases from standard input until it ends."""
    # Clients print to standard output now and then; that would break the conversation.
    conversation = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = asyncio.run(connect(json.loads(line)))
        except BaseException as error:  # noqa: BLE001 - whatever went wrong is the answer
            answer = {"error": describe(error)}
        print(json.dumps(answer), file=conversation, flush=True)


def describe(error: BaseException) -> str:
    """Names the causes inside an exception group, which alone says only that there are some."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"
