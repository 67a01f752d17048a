"""Parse a workload's reference text into a `Reference`."""

import json
from collections.abc import Callable, Mapping
from typing import get_args

from evals.evaluators.reference import (
    Actions,
    CodeTests,
    EndState,
    ExactText,
    JsonObject,
    JsonParts,
    JsonValue,
    Number,
    QaAnswers,
    Reference,
    Rubric,
    StdioCases,
    TextMatch,
    ToolCalls,
    UnusableReferenceError,
    WantedCall,
)


def parse(text: str) -> Reference:
    """Parse a reference: a JSON object with a `kind`, a JSON string, or plain text.

    Text that is no JSON object is an `ExactText`. Raises `UnusableReferenceError` for an object
    whose kind is unknown or whose keys do not fit its kind.
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
