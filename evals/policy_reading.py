"""Read a policy's YAML, with the path of every key for error messages."""

import difflib
import math
from collections.abc import Collection
from dataclasses import dataclass

import yaml

from evals.errors import PolicyError


class _Loader(yaml.SafeLoader):
    """The safe loader, but refuses duplicate keys in a mapping."""

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002
    ) -> dict[object, object]:
        """Construct the mapping like the base class, but raise for duplicate keys."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for i, key in enumerate(keys):
            if key in keys[:i]:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key!r} stands twice",
                    problem_mark=node.value[i][0].start_mark,
                )
        mapping: dict[object, object] = super().construct_mapping(node, deep)
        return mapping


def load_yaml(text: str, source: str) -> object:
    """Parse YAML; raises `PolicyError` with line and column if it is invalid."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  # derives from the safe loader
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        line = mark.line + 1 if mark else None
        raise PolicyError(f"{source}: {where}{exc.problem}", line=line) from exc
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as exc:
        first = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        raise PolicyError(f"{source}: wanted YAML, got {first}") from exc


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the document, with its file and path."""

    value: object
    source: str
    path: str

    def error(self, message: str) -> PolicyError:
        """Return an exception that names file, path and problem."""
        parts = (self.source, self.path, message)
        return PolicyError(": ".join(part for part in parts if part), key=self.path)

    def only(self, *keys: str) -> None:
        """Raise unless the value is a mapping with only these keys; suggest the nearest key."""
        for key in self._mapping():
            if key not in keys:
                near = difflib.get_close_matches(str(key), keys, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"wanted one of {', '.join(keys)}"
                raise self._child(str(key), None).error(f"unknown key; {hint}")

    def get(self, key: str) -> "Node | None":
        """Return a key's value, `None` if the key is absent; an explicit null is an error."""
        mapping = self._mapping()
        if key not in mapping:
            return None
        child = self._child(key, mapping[key])
        if child.value is None:
            raise child.error("wanted a value, got nothing; give one or leave the key out")
        return child

    def required(self, key: str) -> "Node":
        """Return a key's value or raise."""
        child = self.get(key)
        if child is None:
            raise self._child(key, None).error("missing key")
        return child

    def mapping(self, key: str) -> "Node":
        """Return a key's mapping, empty if the key is absent."""
        return self.get(key) or self._child(key, {})

    def items(self, key: str) -> "list[Node]":
        """Return the entries of a key's list, none if the key is absent."""
        child = self.get(key)
        if child is None:
            return []
        if not isinstance(child.value, list):
            raise child.error(f"wanted a list, got {child.shown()}")
        return [Node(item, self.source, f"{child.path}[{i}]") for i, item in enumerate(child.value)]

    def text(self) -> str:
        """Return the value as a non-empty string or raise."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.error(f"wanted text, got {self.shown()}")
        return self.value

    def number(self) -> float:
        """Return the value as a finite number or raise."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.error(f"wanted a number, got {self.shown()}")
        if not math.isfinite(self.value):
            raise self.error(f"wanted a finite number, got {self.shown()}")
        return float(self.value)

    def integer(self) -> int:
        """Return the value as a whole number or raise."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.error(f"wanted a whole number, got {self.shown()}")
        return self.value

    def one_of(self, options: Collection[str]) -> str:
        """Return the value if it is one of the options; otherwise raise and suggest the nearest."""
        if isinstance(self.value, str) and self.value in options:
            return self.value
        near = difflib.get_close_matches(str(self.value), list(options), n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise self.error(f"wanted one of {', '.join(options)}, got {self.shown()}{hint}")

    def shown(self) -> str:
        """Return the value, shortened, for a message."""
        text = repr(self.value)
        return text if len(text) <= 60 else f"{text[:57]}..."

    def _mapping(self) -> dict[object, object]:
        if not isinstance(self.value, dict):
            raise self.error(f"wanted a mapping of keys, got {self.shown()}")
        return self.value

    def _child(self, key: str, value: object) -> "Node":
        return Node(value, self.source, f"{self.path}.{key}" if self.path else key)
