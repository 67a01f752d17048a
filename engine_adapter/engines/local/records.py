"""Records of steps and generations, per text."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from engine_adapter.engines.acceptance_counts import VerifyStep
from engine_adapter.engines.local.step_clock import StepMarks


class Distributions(NamedTuple):
    """The distributions used in one step of one text."""

    p: Tensor
    """The target's: (proposed + 1, vocabulary), at each draft token and after the last; for a tree
    (accepted + 1, vocabulary), along the accepted path."""
    q: Tensor | None
    """(proposed, vocabulary): those that draft tokens were drawn from; `None` if deterministic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStep:
    """The result of one step for one unfinished text."""

    text: int
    """Index in the batch."""
    draft_ids: tuple[int, ...]
    accepted: int
    """Leading draft tokens that the text kept; for a tree, those on the accepted path."""
    token_ids: tuple[int, ...]
    """The tokens appended to the text."""
    levels: int | None = None
    """The draft's depth if it was a tree, else `None`."""
    distributions: Distributions | None = None
    """Only if requested and not greedy."""

    @property
    def verify_step(self) -> VerifyStep:
        """The step's counts."""
        return VerifyStep(len(self.draft_ids), self.accepted, self.levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStep:
    """One step of a batch: a draft, and one forward pass of the target that verified it."""

    k: int
    """Draft tokens requested per text."""
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
    """Reading of `time.perf_counter` before the prefill."""
    token_times_s: tuple[float, ...]
    """The time of each step, by `time.perf_counter`."""

    @property
    def ttft_s(self) -> float:
        """Time to the first token, including the prefill."""
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
