"""What a correct answer is, as the workload wrote it."""

import json
from dataclasses import dataclass


class UnusableReferenceError(ValueError):
    """A reference that names a kind and does not keep to it."""


@dataclass(frozen=True, slots=True)
class ExactText:
    """The answer is this text, up to white space."""

    text: str


@dataclass(frozen=True, slots=True)
class JsonValue:
    """The answer is this JSON value."""

    value: object


@dataclass(frozen=True, slots=True)
class CodeTests:
    """The answer completes `prelude` to a program that these asserts hold for."""

    entry_point: str
    prelude: str
    tests: str


Reference = ExactText | JsonValue | CodeTests


def parse(text: str) -> Reference:
    """Read a reference: a JSON object with a `kind`, a JSON string, or plain text.

    Raises `UnusableReferenceError` for an object whose kind is unknown or whose keys are not those
    of its kind. Anything that is not such an object is the exact text itself.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ExactText(text)
    if isinstance(value, str):
        return ExactText(value)
    if not isinstance(value, dict):
        return ExactText(text)
    kind = value.get("kind")
    if kind == "exact":
        return ExactText(_string(value, "text"))
    if kind == "json" and "value" in value:
        return JsonValue(value["value"])
    if kind == "tests":
        tests = _string(value, "tests")
        if not tests.strip():
            raise UnusableReferenceError("the reference has no tests")
        return CodeTests(_string(value, "entry_point"), _string(value, "prelude"), tests)
    raise UnusableReferenceError(
        f"the reference's kind is {kind!r}; wanted exact (text), json (value) or tests"
    )


def _string(value: dict[str, object], key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str):
        raise UnusableReferenceError(f"the reference's {key} is not text")
    return found
