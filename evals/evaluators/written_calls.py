"""Read tool calls from a text: as JSON, Python calls, or between markers of models and agents."""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.evaluators.answers import NotJsonError, json_value

_FUNCTION_TAG = re.compile(
    r"<function=(?P<name>[\w.-]{1,200})>(?P<arguments>.*?)</function>", re.DOTALL
)
_PARAMETER_TAG = re.compile(
    r"<parameter=(?P<name>[\w.-]{1,200})>(?P<value>.*?)</parameter>", re.DOTALL
)
_NAMED = re.compile(
    r"\[TOOL_CALLS\]\s*(?P<name>[\w.-]{1,200})(?:\[CALL_ID\][\w-]{1,100})?\[ARGS\]"
    r"(?P<arguments>.*?)(?=\[TOOL_CALLS\]|</s>|\Z)",
    re.DOTALL,
)
"""Calls as Mistral's newer models write them."""
_KEYED = re.compile(
    r"<tool_call>\s*(?P<name>[\w.-]{1,200})\s*(?P<arguments><arg_key>.*?)?\s*(?:</tool_call>|\Z)",
    re.DOTALL,
)
"""Calls as GLM's models write them, with tags around each argument."""
_KEY_TAG = re.compile(
    r"<arg_key>\s*(?P<name>[\w.-]{1,200})\s*</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>",
    re.DOTALL,
)
_ACTION = re.compile(
    r"^[ \t*]*Action[ \t*]*:[ \t*]*(?P<name>[\w.-]{1,200})[ \t]*\n+[ \t*]*Action Input[ \t*]*:"
    r"(?P<arguments>.*?)(?=^[ \t*]*(?:Observation|Thought|Action|Final Answer)\b|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""Calls as agents write them that are prompted by ReAct."""
_NOTHING = ("none", "null", "n/a")
_NAMES = ("name", "tool", "tool_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input")
"""Keys of a call in JSON; those of OpenAI, Llama, LangChain and Anthropic."""
_WRAPPERS = ("tool_calls", "tool_call", "function_call")
_MARKED = re.compile(r"<tool_call>(?P<call>.*?)(?:</tool_call>|\Z)", re.DOTALL)
_PYTHON = re.compile(
    r"```(?:python|tool_code|tool_calls?)?[ \t]*\n(?P<code>[^`]+)```|<\|python_tag\|>(?P<tagged>.+)"
    r"|(?P<list>\[\s*[A-Za-z_][\w.]*\([^\n]*\)\s*\])"
)
"""Where Python calls stand within prose."""
_JSON_START = re.compile(r"[{\[](?=\s*[\"{\[])")
_MOST_VALUES = 200
"""Limit on the JSON values that are parsed in one text."""


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """One tool call."""

    name: str
    arguments: Mapping[str, Any]  # Any: JSON values
    id: str | None = None
    text: str | None = None
    """The input, if it is a plain text and not named arguments."""

    def named(self, parameters: Mapping[str, Any]) -> "WrittenCall":  # Any: JSON values
        """Return the call with its text as a tool's only parameter, or its only required one.

        `parameters` is the tool's schema. Without a text or such a parameter, the call stays as is.
        """
        properties = parameters.get("properties") or {}
        required = parameters.get("required") or ()
        names = required if len(required) == 1 else tuple(properties)
        if self.text is None or len(names) != 1:
            return self
        schema = properties.get(names[0])
        is_text = not isinstance(schema, dict) or schema.get("type", "string") == "string"
        value = self.text if is_text else _plain_value(self.text)
        return WrittenCall(self.name, {names[0]: value}, self.id)


def calls_in_text(text: str) -> tuple[WrittenCall, ...]:
    """Return the calls in a text: JSON or Python calls alone, marked, or as JSON within prose."""
    try:
        return _calls_of(json_value(text))
    except NotJsonError:
        return _python_calls(text) or _calls_within(text)


def _calls_of(value: object) -> tuple[WrittenCall, ...]:
    """Read a JSON value as calls; return none if any part of it is no call."""
    value = _unwrapped(value)
    items = value if isinstance(value, list) else [value]
    calls = [json_call(item) for item in items]
    return tuple(call for call in calls if call) if all(calls) else ()


def _unwrapped(value: object) -> object:
    """Return the calls of an object such as `{"tool_calls": […]}`; another value as it is."""
    if isinstance(value, dict):
        return next((value[key] for key in _WRAPPERS if value.get(key)), value)
    return value


def _calls_within(text: str) -> tuple[WrittenCall, ...]:
    """Return the calls between the markers of Hermes, Llama or Mistral, otherwise those in prose.

    JSON in prose is a call only if it has both a name and arguments; Python calls in prose count
    only as a list, or as a whole block of code.
    """
    named = [(m["name"], _tagged(m["arguments"])) for m in _FUNCTION_TAG.finditer(text)]
    named += [(m["name"], m["arguments"].strip()) for m in _NAMED.finditer(text)]
    named += [(m["name"], _keyed(m["arguments"] or "")) for m in _KEYED.finditer(text)]
    actions = [_action(m["name"], _fenceless(m["arguments"])) for m in _ACTION.finditer(text)]
    if named or actions:
        made = [json_call({"name": name, "arguments": given}) for name, given in named]
        return tuple(call for call in made + actions if call)
    quoted = [value for m in _MARKED.finditer(text) for value in _literal(m["call"])]
    return tuple(_json_within(text)) or _calls_of(quoted) or _python_within(text)


def _tagged(arguments: str) -> str | dict[str, object]:
    """Return the arguments between `<parameter=…>` tags; the text if it has none."""
    found = {m["name"]: _plain_value(m["value"]) for m in _PARAMETER_TAG.finditer(arguments)}
    return found or arguments


def _keyed(arguments: str) -> dict[str, object]:
    """Return the arguments between `<arg_key>` and `<arg_value>` tags."""
    return {m["name"]: _plain_value(m["value"]) for m in _KEY_TAG.finditer(arguments)}


def _fenceless(arguments: str) -> str:
    """Return an agent's JSON without the fence of a code block around it."""
    return arguments.strip("* \n").removeprefix("```json").strip("` \n")


def _action(name: str, given: str) -> WrittenCall | None:
    """Return an agent's call, whose input is JSON or a plain text; `None` for no action."""
    if name.lower() in _NOTHING:
        return None
    call = json_call({"name": name, "arguments": "" if given.lower() in _NOTHING else given})
    if call is not None or given.startswith("{"):
        return call
    text = _plain_value(given)
    return WrittenCall(name, {}, text=text if isinstance(text, str) else given)


def _plain_value(text: str) -> object:
    """Read a parameter between tags: JSON if it is a number, a list and the like, else the text."""
    try:
        return json_value(text)
    except NotJsonError:
        return text.strip("\n")


def _literal(text: str) -> list[object]:
    """Return the dictionaries of a call in Python's notation, as Hermes models write it."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return []
    return [_tuples_as_lists(v) for v in (value if isinstance(value, list | tuple) else [value])]


def _json_within(text: str) -> Iterator[WrittenCall]:
    decoder, at = json.JSONDecoder(), 0
    for _ in range(_MOST_VALUES):
        match = _JSON_START.search(text, at)
        if match is None:
            return
        try:
            value, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.end()
            continue
        value = _unwrapped(value)
        items = value if isinstance(value, list) else [value]
        yield from (c for item in items if _is_call(item) and (c := json_call(item)))


def _python_within(text: str) -> tuple[WrittenCall, ...]:
    """Return the Python calls of a text's blocks of code and lists."""
    blocks = [m["list"] or m["code"] or m["tagged"] for m in _PYTHON.finditer(text)]
    return tuple(call for block in blocks for call in _python_calls(block))


def _is_call(item: object) -> bool:
    if not isinstance(item, dict):
        return False
    inner = item.get("function")
    called = inner if isinstance(inner, dict) else item
    return _first(called, _NAMES) is not None and _first(called, _ARGUMENTS) is not None


def _first(called: Mapping[str, object], keys: Sequence[str]) -> object:
    return next((called[key] for key in keys if key in called), None)


def json_call(item: object) -> WrittenCall | None:
    """Read `{"name": …, "arguments": …}`, bare or inside `{"function": …}`, or with other keys."""
    if not isinstance(item, dict):
        return None
    inner = item.get("function")
    called = inner if isinstance(inner, dict) else item
    name, arguments = _first(called, _NAMES), _first(called, _ARGUMENTS)
    if arguments is None:
        name, arguments = called.get("name"), {}
    if isinstance(arguments, str):
        try:
            arguments = json_value(arguments) if arguments.strip() else {}
        except NotJsonError:
            return None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return WrittenCall(name, arguments, item.get("id") if isinstance(item.get("id"), str) else None)


def _python_calls(text: str) -> tuple[WrittenCall, ...]:
    """Read Python code as calls, one a line or in a list; return none if any part is no call."""
    try:
        lines = ast.parse(text.strip().strip("`\n")).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    bodies = [line.value if isinstance(line, ast.Expr) else None for line in lines]
    nodes = [
        node
        for body in bodies
        for node in (body.elts if isinstance(body, ast.List | ast.Tuple) else [body])
    ]
    calls = [_python_call(node) for node in nodes]
    return tuple(call for call in calls if call) if all(calls) else ()


def _python_call(node: ast.expr | None) -> WrittenCall | None:
    if not isinstance(node, ast.Call) or node.args or any(k.arg is None for k in node.keywords):
        return None
    try:
        arguments = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    name = ast.unparse(node.func).removesuffix(".call")  # Llama's built-in tools
    return WrittenCall(name, {k: _tuples_as_lists(v) for k, v in arguments.items()})


def _tuples_as_lists(value: object) -> object:
    """Turn tuples into lists, since JSON has no tuples."""
    if isinstance(value, list | tuple):
        return [_tuples_as_lists(item) for item in value]
    if isinstance(value, dict):
        return {key: _tuples_as_lists(item) for key, item in value.items()}
    return value
