"""Counts the copies of a prompt in what reaches a model, and their bytes.

A copy begins where the prompt's first sentence stands. How long it is, is how far it agrees with one of the forms in which the
prompt is known, lines with numbers in front (as `view` shows a file) being one of them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

MARK = "A heron stood in the Example Ltd pond at noon."


@dataclass(frozen=True)
class Copy:
    """Where a copy stands in the request, how many bytes it has, and of what form."""

    place: str
    bytes: int
    form: str
    whole: bool


def copies(request: dict, forms: dict[str, str]) -> list[Copy]:
    """Each copy in `request`, a body in JSON. `forms` are the prompt's texts by name."""
    known = {name: text for name, text in forms.items() if MARK in text} | {"numbered": numbered(forms["full"])}
    return [
        measure(place, text, position, known) for place, text in strings(request) for position in positions(text, MARK)
    ]


def numbered(text: str) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(text.splitlines(), 1))


def strings(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and value.startswith('[{"'):
        # n8n hands the answers of tools on as the text of an array.
        yield from strings(unpacked(value), place)
    elif isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(inner, f"{place}/{key}")
    elif isinstance(value, list) and value and all(isinstance(part, dict) and part.get("type") == "text" for part in value):
        # One text in several blocks, as where its first part is to be cached.
        yield place, "".join(part["text"] for part in value)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from strings(inner, f"{place}/{index}")


def unpacked(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        # In a list of one it is taken for text whatever it begins with.
        return [{"type": "text", "text": text}]


def positions(text: str, word: str) -> Iterator[int]:
    position = text.find(word)
    while position >= 0:
        yield position
        position = text.find(word, position + 1)


def measure(place: str, text: str, position: int, forms: dict[str, str]) -> Copy:
    best = Copy(place, 0, "", False)
    for form, prompt in forms.items():
        prompt = prompt.rstrip()
        mark = prompt.index(MARK)
        before = agreeing(text[:position][::-1], prompt[:mark][::-1])
        after = agreeing(text[position:], prompt[mark:])
        copy = text[position - before : position + after]
        found = Copy(place, len(copy.encode()), form, copy == prompt)
        if (found.whole, found.bytes) > (best.whole, best.bytes):
            best = found
    return best


def agreeing(left: str, right: str) -> int:
    """How many characters are the same at the beginning."""
    return next((index for index, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
