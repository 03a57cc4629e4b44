"""Takes what a page of `docs/clients/` says to paste, so that a page and what is true cannot part."""

import re
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs/clients"
# What pages name where a reader has something of their own.
ADDRESS = "http://127.0.0.1:8081"


def block(page: str, language: str, holds: str = "") -> str:
    """The one fenced block of `language` in `page` that holds `holds`, as it stands there."""
    whole = (PAGES / f"{page}.md").read_text()
    blocks = re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", whole, re.DOTALL | re.MULTILINE)
    found = [text for text in blocks if holds in text]
    if len(found) != 1:
        raise AssertionError(f"{page}.md has {len(found)} blocks of {language} with {holds!r}, not 1")
    return found[0]


def words(page: str, start: str) -> str:
    """The one piece of code within a sentence of `page` that begins with `start`."""
    found = re.findall(rf"(?<!`)`({re.escape(start)}[^`]*)`(?!`)", (PAGES / f"{page}.md").read_text())
    if len(found) != 1:
        raise AssertionError(f"{page}.md has {len(found)} pieces of code that begin with {start!r}, not 1")
    return found[0]


def table(page: str, first: str) -> list[list[str]]:
    """The rows of the one table of `page` whose first column is `first`, without the marks of code."""
    found = re.findall(rf"^ *\| {re.escape(first)} \|.*\n *\|[-|]+\n((?: *\|.*\n)+)", (PAGES / f"{page}.md").read_text(), re.MULTILINE)
    if len(found) != 1:
        raise AssertionError(f"{page}.md has {len(found)} tables of {first}, not 1")
    return [[cell.strip("` ") for cell in row.strip("| ").split("|")] for row in found[0].splitlines()]


def filled(text: str, values: dict[str, str]) -> str:
    """`text` with what a reader would put in place of the left; each has to be there."""
    for old, new in values.items():
        if old not in text:
            raise AssertionError(f"{old!r} is not in the page's block:\n{text}")
        text = text.replace(old, new)
    return text
