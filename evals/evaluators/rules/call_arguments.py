"""The rule for tool calls' arguments: each tool's own schema must allow them."""

import re
from collections.abc import Mapping
from typing import Any

from collector.contract import Generation
from evals.evaluators.answers import answer_text, json_list
from evals.evaluators.conversation import answered_calls, recorded_calls
from evals.evaluators.json_position import fault_in
from evals.evaluators.json_schema import faults, require_unredacted
from evals.evaluators.rules.outcome import RuleResult
from evals.evaluators.written_calls import calls_in_text

_MARKERS = re.compile(r"<tool_call>|<\|tool_call|<function=|\[TOOL_CALLS\]|<\|python_tag\|>")
"""Markers that models write before a call; they stay in the text if the call cannot be parsed."""

JsonObject = Mapping[str, Any]  # Any: JSON values


def arguments(generation: Generation) -> RuleResult | None:
    """Check each call of the answer; `None` if the answer makes no call and attempts none.

    Raises `UnusableSchemaError` if a called tool's parameters are no valid schema, and
    `RedactedError` if only redacted arguments are wrong.
    """
    content = generation.content
    for name, given in recorded_calls(generation):
        if not isinstance(given, Mapping):
            problem = f"{name}: the arguments are no JSON object: {given!r:.60}"
            return RuleResult(0.0, problem, fault_in(given) if isinstance(given, str) else None)
    calls = answered_calls(generation)
    if not calls:
        text = answer_text(generation) or ""
        unread = _MARKERS.search(text) is not None and not calls_in_text(text)
        return RuleResult(0.0, "a tool call in the text cannot be read") if unread else None
    tools = {_name(tool): tool for tool in _tools(content.tool_definitions if content else None)}
    for written in calls:
        tool = tools.get(written.name)
        if tool is None:
            return RuleResult(0.0, f"{written.name} is no tool that was offered")
        parameters = tool.get("parameters") or {}
        call = written.named(parameters)
        if call.text is not None and parameters:
            return RuleResult(0.0, f"{call.name}: the arguments are a text: {call.text!r:.60}")
        wrong = faults(parameters, dict(call.arguments))
        if wrong:
            require_unredacted(wrong)
            return RuleResult(0.0, f"{call.name}: {'; '.join(fault.message for fault in wrong)}")
    return RuleResult(1.0)


def _tools(definitions: str | None) -> list[JsonObject]:
    """Return the tools' definitions, which may be bare or inside `function`."""
    found = list[JsonObject]()
    for tool in json_list(definitions):
        inner = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(tool, dict):
            found.append(inner if isinstance(inner, dict) else tool)
    return found


def _name(tool: JsonObject) -> str:
    return str(tool.get("name"))
