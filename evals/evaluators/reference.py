"""References: the kinds of correct answer that a workload can specify."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

JsonObject = Mapping[str, Any]  # Any: JSON values
TextMatch = Literal["exact", "contains", "f1"]


class UnusableReferenceError(ValueError):
    """A reference whose kind is unknown, or whose keys do not fit its kind."""


@dataclass(frozen=True, slots=True)
class ExactText:
    """The answer is this text; white space does not matter."""

    text: str


@dataclass(frozen=True, slots=True)
class JsonValue:
    """The answer is this JSON value."""

    value: object


@dataclass(frozen=True, slots=True)
class JsonParts:
    """The answer is JSON that satisfies a schema and has these values at these places."""

    schema: JsonObject | None
    required: JsonObject
    """Values by JSON Pointer (RFC 6901)."""


@dataclass(frozen=True, slots=True)
class CodeTests:
    """The answer completes `prelude` to a program that passes these asserts."""

    entry_point: str
    prelude: str
    tests: str


@dataclass(frozen=True, slots=True)
class StdioCases:
    """The answer is a script that turns each case's standard input into its standard output."""

    cases: tuple[tuple[str, str], ...]
    """Pairs of standard input and expected standard output."""


@dataclass(frozen=True, slots=True)
class QaAnswers:
    """The answer gives one of these, compared as SQuAD's evaluation does."""

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
    """An expected tool call, with the accepted values of each argument."""

    name: str
    arguments: Mapping[str, Sequence[object]]
    optional: frozenset[str]


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """The answer makes exactly these calls, in any order; without `calls`, it makes no call."""

    calls: tuple[WantedCall, ...]
    tools: tuple[JsonObject, ...]
    """JSON Schemas of the tools, for the arguments' types; if empty, types are not checked."""
    any_call: bool = False
    """The answer must make a call, whichever; `calls` is then empty."""


@dataclass(frozen=True, slots=True)
class Actions:
    """The state-changing tool calls of the conversation are these, or contain this sequence."""

    calls: tuple[tuple[str, JsonObject], ...]
    state_changing: frozenset[str] | None
    """Tools whose calls count; `None`: the tools of `calls`."""
    sequence: bool
    """The calls must occur in this order; other calls may come between them."""


@dataclass(frozen=True, slots=True)
class EndState:
    """The tool's last result in the conversation is this JSON value."""

    tool: str
    value: object


@dataclass(frozen=True, slots=True)
class Rubric:
    """A judge finds that the answer meets these criteria."""

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
