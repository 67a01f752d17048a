"""The parameters of a workload's record, as they reach the server and the span."""

import json
from typing import Any

import pytest
import scripted_server as server
from recorded_runs import recorded

from collector.contract import Arm, Generation
from engine_adapter.routes import HttpRoute
from engine_adapter.run.rollout_file import Sampling
from engine_adapter.run.schedule import Turn
from engine_adapter.workload import Prompt

TOOL = {
    "type": "function",
    "function": {"name": "where", "parameters": {"type": "object", "properties": {}}},
}
SCHEMA = {"type": "object", "required": ["city"]}
EVERYTHING: dict[str, Any] = {
    "tools": [TOOL],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "response_format": {"type": "json_schema", "json_schema": {"name": "c", "schema": SCHEMA}},
    "stop": ["\n\n"],
    "temperature": 0.25,
    "top_p": 0.5,
    "top_k": 3,
    "min_p": 0.1,
    "frequency_penalty": 0.5,
    "presence_penalty": -0.5,
    "logit_bias": {"7": -100.0},
    "n": 2,
    "logprobs": True,
    "top_logprobs": 2,
    "reasoning_effort": "low",
    "chat_template_kwargs": {"enable_thinking": False},
}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Where is this?"},
            {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "where", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Paris"},
]


def asked(
    prompt: Prompt, reply: server.Reply, sampling: Sampling | None = None, **route: Any
) -> tuple[dict[str, Any], Generation]:
    """Return the body that reached a server, and the generation that was made of its answer."""
    turns = [Turn(prompt, 0, Arm.BASELINE)]
    with server.running(server.Route(reply), models=["m"]) as running:
        to = HttpRoute(engine="openai", url=running.url, model="m", **route)
        (generation,) = recorded(to, turns, sampling=sampling or Sampling())
        *_, last = running.log()
    return last.body, generation


def test_every_parameter_is_sent() -> None:
    """By the API's names, with an engine's own from `extra_body`; the record's win."""
    prompt = Prompt(
        id="p", cohort="c", prompt="x", **EVERYTHING, extra_body={"guided_regex": "a+", "top_k": 4}
    )
    common = Sampling(temperature=1.0, min_p=0.9, reasoning_effort="high", extra_body={"a": 1})
    body, made = asked(prompt, server.chat(["a"]), common, extra_body={"guided_regex": "b", "b": 2})
    wanted = EVERYTHING | {"guided_regex": "a+", "top_k": 4, "a": 1, "b": 2}
    assert {name: body.get(name) for name in wanted} == wanted
    assert (made.temperature, made.top_k, made.stop_sequences) == (0.25, 4, ("\n\n",))
    assert json.loads(made.content.output_schema or "") == SCHEMA
    assert made.content.tool_choice == EVERYTHING["tool_choice"]
    assert json.loads(made.content.tool_definitions or "") == [
        {"type": "function", **TOOL["function"]}
    ]


def test_messages_are_sent_as_they_are_and_recorded_by_the_conventions() -> None:
    """Parts, calls and results; of an image in the message itself only its kind is kept."""
    body, made = asked(Prompt(id="p", cohort="c", messages=MESSAGES), server.chat(["a"]))
    assert body["messages"] == MESSAGES
    assert json.loads(made.content.input_messages or "") == [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "Where is this?"},
                {"type": "uri", "modality": "image", "uri": "https://a.example/b.png"},
                {"type": "blob", "modality": "image"},
            ],
        },
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "where", "arguments": {}}],
        },
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c1", "response": "Paris"}],
        },
    ]
    assert made.dims == {"model": "m", "images": "2"}


def test_a_record_names_an_adapter() -> None:
    """Its `model` is asked for in the place of the route's, and is a dimension."""
    body, made = asked(Prompt(id="p", cohort="c", prompt="x", model="m-lora"), server.chat(["a"]))
    assert (body["model"], made.request_model, made.dims) == (
        "m-lora",
        "m-lora",
        {"model": "m-lora"},
    )


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_a_limit_is_sent_by_one_name(limit: str) -> None:
    """Servers refuse both names beside each other."""
    prompt = Prompt.model_validate({"id": "p", "cohort": "c", "prompt": "x", limit: 7})
    body, made = asked(prompt, server.chat(["a"]))
    assert {key: body[key] for key in body if key.startswith("max_")} == {limit: 7}
    assert made.max_tokens == 7


CALLED = [
    {"index": 0, "id": "c1", "type": "function", "function": {"name": "where", "arguments": ""}},
    {"index": 0, "function": {"arguments": '{"city": '}},
    {"index": 0, "function": {"arguments": '"Paris"}'}},
]


def test_reasoning_and_calls_are_recorded() -> None:
    """Reasoning is no text, its tokens are counted, and the first output token comes after it."""
    steps = [
        server.event(server.delta({"reasoning_content": "Hm."})),
        *(server.event(server.delta({"tool_calls": [one]}), 0.02) for one in CALLED),
        server.event(server.delta({}, "tool_calls")),
        server.event(
            server.delta(
                None,
                usage={
                    "prompt_tokens": 7,
                    "completion_tokens": 9,
                    "completion_tokens_details": {"reasoning_tokens": 2},
                },
            )
        ),
        server.event("[DONE]"),
    ]
    _, made = asked(Prompt(id="p", cohort="c", prompt="x"), server.events(steps))
    assert json.loads(made.content.output_messages or "") == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Hm."},
                {"type": "tool_call", "id": "c1", "name": "where", "arguments": {"city": "Paris"}},
            ],
            "finish_reason": "tool_calls",
        }
    ]
    assert (made.output_tokens, made.reasoning_tokens) == (9, 2)
    assert made.ttfo_s >= made.ttft_s + 0.02


@pytest.mark.parametrize("document", [{}, {"choices": []}])
def test_a_200_that_says_nothing_is_a_failure(document: dict[str, Any]) -> None:
    """It has a name, and is no empty answer."""
    reply = server.events([server.event(document), server.event("[DONE]")])
    _, made = asked(Prompt(id="p", cohort="c", prompt="x"), reply)
    assert (made.error_type, made.content and made.content.output_messages) == (
        "empty_answer",
        None,
    )
