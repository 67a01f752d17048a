"""What a correct answer is, as the workload wrote it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
