"""Request parameters that a server refuses, as `check` finds them by trial requests."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from engine_adapter.engines import Answer, Engine, EngineInfo, Probe, Request
from engine_adapter.engines.answer import SpeculationSetup
from engine_adapter.engines.base import Item
from engine_adapter.errors import GenerationError
from engine_adapter.preflight.refusals import refusals
from engine_adapter.run.requests import request_of
from engine_adapter.run.rollout_file import Sampling
from engine_adapter.workload import Prompt


class Refusing(Engine):
    """An engine that refuses requests with any of some members, or with all of a set."""

    def __init__(
        self,
        *members: str,
        together: frozenset[str] = frozenset(),
        kind: str = "invalid_request",
        failing: int = 0,
    ) -> None:
        self.kind = kind
        self.failing = failing
        """Requests that fail by chance, from the first one on."""
        self.bodies: list[dict[str, Any]] = []
        self._members = members
        self._together = together

    @property
    def info(self) -> EngineInfo:
        return EngineInfo(provider="p", model="m", version="1", fingerprint="f")

    async def probe(self) -> Probe:
        return Probe(setup=SpeculationSetup(on=True))

    async def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        body = self.request_body(request)
        self.bodies.append(body)
        refused = any(name in body for name in self._members)
        if refused or (self._together and body.keys() >= self._together):
            raise GenerationError(self.kind, "not with speculation")
        if len(self.bodies) <= self.failing:
            raise GenerationError("server_error", "busy", status=500)
        yield Answer(text="a", finish_reason="stop")

    async def close(self) -> None:
        """Do nothing."""


def found(engine: Refusing, *own: dict[str, Any], **common: Any) -> list[tuple[str, ...]]:
    """Return the names that are refused of prompts with these parameters."""
    prompts = [Prompt(id=str(n), cohort="c", prompt="x", **one) for n, one in enumerate(own)]
    requests = [request_of(prompt, Sampling(**common), 0) for prompt in prompts]
    return [one.names for one in asyncio.run(refusals(engine, requests))]


def test_each_refused_parameter_is_named() -> None:
    """Of a request that is refused, those that are refused by themselves; the others are fine."""
    engine = Refusing("min_p", "logit_bias")
    asked = {"min_p": 0.1, "logit_bias": {"7": 1.0}, "stop": ["x"], "max_tokens": 200}
    assert found(engine, asked) == [("logit_bias",), ("min_p",)]


def test_one_request_of_each_kind_is_asked() -> None:
    """A workload of thousands costs a handful of requests of a few tokens."""
    engine = Refusing()
    assert found(engine, *[{"stop": ["x"]}] * 50, *[{"n": 2}] * 50, max_tokens=500) == []
    assert [body["max_tokens"] for body in engine.bodies] == [4, 4]


def test_parameters_that_are_refused_together_are_named_together() -> None:
    """Each is taken by itself."""
    both = frozenset({"tools", "response_format"})
    tool = {"type": "function", "function": {"name": "f"}}
    asked = {"tools": [tool], "response_format": {"type": "json_object"}}
    assert found(Refusing(together=both), asked) == [("response_format", "tools")]


def test_a_parameter_is_asked_with_what_it_needs() -> None:
    """A choice of tools without tools would be refused by any server."""
    engine = Refusing("parallel_tool_calls")
    tool = {"type": "function", "function": {"name": "f"}}
    asked = {"tools": [tool], "tool_choice": "auto", "parallel_tool_calls": False}
    assert found(engine, asked) == [("parallel_tool_calls",)]
    alone = [body for body in engine.bodies if "parallel_tool_calls" not in body]
    assert all("tools" in body for body in alone if "tool_choice" in body)


@pytest.mark.parametrize("where", ["own", "common"])
def test_the_files_parameters_count_as_the_records(where: str) -> None:
    """Both are sent."""
    given = {"min_p": 0.1}
    engine = Refusing("min_p")
    names = found(engine, given) if where == "own" else found(engine, {}, **given)
    assert names == [("min_p",)]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("invalid_request", [("min_p",)]),
        ("server_error_in_stream", [("min_p",)]),  # as vLLM says it
        ("rate_limited", []),
        ("connection_refused", []),
    ],
)
def test_a_failure_of_the_server_is_no_refusal(kind: str, names: list[tuple[str, ...]]) -> None:
    """A server that is busy, or away, does not say what it takes."""
    assert found(Refusing("min_p", kind=kind), {"min_p": 0.1}) == names


def test_a_request_that_fails_once_is_asked_again() -> None:
    """What fails by chance is no refusal."""
    assert found(Refusing(failing=1), {"min_p": 0.1}) == []
