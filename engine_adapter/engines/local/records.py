"""What a step and a generation were: exact, and for each text on its own."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from engine_adapter.engines.acceptance_counts import VerifyStep
from engine_adapter.engines.local.step_clock import StepMarks


class Laws(NamedTuple):
    """The distributions of one text's step, as they were used."""

    p: Tensor
    """(proposed + 1, vocabulary): the target's, at each draft token and behind the last; of a tree
    (accepted + 1, vocabulary), along the path that was kept."""
    q: Tensor | None
    """(proposed, vocabulary): what each draft token was drawn from; `None`: each was certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStep:
    """What one step did to one text that still grew."""

    text: int
    draft_ids: tuple[int, ...]
    accepted: int
    """Leading draft tokens that the text kept; of a tree, those of one path."""
    token_ids: tuple[int, ...]
    """What it grew by."""
    levels: int | None = None
    """How deep the draft was, if it was a tree."""
    laws: Laws | None = None
    """Where asked for, and not greedy."""

    @property
    def verify_step(self) -> VerifyStep:
        """Its counts."""
        return VerifyStep(len(self.draft_ids), self.accepted, self.levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStep:
    """One step of a batch: a draft, and one forward pass of the target that verified it."""

    k: int
    """Draft tokens asked for."""
    at_s: float
    """Reading of `time.perf_counter` when its tokens were known."""
    marks: StepMarks
    texts: tuple[TextStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """One text's answer."""

    token_ids: tuple[int, ...]
    finish_reason: str
    """`stop` or `length`."""
    steps: tuple[TextStep, ...]
    begun_s: float
    """Reading of `time.perf_counter` before its prompt was read."""
    token_times_s: tuple[float, ...]
    """Of each step."""

    @property
    def ttft_s(self) -> float:
        """Time to the first token, the prompt's reading included."""
        return self.token_times_s[0] - self.begun_s

    @property
    def tpot_s(self) -> float | None:
        """(last step − first) / (tokens − 1); `None` below two tokens or steps."""
        if len(self.token_times_s) < 2:
            return None
        return (self.token_times_s[-1] - self.token_times_s[0]) / (len(self.token_ids) - 1)


class Memory(NamedTuple):
    """Bytes held on the device."""

    weight_bytes: int
    draft_weight_bytes: int
    cache_bytes: int
    draft_cache_bytes: int
