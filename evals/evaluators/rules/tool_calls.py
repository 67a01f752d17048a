"""The rule for tool calls: the right calls with accepted arguments, in any order.

Follows the AST check of the Berkeley Function Calling Leaderboard: types by the tools' schemas, a
list of accepted values for each argument, optional arguments that may be left out, and strings
compared without case, spaces and the punctuation , . / - _ * ^.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evals.evaluators.reference import ToolCalls, WantedCall
from evals.evaluators.rules.json_values import is_number, short
from evals.evaluators.rules.outcome import RuleResult
from evals.evaluators.written_calls import WrittenCall

FIELDS = "$fields"
OPTIONAL = "$optional"
_IGNORED = re.compile(r"[ ,./\-_*^]")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "float": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "tuple": (list,),
    "dict": (dict,),
    "object": (dict,),
    "null": (type(None),),
}

JsonObject = Mapping[str, Any]  # Any: JSON values


def calls(made: Sequence[WrittenCall], reference: ToolCalls) -> RuleResult:
    """Match the calls made one-to-one with the wanted calls."""
    if reference.any_call:
        return RuleResult.of(None if made else "wanted a tool call, got none")
    wanted = reference.calls
    if len(made) != len(wanted):
        names = ", ".join(call.name for call in made) or "none"
        return RuleResult(0.0, f"wanted {len(wanted)} tool calls, got {len(made)} ({names})")
    schemas = {_name(str(tool.get("name"))): tool for tool in map(_function, reference.tools)}
    problems = [
        [_problem(call, want, schemas.get(_name(want.name))) for call in made] for want in wanted
    ]
    unmet = _unmatched([[problem is None for problem in row] for row in problems])
    if unmet is None:
        return RuleResult(1.0)
    return RuleResult(0.0, _closest([problem or "taken by another" for problem in problems[unmet]]))


def _function(tool: JsonObject) -> JsonObject:
    """Return a tool's function, which may be bare or in `{"type": "function", "function": …}`."""
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool


def _closest(problems: Sequence[str]) -> str:
    """Return the problem of the closest call: one of the wanted name, if any."""
    named = [problem for problem in problems if not problem.startswith("wanted a call of")]
    return (named or problems)[0]


def _unmatched(fits: Sequence[Sequence[bool]]) -> int | None:
    """Match rows to columns (bipartite matching); return a row left over, `None` if none is."""
    row_of_column: dict[int, int] = {}

    def match(row: int, tried: set[int]) -> bool:
        for column, fit in enumerate(fits[row]):
            if fit and column not in tried:
                tried.add(column)
                if column not in row_of_column or match(row_of_column[column], tried):
                    row_of_column[column] = row
                    return True
        return False

    return next((row for row in range(len(fits)) if not match(row, set())), None)


def _problem(call: WrittenCall, wanted: WantedCall, tool: JsonObject | None) -> str | None:
    """Return why the call is not the wanted one; `None` if it is."""
    if _name(call.name) != _name(wanted.name):
        return f"wanted a call of {wanted.name}, got {call.name}"
    parameters = (tool or {}).get("parameters", {})
    properties = parameters.get("properties", {})
    call = call.named(parameters if tool else _parameters(wanted))
    if call.text is not None:
        return f"{wanted.name}: its arguments are a text, {short(call.text)}"
    for key in parameters.get("required", ()):
        if key not in call.arguments:
            return f"{wanted.name}: {key} is missing"
    for key, value in call.arguments.items():
        if key not in wanted.arguments or (tool is not None and key not in properties):
            return f"{wanted.name}: {key} is not wanted"
        if problem := _value_problem(value, wanted.arguments[key], properties.get(key, {})):
            return f"{wanted.name}: {key} is {problem}"
    missing = wanted.arguments.keys() - call.arguments.keys() - wanted.optional
    return f"{wanted.name}: {min(missing)} is missing" if missing else None


def _parameters(wanted: WantedCall) -> JsonObject:
    """Return a schema of a call's arguments that tells texts from other values."""
    types = {
        name: {"type": "string" if any(isinstance(v, str) for v in accepted) else "any"}
        for name, accepted in wanted.arguments.items()
    }
    return {"properties": types}


def _value_problem(value: object, accepted: Sequence[object], schema: JsonObject) -> str | None:
    if not _has_type(value, schema, accepted):
        return f"{short(value)}, wanted {schema.get('type')}"
    # A string where another type is wanted is a variable's name, which must match exactly.
    is_variable = isinstance(value, str) and schema.get("type", "string") not in ("string", "any")
    right = value in accepted if is_variable else any(_equal(value, o) for o in accepted)
    if not right:
        return f"{short(value)}, wanted {_options(accepted)}"
    return None


def _name(name: str) -> str:
    """Replace dots, which some providers do not allow in names."""
    return name.replace(".", "_")


def _options(accepted: Sequence[object]) -> str:
    return " or ".join(short(option) for option in accepted[:3])


def _has_type(value: object, schema: JsonObject, accepted: Sequence[object]) -> bool:
    """Return whether a value has its schema's type, or the type of an accepted value.

    The latter allows a variable's name in place of a value.
    """
    if any(type(option) is type(value) for option in accepted) and not isinstance(value, list):
        return True
    wanted = schema.get("type")
    types = _TYPES.get(wanted) if isinstance(wanted, str) else None
    if types is None:
        return True
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return False
    if not isinstance(value, list):
        return True
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return True
    accepted_items = [item for option in accepted if isinstance(option, list) for item in option]
    return all(_has_type(item, items, accepted_items) for item in value)


def _equal(value: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping) and FIELDS in wanted:
        return isinstance(value, Mapping) and _fields_equal(value, wanted)
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        return value.keys() == wanted.keys() and all(_equal(value[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list) and isinstance(value, list):
        return len(value) == len(wanted) and all(map(_equal, value, wanted))
    if isinstance(wanted, str) and isinstance(value, str):
        return _normalized(value) == _normalized(wanted)
    if is_number(value) and is_number(wanted):
        return value == wanted
    return type(value) is type(wanted) and value == wanted


def _fields_equal(value: JsonObject, wanted: JsonObject) -> bool:
    fields, optional = wanted[FIELDS], wanted.get(OPTIONAL, ())
    return all(
        key in fields and any(_equal(item, option) for option in fields[key])
        for key, item in value.items()
    ) and all(key in value or key in optional for key in fields)


def _normalized(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')
