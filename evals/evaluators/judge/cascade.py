"""A cascade: the local model scores groundedness, and a judge where the local model is unsure."""

import hashlib
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import ClassVar, Final

from collector.contract import Generation, Score
from evals.evaluators.answers import answer_text
from evals.evaluators.base import Need, scored, unscored
from evals.evaluators.groundedness import Groundedness
from evals.evaluators.judge.evaluators import JudgedGroundedness
from evals.evaluators.judge.settings import Cascade, JudgeSettings, cascade, from_environment

UNSURE: Final = "unsure: judge says "
AGREES, DISAGREES = "audit: judge agrees", "audit: judge disagrees"
_DECISION_VALUE = 0.5


class JudgeCascade:
    """Groundedness by `Groundedness`, and by a judge where its score is within a band.

    The judge's verdict is 1 (no claim is unsupported) or 0, the ends of the local scale. A share of
    the other answers is shown to the judge too, as an audit of the band; they get its verdict. In a
    pair both answers are shown to it or neither, so no pair mixes the two. Labels say which it was.
    """

    name = "judge-cascade"
    metric = "groundedness"
    needs: ClassVar[AbstractSet[Need]] = frozenset({Need.CONTEXT})

    def __init__(self, settings: JudgeSettings | None = None, terms: Cascade | None = None) -> None:
        """Use the environment's judge and band by default."""
        self._terms = terms or cascade()
        self._local = Groundedness()
        self._judge = JudgedGroundedness(settings or from_environment())

    @property
    def version(self) -> str:
        """The versions of both, and the band."""
        terms = f"{self._terms.low:g}-{self._terms.high:g}-{self._terms.audited:g}"
        return f"1+{self._local.version}+{terms}+{self._judge.version}"

    @property
    def version_beside(self) -> str:
        """Version of scores by `score_beside`."""
        return f"{self.version}+pair"

    def close(self) -> None:
        """Close the judge's connections."""
        self._local.close()
        self._judge.close()

    def score(self, generation: Generation) -> Score | None:
        """Score the answer by itself."""
        return self._settled(generation, self._local.score(generation), None)

    def score_beside(self, generation: Generation, other: Generation) -> Score | None:
        """Score the answer; the judge is asked if either answer of the pair is unsure."""
        ours = self._local.score_beside(generation, other)
        theirs = self._local.score_beside(other, generation)
        found = self._settled(generation, ours, theirs, other)
        return None if found is None else replace(found, version=self.version_beside)

    def _settled(
        self,
        generation: Generation,
        local: Score | None,
        other: Score | None,
        paired: Generation | None = None,
    ) -> Score | None:
        if local is None:
            return None
        values = [s.value for s in (local, other) if s is not None and s.value is not None]
        is_unsure = any(self._terms.low <= value <= self._terms.high for value in values)
        is_asked = is_unsure or self._is_audited(generation, paired)
        if local.value is None or not is_asked:
            return replace(local, evaluator=self.name, version=self.version)
        judged = self._judge.score(generation)
        if judged is None or judged.value is None:
            reason = judged and judged.unscored_reason
            return unscored(self, generation, reason or "the judge did not answer")
        return self._by_judge(generation, local.value, judged, is_unsure=is_unsure)

    def _by_judge(
        self, generation: Generation, local: float, judged: Score, *, is_unsure: bool
    ) -> Score:
        verdict = judged.label == "supported"
        agrees = verdict == (local >= _DECISION_VALUE)
        audit = AGREES if agrees else DISAGREES
        return scored(
            self,
            generation,
            float(verdict),
            label=f"{UNSURE}{judged.label}" if is_unsure else audit,
            explanation="; ".join(filter(None, (f"local {local:.2f}", judged.explanation))),
            spans=judged.spans,
            cost_usd=judged.cost_usd,
        )

    def _is_audited(self, generation: Generation, other: Generation | None) -> bool:
        """Return whether the answer, or the pair, is in the audited share, by its text alone."""
        both = [answer_text(one) or "" for one in (generation, other) if one is not None]
        digest = hashlib.blake2b("\0".join(sorted(both)).encode(errors="replace"), digest_size=8)
        return int.from_bytes(digest.digest()) < self._terms.audited * 2**64
