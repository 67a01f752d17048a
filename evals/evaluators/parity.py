"""Compare the candidate's answer with the baseline's, character by character."""

from collections.abc import Set as AbstractSet
from typing import ClassVar

from collector.contract import Generation, Score, ScoredSpan
from evals.evaluators.answers import NOT_RECORDED, answer_text
from evals.evaluators.base import Need, scored, unscored
from evals.evaluators.conversation import recorded_calls

_SHOWN = 30


class Parity:
    """1 if the candidate's answer equals the baseline's in every character, else 0.

    Applies to pairs in which both requests were greedy (temperature 0) and no arm's own earlier
    answers make the prompts differ: only then does lossless speculation promise the same text.
    Tool calls are compared as well. The span covers the text after the first divergence; the
    explanation counts the equal words before it.
    """

    name = "parity"
    version = "2"
    metric = "parity"
    needs: ClassVar[AbstractSet[Need]] = frozenset({Need.BASELINE})

    def score_pair(self, candidate: Generation, baseline: Generation) -> Score | None:
        """Compare the texts; if they are equal, compare the tool calls."""
        if candidate.temperature != 0 or baseline.temperature != 0:
            return None
        if candidate.own_history or baseline.own_history:
            return None
        got, wanted = answer_text(candidate), answer_text(baseline)
        if got is None or wanted is None:
            lost = NOT_RECORDED if got is None else "the baseline's text was not recorded"
            return unscored(self, candidate, lost)
        if got == wanted:
            return self._compare_tool_calls(candidate, baseline)
        at = first_divergence(got, wanted)
        same_words = len(got[:at].split())
        return scored(
            self,
            candidate,
            0.0,
            label="diverged",
            explanation=(
                f"at character {at}, after {same_words} words: "
                f"{got[at : at + _SHOWN]!r} against {wanted[at : at + _SHOWN]!r}"
            ),
            spans=[ScoredSpan(start=at, end=len(got), support=0.0)],
        )

    def close(self) -> None:
        """Release nothing."""

    def _compare_tool_calls(self, candidate: Generation, baseline: Generation) -> Score:
        got, wanted = (recorded_calls(one) for one in (candidate, baseline))
        if got == wanted:
            return scored(self, candidate, 1.0, label="identical")
        explanation = f"{len(got)} tool calls against {len(wanted)}, or other arguments"
        return scored(self, candidate, 0.0, label="diverged", explanation=explanation)


def first_divergence(got: str, wanted: str) -> int:
    """Return the index of the first character that differs, or the shorter text's length."""
    pairs = enumerate(zip(got, wanted, strict=False))
    return next((at for at, (g, w) in pairs if g != w), min(len(got), len(wanted)))
