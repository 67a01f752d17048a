"""What is known of a request before it is sent on, and which arm is to answer it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from collector.contract import Arm


class Mode(StrEnum):
    """How a rollout's traffic is shared between its arms."""

    BASELINE = "baseline"
    """All of it goes to the baseline."""
    MIRROR = "mirror"
    """The baseline answers; a part is also sent to the candidate, off the user's path."""
    SPLIT = "split"
    """The candidate answers a part."""
    CANDIDATE = "candidate"
    """The candidate answers all that is eligible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """What rules may ask of one request; each field that it does not say is `None`."""

    path: str
    """Below the upstream's base, such as `/chat/completions`."""
    model: str | None = None
    stream: bool = False
    max_tokens: int | None = None
    input_characters: int | None = None
    """Of all text parts together: the router has no tokenizer."""
    temperature: float | None = None
    tools: bool = False
    json_mode: bool = False
    code: bool = False
    """Whether its last messages show source code."""
    passages: bool = False
    """Whether its last messages hold passages to answer from."""
    user: str | None = None
    """Whom the body says that it is asked for."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    concurrency: int = 0
    """Requests that the router has in flight, this one left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Where one request goes, and why."""

    rollout: str
    arm: Arm
    """The arm whose answer the user gets."""
    mirrored: bool = False
    """Whether the candidate is asked too, its answer recorded and never returned."""
    cohort: str | None = None
    reason: str
    """In words, such as `rule 2: max_tokens below 32` or `split: 5 % of sessions`."""


class Control(Protocol):
    """Decides about requests at once, from state that is kept up to date in the background."""

    def decide(self, facts: RequestFacts) -> Decision:
        """Return where a request goes; never waits, never raises."""

    def candidate_allowed(self) -> bool:
        """Return whether the rollout's switch lets the candidate answer, now."""

    def state(self) -> Mapping[str, object]:
        """Return what `/router/state` says of it: JSON values, no secrets."""
