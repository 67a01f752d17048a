"""The validity of tool calls' arguments."""

import json
from typing import Any

import pytest

from collector.contract import Content
from evals.evaluators.schema_validity import SchemaValidity

TOOL = {
    "type": "function",
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


def part(arguments: object, name: str = "weather") -> dict[str, Any]:
    return {"type": "tool_call", "id": "c", "name": name, "arguments": arguments}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "content": words}


@pytest.mark.parametrize(
    ("parts", "value", "about"),
    [
        ([part({"city": "Bonn"})], 1.0, "valid"),
        ([part({"city": "Bonn"}), part({"city": 3})], 0.0, "weather: city: 3 is not of type"),
        ([part({})], 0.0, 'weather: answer: "city" is a required property'),
        ([part('{"city": "Bo')], 0.0, "weather: the arguments are no JSON object"),
        ([part({"city": "Bonn"}, name="whether")], 0.0, "whether is no tool that was offered"),
        ([text("It is warm.")], 1.0, "no_calls"),
        ([text('<tool_call>{"name": "weather", "arguments": {"ci')], 0.0, "cannot be read"),
        (
            [text('<tool_call>{"name": "weather", "arguments": {"city": "Bonn"}}</tool_call>')],
            1.0,
            "valid",
        ),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_arguments_are_held_against_the_tools_own_schemas(
    generation_of: Any,
    parts: list[dict[str, Any]],
    value: float,
    about: str,
    nested: bool,
) -> None:
    """Each call that is made; an answer that calls nothing breaks no schema."""
    tool: dict[str, Any] = TOOL
    if nested:
        inner = {key: value for key, value in TOOL.items() if key != "type"}
        tool = {"type": "function", "function": inner}
    content = Content(
        output_messages=json.dumps([{"role": "assistant", "parts": parts}]),
        tool_definitions=json.dumps([tool]),
    )
    score = SchemaValidity().score(generation_of(content=content))
    assert score is not None
    assert score.value == value
    assert about in f"{score.label} {score.explanation}"


def test_an_answer_under_a_schema_and_with_tools_is_judged_by_what_it_is(
    generation_of: Any,
) -> None:
    """Calls by their tools, any other answer by the output schema."""
    content = {"tool_definitions": json.dumps([TOOL]), "output_schema": '{"type": "integer"}'}
    for parts, value in (([part({"city": "Bonn"})], 1.0), ([text("7")], 1.0), ([text("x")], 0.0)):
        said = Content(
            output_messages=json.dumps([{"role": "assistant", "parts": parts}]), **content
        )
        score = SchemaValidity().score(generation_of(content=said))
        assert score is not None
        assert score.value == value


def test_a_tool_whose_parameters_are_no_schema_leaves_its_calls_unscored(
    generation_of: Any,
) -> None:
    """It is the workload's fault, not the answer's."""
    content = Content(
        output_messages=json.dumps([{"role": "assistant", "parts": [part({"city": "Bonn"})]}]),
        tool_definitions=json.dumps([TOOL | {"parameters": {"type": "dict"}}]),
    )
    score = SchemaValidity().score(generation_of(content=content))
    assert score is not None
    assert score.value is None
    assert "the schema is not usable" in (score.unscored_reason or "")


NAMED = '{"type": "function", "function": {"name": "weather"}}'


@pytest.mark.parametrize(
    ("choice", "parts", "value", "about"),
    [
        ("required", [text("It is warm.")], 0.0, "no_calls tool_choice asks for a tool call"),
        (NAMED, [text("It is warm.")], 0.0, "no_calls tool_choice asks for a call of weather"),
        ('{"type": "function", "name": "weather"}', [text("7")], 0.0, "no_calls tool_choice asks"),
        ("auto", [text("It is warm.")], 1.0, "no_calls"),
        ("none", [text("It is warm.")], 1.0, "no_calls"),
        ("required", [part({"city": "Bonn"})], 1.0, "valid"),
        (NAMED, [part({"city": "Bonn"})], 1.0, "valid"),
        (NAMED.replace("weather", "time"), [part({"city": "Bonn"})], 0.0, "weather is called"),
        ("none", [part({"city": "Bonn"})], 0.0, "tool_choice is none, and weather is called"),
        ("[", [text("It is warm.")], 1.0, "no_calls"),
    ],
)
@pytest.mark.parametrize("schema", [None, '{"type": "string"}'])
def test_calls_keep_to_what_tool_choice_asks(
    generation_of: Any,
    choice: str,
    parts: list[dict[str, Any]],
    value: float,
    about: str,
    schema: str | None,
) -> None:
    """An answer without calls is valid only if none was asked for; a schema changes nothing."""
    content = Content(
        output_messages=json.dumps([{"role": "assistant", "parts": parts}]),
        tool_definitions=json.dumps([TOOL]),
        tool_choice=choice,
        output_schema=schema,
    )
    score = SchemaValidity().score(generation_of(content=content))
    assert score is not None
    if schema is None or score.label == "no_calls" or parts[0]["type"] == "tool_call":
        assert score.value == value
        assert about in f"{score.label} {score.explanation}"
    else:
        assert score.label in ("not_json", "invalid")


def test_broken_arguments_say_where_they_break(generation_of: Any) -> None:
    """By characters of the call's own arguments; parsed ones have no characters."""
    for given, at in (('{"city": "Bonn"', 15), ('{"city": Bonn}', 9), ({"city": 3}, None)):
        content = Content(
            output_messages=json.dumps([{"role": "assistant", "parts": [part(given)]}]),
            tool_definitions=json.dumps([TOOL]),
        )
        score = SchemaValidity().score(generation_of(content=content))
        assert score is not None
        assert (score.spans[0].start if score.spans else None) == at


def test_redacted_arguments_leave_an_answer_unscored(generation_of: Any) -> None:
    """A mark in place of a number may have been a valid one."""
    tool = {**TOOL, "parameters": {"properties": {"card": {"type": "integer"}}}}
    content = Content(
        output_messages=json.dumps(
            [{"role": "assistant", "parts": [part({"card": "[redacted:card]"})]}]
        ),
        tool_definitions=json.dumps([tool]),
    )
    score = SchemaValidity().score(generation_of(content=content))
    assert score is not None
    assert (score.value, score.unscored_reason) == (
        None,
        "a redacted value cannot be held against the schema",
    )


@pytest.mark.parametrize(
    ("required", "value"), [([], 0.0), (["query", "days"], 0.0), (["query"], 1.0)]
)
def test_an_agents_plain_input_is_the_only_required_argument(
    generation_of, required, value
) -> None:
    """Of a tool with several parameters, none of them alone required, it fits none."""
    properties = {"query": {"type": "string"}, "days": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties, "required": required}
    content = Content(
        output_messages=json.dumps(
            [{"role": "assistant", "parts": [text("Action: search\nAction Input: Paris")]}]
        ),
        tool_definitions=json.dumps([{"name": "search", "parameters": parameters}]),
    )
    score = SchemaValidity().score(generation_of(content=content))
    assert score is not None
    assert score.value == value
