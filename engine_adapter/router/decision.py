"""The facts of a request that rules test, and the decision which arm answers it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from collector.contract import Arm


class Mode(StrEnum):
    """How traffic is divided between a rollout's arms."""

    BASELINE = "baseline"
    """All of it goes to the baseline."""
    MIRROR = "mirror"
    """The baseline answers; a share is also sent to the candidate, off the user's path."""
    SPLIT = "split"
    """The candidate answers a share."""
    CANDIDATE = "candidate"
    """The candidate answers all eligible requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """The facts of one request that rules test; a field that the request omits is `None`."""

    path: str
    """Below the upstream's base, such as `/chat/completions`."""
    model: str | None = None
    stream: bool = False
    max_tokens: int | None = None
    input_characters: int | None = None
    """Total of all text parts; characters, as the router has no tokenizer."""
    temperature: float | None = None
    tools: bool = False
    json_mode: bool = False
    code: bool = False
    """Whether its last messages show source code."""
    passages: bool = False
    """Whether its last messages hold passages to answer from."""
    user: str | None = None
    """The end user named in the body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    concurrency: int = 0
    """Requests in flight at the router, excluding this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Where one request goes, and why."""

    rollout: str
    arm: Arm
    """The arm whose answer the user gets."""
    mirrored: bool = False
    """Whether the request is also sent to the candidate, whose answer is recorded, not returned."""
    cohort: str | None = None
    session: str | None = None
    """Hash of the session key, the same for all of the session's requests; `None` without one."""
    reason: str
    """Such as `rule 2: max_tokens below 32` or `split: 5 %`."""


class Control(Protocol):
    """Decides where requests go, without waiting, from state updated in the background."""

    def decide(self, facts: RequestFacts) -> Decision:
        """Return where a request goes; never waits, never raises."""

    def candidate_allowed(self) -> bool:
        """Return whether the mode and the rollout's switch now allow the candidate."""

    def counted(self, characters: int | None, tokens: int | None) -> None:
        """Note the input tokens that an engine counted for a request; never raises."""

    def state(self) -> Mapping[str, object]:
        """Return the `control` part of `/router/state`: JSON values, no secrets."""
