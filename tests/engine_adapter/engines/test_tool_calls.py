"""Tool calls and reasoning, put together from what each engine streams."""

import json
from typing import Any

import pytest

from engine_adapter.engines.answer import AnswerReader
from engine_adapter.engines.llamacpp import LlamaCppReader
from engine_adapter.engines.sglang import SglangReader
from engine_adapter.engines.tool_calls import ToolCall
from engine_adapter.engines.vllm import VllmReader


def delta(part: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": part, "finish_reason": None, **more}]}


def call(index: int | None, id_: str | None, **function: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"function": function}
    if index is not None:
        made["index"] = index
    if id_ is not None:
        made |= {"id": id_, "type": "function"}
    return {"tool_calls": [made]}


FORMS = {
    "vLLM: the id and the name once, then arguments": (
        call(0, "a", name="f", arguments=""),
        call(0, None, arguments='{"x"'),
        call(0, None, arguments=": 1}"),
        call(1, "b", name="g", arguments=""),
        call(1, None, arguments="{}"),
    ),
    "SGLang: nulls where nothing is new": (
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "id": None, "function": {"name": None, "arguments": '{"x"'}}]},
        {"tool_calls": [{"index": 0, "id": None, "function": {"name": None, "arguments": ": 1}"}}]},
        {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}]},
    ),
    "llama.cpp: the first arguments with the name": (
        call(0, "a", name="f", arguments="{"),
        call(0, None, arguments='"x": 1}'),
        call(1, "b", name="g", arguments="{}"),
    ),
    "all calls under one index, told apart by their ids": (
        call(0, "a", name="f", arguments='{"x": 1}'),
        call(0, "b", name="g", arguments="{}"),
    ),
    "the name and the id in every delta": (
        call(0, "a", name="f", arguments='{"x"'),
        call(0, "a", name="f", arguments=": 1}"),
        call(1, "b", name="g", arguments="{}"),
    ),
    "no index": (
        call(None, "a", name="f", arguments='{"x"'),
        call(None, None, arguments=": 1}"),
        call(None, "b", name="g", arguments="{}"),
    ),
    "TGI: one call in place of a list": (
        {"tool_calls": {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x": 1}'}}},
        {"tool_calls": {"index": 1, "id": "b", "function": {"name": "g", "arguments": {}}}},
    ),
    "interleaved": (
        {
            "tool_calls": [
                {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}},
                {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}},
            ]
        },
        call(1, None, arguments="}"),
        call(0, None, arguments=": 1}"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reader", [AnswerReader, VllmReader, SglangReader, LlamaCppReader])
def test_calls_are_put_together(form: str, reader: type[AnswerReader]) -> None:
    """Whatever the engine repeats, leaves out or mixes, the calls are those that it made."""
    reading = reader()
    pieces = [reading.take(delta(part)) for part in FORMS[form]]
    reading.take(delta({}, finish_reason="tool_calls"))
    answer = reading.answer()
    assert [(c.id, c.name, json.loads(c.arguments)) for c in answer.tool_calls] == [
        ("a", "f", {"x": 1}),
        ("b", "g", {}),
    ]
    assert answer.finish_reason == "tool_calls"
    assert all(piece is not None and piece.is_answer for piece in pieces)


def test_a_whole_message_has_its_calls_and_text() -> None:
    """An answer that is no stream holds the calls beside its text."""
    reading = AnswerReader()
    message = {"content": "So:", **call(None, "a", name="f", arguments="{")}
    reading.take({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    assert reading.answer().tool_calls == (ToolCall(name="f", arguments="{", id="a"),)
    assert reading.answer().text == "So:"


def test_the_older_function_call_is_a_call_without_an_id() -> None:
    """`function_call` of the API's first version is read, too."""
    reading = AnswerReader()
    for part in ({"name": "f", "arguments": ""}, {"arguments": "{}"}):
        reading.take(delta({"function_call": part}))
    assert reading.answer().tool_calls == (ToolCall(name="f", arguments="{}"),)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_no_part_of_the_text(name: str) -> None:
    """By either of its names; its tokens are those of its chunks, if the usage has none."""
    reading = VllmReader()
    ids = ([1, 2], [3], [4, 5])
    parts = ({name: "Well, "}, {name: "so."}, {"content": "Yes"})
    pieces = [
        reading.take(delta(part, token_ids=tokens)) for part, tokens in zip(parts, ids, strict=True)
    ]
    answer = reading.answer()
    assert (answer.text, answer.reasoning) == ("Yes", "Well, so.")
    assert [piece.is_answer for piece in pieces if piece] == [False, False, True]
    assert answer.reasoning_tokens == 3


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"completion_tokens_details": {"reasoning_tokens": 7}}, 7),
        ({"reasoning_tokens": 7}, 7),
        ({"reasoning_tokens": 0}, None),  # SGLang's default, beside a reasoning
        ({}, None),
    ],
)
def test_reasoning_tokens_are_counted_by_the_engine(
    usage: dict[str, Any], tokens: int | None
) -> None:
    """As the usage says, by either place; what nobody counted is absent."""
    reading = AnswerReader()
    reading.take(delta({"reasoning_content": "Hm"}))
    reading.take({"choices": [], "usage": usage})
    assert reading.answer().reasoning_tokens == tokens


@pytest.mark.parametrize("document", [{}, {"choices": []}, {"choices": [{}]}, {"usage": {}}])
def test_an_answer_that_says_nothing_is_empty(document: dict[str, Any]) -> None:
    """A 200 with `{}` is no answer; one with an end and no text is one."""
    reading = AnswerReader()
    reading.take(document)
    assert reading.answer().is_empty
    reading.take(delta({}, finish_reason="stop"))
    assert not reading.answer().is_empty
