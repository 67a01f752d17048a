"""The sums by prompt of which every forecast is a function, and their bootstrap."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from evals.evidence import FloatColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums of pairs; the first axis, where there is one, is the prompt.

    The next axis is the draft length less 1, and that of `accepted_per_pos` after it the position.
    """

    steps: FloatColumn
    decode_steps: FloatColumn
    """Steps that fell between the first token and the last."""
    decode_s: FloatColumn
    """The candidate's seconds between the first token and the last."""
    accepted_per_pos: FloatColumn
    baseline_decode_s: FloatColumn
    """Of the same pairs, by the candidate's k: what that k was measured against."""
    baseline_decode_tokens: FloatColumn

    @property
    def baseline_step_s(self) -> FloatColumn:
        """The baseline's seconds a token after the first, beside each k; NaN where none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.baseline_decode_s / self.baseline_decode_tokens)

    @property
    def step_s(self) -> FloatColumn:
        """The candidate's seconds a step at each k; NaN where none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.decode_s / self.decode_steps)

    def total(self) -> "Sums":
        """Return the sums over all prompts."""
        return Sums(**{f.name: getattr(self, f.name).sum(axis=0) for f in fields(self)})

    def resampled(self, draws: int, seed: int) -> Iterator["Sums"]:
        """Yield the total of each bootstrap sample of prompts."""
        generator, n = np.random.default_rng(seed), len(self.steps)
        columns = {f.name: getattr(self, f.name) for f in fields(self)}
        for _ in range(draws):
            times = np.bincount(generator.integers(n, size=n), minlength=n).astype(np.float64)
            yield Sums(**{k: np.tensordot(times, v, axes=1) for k, v in columns.items()})
