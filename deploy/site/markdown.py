"""Markdown of the pages that are made of the code: prose, cells, tables and pages."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_EXAMPLE = "Example: "


def paragraphs(text: str) -> Iterator[str]:
    """Yield a docstring's paragraphs; its examples become a block of code."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        lines = paragraph.splitlines()
        if all(line.startswith(_EXAMPLE) for line in lines):
            yield "\n".join(["```sh", *(line.removeprefix(_EXAMPLE) for line in lines), "```"])
        else:
            yield prose(paragraph)


def prose(text: str) -> str:
    """Return text as Markdown: code stays code, options become it, `<` and `*` stay themselves."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [
        re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"`\1`", re.sub(r"([<*_\\])", r"\\\1", part))
        for part in parts[::2]
    ]
    return "".join(parts)


def cell(text: str) -> str:
    """Return text as the cell of a table."""
    return prose(text.replace("\n", " ")).replace("|", "\\|")


def allowed(value: Mapping[str, Any], kinds: Mapping[str, Any]) -> str:
    """Return the sentence on the values that a JSON schema allows; nothing if it lists none.

    `kinds` are the document's schemas by name, to which a `$ref` points.
    """
    found = [
        kinds[one["$ref"].rsplit("/", 1)[-1]] if "$ref" in one else one
        for one in value.get("anyOf", [value])
    ]
    words = [f"`{word}`" for one in found for word in one.get("enum", ())]
    return f" One of {', '.join(words)}." if words else ""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table; nothing without rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) if lines else ""


def page(parts: Iterable[str]) -> str:
    """Return a page of its parts, without the empty ones."""
    return "\n\n".join(part for part in parts if part) + "\n"
