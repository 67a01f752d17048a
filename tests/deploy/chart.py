"""Renders our chart without Helm: the part of its templates' language that the chart uses.

Whatever is not of that part is an error, so that a template that only Helm could read is noticed.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "draftgate"
_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.S)
_WORD = re.compile(r'"[^"]*"|\S+')


class TemplateError(Exception):
    """A template says what is not read here."""


class Node(NamedTuple):
    """Text, or an action with what stands in it."""

    kind: str
    says: str
    inside: list["Node"]
    otherwise: list["Node"]


def rendered(values: Mapping[str, Any] | None = None) -> dict[str, list[Any]]:
    """Return the documents of each template, with these values over the chart's own."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    own = yaml.safe_load((CHART / "values.yaml").read_text())
    root = {
        "Values": merged(own, values or {}),
        "Release": {"Name": "test", "Service": "Helm"},
        "Chart": {"AppVersion": chart["appVersion"]},
    }
    defined: dict[str, list[Node]] = {}
    trees = {
        file.name: parsed(file.read_text()) for file in sorted((CHART / "templates").iterdir())
    }
    for tree in trees.values():
        defined |= {node.says.strip('"'): node.inside for node in tree if node.kind == "define"}
    page = Page(root, defined)
    return {
        name: [one for one in yaml.safe_load_all(page.text(tree, root)) if one is not None]
        for name, tree in trees.items()
        if name.endswith(".yaml")
    }


def merged(own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with those that are given in their place; an unknown one is an error."""
    result = dict(own)
    for name, value in given.items():
        if name not in own:
            raise TemplateError(f"values.yaml has no {name}")
        nested = isinstance(value, Mapping) and isinstance(own[name], Mapping) and own[name]
        result[name] = merged(own[name], value) if nested else value
    return result


def parsed(text: str) -> list[Node]:
    """Return a template as a tree."""
    parts, at, strip = [], 0, False
    for found in _ACTION.finditer(text):
        before = text[at : found.start()]
        before = before.lstrip() if strip else before
        parts += [("text", before.rstrip() if found[1] else before), ("action", found[2])]
        at, strip = found.end(), bool(found[3])
    parts.append(("text", text[at:].lstrip() if strip else text[at:]))
    nodes, ended = _block(iter(parts))
    if ended is not None:
        raise TemplateError(f"{ended} of nothing")
    return nodes


def _block(parts: Iterator[tuple[str, str]]) -> tuple[list[Node], str | None]:
    nodes: list[Node] = []
    for kind, says in parts:
        word, _, rest = says.partition(" ")
        if kind == "text":
            nodes.append(Node("text", says, [], []))
        elif word in ("end", "else"):
            return nodes, word
        elif word in ("if", "range", "define"):
            inside, ended = _block(parts)
            otherwise, ended = _block(parts) if ended == "else" else ([], ended)
            if ended != "end":
                raise TemplateError(f"{says}: has no end")
            nodes.append(Node(word, rest, inside, otherwise))
        else:
            nodes.append(Node("action", says, [], []))
    return nodes, None


class Page:
    """Evaluates nodes."""

    def __init__(self, root: Mapping[str, Any], defined: Mapping[str, list[Node]]) -> None:
        self._root, self._defined = root, defined

    def text(self, nodes: list[Node], dot: Any) -> str:
        """Return what the nodes come to."""
        return "".join(self._node(node, dot) for node in nodes)

    def _node(self, node: Node, dot: Any) -> str:
        if node.kind == "text":
            return node.says
        if node.kind == "define":
            return ""
        if node.kind == "action":
            return str(self._pipeline(node.says, dot))
        value = self._pipeline(node.says, dot)
        if node.kind == "range":
            return "".join(self.text(node.inside, one) for one in value)
        return self.text(node.inside if value else node.otherwise, dot)

    def _pipeline(self, says: str, dot: Any) -> Any:
        first, *filters = [part.strip() for part in says.split("|")]
        value = self._call(_WORD.findall(first), dot)
        for part in filters:
            name, *arguments = part.split()
            if name == "quote":
                value = f'"{value}"'
            elif name == "nindent":
                indent = " " * int(arguments[0])
                value = "\n" + "\n".join(
                    indent + line if line else "" for line in value.split("\n")
                )
            else:
                raise TemplateError(f"{says}: {name} is not read here")
        return value

    def _call(self, words: list[str], dot: Any) -> Any:
        name, *rest = words
        arguments = [self._value(word, dot) for word in rest]
        if name == "include":
            return self.text(self._defined[arguments[0]], arguments[1])
        if name == "toYaml":
            return yaml.safe_dump(arguments[0]).rstrip("\n")
        if name == "printf":
            return arguments[0].replace("%s", "{}").format(*arguments[1:])
        if name == "not":
            return not arguments[0]
        if name == "add":
            return sum(arguments)
        if rest:
            raise TemplateError(f"{name}: is not read here")
        return self._value(name, dot)

    def _value(self, word: str, dot: Any) -> Any:
        if word.startswith('"'):
            return word.strip('"')
        if word.isdecimal():
            return int(word)
        if word[0] not in ".$":
            raise TemplateError(f"{word}: is not read here")
        value = self._root if word[0] == "$" else dot
        for name in filter(None, word.lstrip("$").split(".")):
            if name not in value:
                raise TemplateError(f"{word}: there is no {name}")
            value = value[name]
        return value
