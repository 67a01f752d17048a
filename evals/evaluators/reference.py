"""What a correct answer is, as the workload wrote it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

JsonObject = Mapping[str, Any]  # Any: JSON values
TextMatch = Literal["exact", "contains", "f1"]


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
class JsonParts:
    """The answer is JSON that a schema allows, and has these values at these places."""

    schema: JsonObject | None
    required: JsonObject
    """Values by JSON Pointer (RFC 6901)."""


@dataclass(frozen=True, slots=True)
class CodeTests:
    """The answer completes `prelude` to a program that these asserts hold for."""

    entry_point: str
    prelude: str
    tests: str


@dataclass(frozen=True, slots=True)
class StdioCases:
    """The answer is a script that prints the second text of each case when it reads the first."""

    cases: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class QaAnswers:
    """The answer says one of these, compared as question answering does."""

    answers: tuple[str, ...]
    match: TextMatch


@dataclass(frozen=True, slots=True)
class Number:
    """The last number of the answer is this one, within the larger of the tolerances."""

    value: float
    rel_tol: float
    abs_tol: float


@dataclass(frozen=True, slots=True)
class WantedCall:
    """One tool call: for each argument the values that are accepted."""

    name: str
    arguments: Mapping[str, Sequence[object]]
    optional: frozenset[str]


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """The answer makes exactly these calls, in any order; none at all means that it makes none."""

    calls: tuple[WantedCall, ...]
    tools: tuple[JsonObject, ...]
    """JSON Schemas of the tools, which say the arguments' types; none, no types are looked at."""
    any_call: bool = False
    """Any call will do, and none will not."""


@dataclass(frozen=True, slots=True)
class Actions:
    """The conversation's tool calls that change state are exactly these, or hold this sequence."""

    calls: tuple[tuple[str, JsonObject], ...]
    state_changing: frozenset[str] | None
    """Tools that count; `None`, those of `calls`."""
    sequence: bool
    """The calls must occur in this order, whatever stands between them."""


@dataclass(frozen=True, slots=True)
class EndState:
    """The last result of this tool in the conversation is this JSON value."""

    tool: str
    value: object


@dataclass(frozen=True, slots=True)
class Rubric:
    """The answer meets these criteria, in a judge's opinion."""

    criteria: tuple[str, ...]


Reference = (
    ExactText
    | JsonValue
    | JsonParts
    | CodeTests
    | StdioCases
    | QaAnswers
    | Number
    | ToolCalls
    | Actions
    | EndState
    | Rubric
)


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
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UnusableReferenceError(
            f"the reference's kind is {kind!r}; wanted one of {', '.join(_KINDS)}"
        )
    return _KINDS[kind](value)


def _exact(value: JsonObject) -> Reference:
    return ExactText(_string(value, "text"))


def _json(value: JsonObject) -> Reference:
    if "value" in value:
        return JsonValue(value["value"])
    schema, required = value.get("schema"), value.get("required", {})
    if schema is None and not required:
        raise UnusableReferenceError("the reference has no value, no schema and nothing required")
    if schema is not None and not isinstance(schema, dict):
        raise UnusableReferenceError("the reference's schema is not an object")
    if not isinstance(required, dict) or not all(k == "" or k[0] == "/" for k in required):
        raise UnusableReferenceError(
            "the reference's required is not an object of JSON Pointers, such as /items/0/price"
        )
    return JsonParts(schema, required)


def _tests(value: JsonObject) -> Reference:
    tests = _string(value, "tests")
    if not tests.strip():
        raise UnusableReferenceError("the reference has no tests")
    return CodeTests(_string(value, "entry_point"), _string(value, "prelude"), tests)


def _stdio(value: JsonObject) -> Reference:
    cases = tuple(
        (_string(case, "stdin"), _string(case, "stdout")) for case in _objects(value, "cases")
    )
    if not cases:
        raise UnusableReferenceError("the reference has no cases")
    return StdioCases(cases)


def _qa(value: JsonObject) -> Reference:
    answers = value.get("answers")
    if not isinstance(answers, list) or not answers or not all(map(_is_text, answers)):
        raise UnusableReferenceError("the reference's answers are not a list of texts")
    match = value.get("match", "exact")
    if match not in get_args(TextMatch):
        raise UnusableReferenceError(
            f"the reference's match is {match!r}; wanted {', '.join(get_args(TextMatch))}"
        )
    return QaAnswers(tuple(answers), match)


def _number(value: JsonObject) -> Reference:
    rel_tol, abs_tol = _real(value, "rel_tol", 1e-6), _real(value, "abs_tol", 0.0)
    if min(rel_tol, abs_tol) < 0:
        raise UnusableReferenceError("the reference's tolerance is below 0")
    return Number(_real(value, "value"), rel_tol, abs_tol)


def _tool_calls(value: JsonObject) -> Reference:
    if value.get("calls") == "any":
        return ToolCalls((), (), any_call=True)
    calls = tuple(_wanted_call(call) for call in _objects(value, "calls"))
    tools = _objects(value, "tools") if "tools" in value else []
    return ToolCalls(calls, tuple(tools))


def _wanted_call(call: JsonObject) -> WantedCall:
    arguments, optional = call.get("arguments", {}), call.get("optional", [])
    if not isinstance(arguments, dict) or not all(isinstance(v, list) for v in arguments.values()):
        raise UnusableReferenceError(
            "a call's arguments are not an object of lists of accepted values"
        )
    if not isinstance(optional, list) or not set(optional) <= set(arguments):
        raise UnusableReferenceError("a call's optional names an argument that it does not have")
    return WantedCall(_string(call, "name"), arguments, frozenset(optional))


def _actions(value: JsonObject) -> Reference:
    calls = []
    for call in _objects(value, "calls"):
        arguments = call.get("arguments", {})
        if not isinstance(arguments, dict):
            raise UnusableReferenceError("a call's arguments are not an object")
        calls.append((_string(call, "name"), arguments))
    changing = value.get("state_changing")
    if changing is not None and not (isinstance(changing, list) and all(map(_is_text, changing))):
        raise UnusableReferenceError("the reference's state_changing is not a list of tools' names")
    order = value.get("order", "any")
    if order not in ("any", "sequence"):
        raise UnusableReferenceError(f"the reference's order is {order!r}; wanted any or sequence")
    return Actions(
        tuple(calls), None if changing is None else frozenset(changing), order == "sequence"
    )


def _end_state(value: JsonObject) -> Reference:
    if "value" not in value:
        raise UnusableReferenceError("the reference has no value")
    return EndState(_string(value, "tool"), value["value"])


def _rubric(value: JsonObject) -> Reference:
    criteria = value.get("criteria")
    if not isinstance(criteria, list) or not criteria or not all(map(_is_text, criteria)):
        raise UnusableReferenceError("the reference's criteria are not a list of texts")
    return Rubric(tuple(criteria))


_KINDS: Mapping[str, Callable[[JsonObject], Reference]] = {
    "exact": _exact,
    "json": _json,
    "tests": _tests,
    "stdio": _stdio,
    "qa": _qa,
    "number": _number,
    "tool_calls": _tool_calls,
    "actions": _actions,
    "end_state": _end_state,
    "rubric": _rubric,
}


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _string(value: JsonObject, key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str):
        raise UnusableReferenceError(f"the reference's {key} is not text")
    return found


def _real(value: JsonObject, key: str, default: float | None = None) -> float:
    found = value.get(key, default)
    if not isinstance(found, int | float) or isinstance(found, bool):
        raise UnusableReferenceError(f"the reference's {key} is not a number")
    return float(found)


def _objects(value: JsonObject, key: str) -> list[JsonObject]:
    found = value.get(key)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise UnusableReferenceError(f"the reference's {key} is not a list of objects")
    return found
