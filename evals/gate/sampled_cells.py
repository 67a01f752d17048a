"""The cell of a lossless policy for sampled answers: do they follow the baseline's law."""

from collections.abc import Mapping
from itertools import starmap

import numpy as np

from collector.contract import Arm, Finding, Outcome, Reason
from collector.nouns import counted
from evals.evidence.columns import BoolColumn, Evidence, SampledTokens, Side
from evals.gate.lossless_finding import LosslessComparison, lossless_finding, lost_pairs
from evals.lossless.sampled_answers import AuditedAnswer, AuditResult, AuditTally
from evals.lossless.sampled_judgement import CUT_LEVEL, SampledJudgement, e_value, judge
from evals.lossless.sampling_audit import ALARM, METHOD
from evals.policy import Policy

METRIC, STAT = "sampled_tokens", "e_value"


def sampled_findings(evidence: Evidence, policy: Policy) -> tuple[Finding, ...]:
    """Return the finding on sampled answers; none if the policy, or the rollout, asks for none.

    At declared looks each look has an equal share of the levels: the alarm's e-value is so many
    times as high, because an answer's place in the audit differs from look to look.
    """
    rows = is_sampled(evidence)
    if policy.lossless is None or not rows.any():
        return ()
    looks = 1 if evidence.looks is None else evidence.looks.count
    audited = None if evidence.sampled is None else _audits(evidence.sampled, looks * ALARM)
    judged = (
        _not_rescored(int(rows.sum())) if audited is None else judge(*audited, CUT_LEVEL / looks)
    )
    candidate = None if audited is None else audited[0]
    barred = lost_pairs(evidence, rows, policy)
    if barred is not None and judged.outcome is Outcome.PASS:
        words = f"{judged.words.removesuffix(': pass')}, {barred.words}: inconclusive"
        judged = SampledJudgement(Outcome.INCONCLUSIVE, barred.reason, words)
    return (_finding(candidate, judged, looks * ALARM),)


def is_sampled(evidence: Evidence) -> BoolColumn:
    """Return the pairs of which either side records a temperature above 0."""
    return sampled(evidence.baseline) | sampled(evidence.candidate)


def _audits(seen: Mapping[Arm, SampledTokens], alarm: float) -> tuple[AuditResult, AuditResult]:
    """Return the audits of the candidate's and of the baseline's sampled answers."""
    found = []
    for arm in (Arm.CANDIDATE, Arm.BASELINE):
        tally = AuditTally(alarm)
        for answer in starmap(_answer, zip(*seen[arm], strict=True)):
            tally.add(answer)
        found.append(tally.audited())
    return found[0], found[1]


def _answer(  # noqa: PLR0913, PLR0917  # one parameter a column
    tokens: int,
    uncertain: float,
    log_e: float,
    left_out: str | None,
    seeded_tokens: int,
    seeded_log_e: float,
    drafted_tokens: int,
    unseeded: str | None,
) -> AuditedAnswer:
    """Return one entry of `SampledTokens`, whose parameters are in the order of its columns."""
    if tokens < 0:
        return AuditedAnswer(left_out=left_out)
    is_seeded = seeded_tokens >= 0
    return AuditedAnswer(
        int(tokens),
        float(uncertain),
        float(log_e),
        seeded_tokens=int(seeded_tokens) if is_seeded else None,
        seeded_log_e=float(seeded_log_e) if is_seeded else None,
        drafted_tokens=int(drafted_tokens) if drafted_tokens >= 0 else None,
        unseeded=unseeded,
    )


def sampled(side: Side) -> BoolColumn:
    """Return which of an arm's answers record a temperature above 0."""
    values = side.recorded.get("temperature")
    if values is None:
        return np.zeros(len(side.present), dtype=np.bool_)
    return np.array([value is not None and value > 0 for value in values], dtype=np.bool_)


def _not_rescored(count: int) -> SampledJudgement:
    words = (
        f"nobody audited the tokens of {counted(count, 'sampled pair')}: `--rescore MODEL` runs "
        "the baseline's model over them: inconclusive"
    )
    return SampledJudgement(Outcome.INCONCLUSIVE, Reason.MISSING, words)


def _finding(audited: AuditResult | None, judged: SampledJudgement, alarm: float) -> Finding:
    e = None if audited is None or not audited.answers else e_value(audited)
    # Of an e-value there are no limits; the message has it.
    return lossless_finding(
        LosslessComparison(METRIC, STAT, alarm, 1 / alarm, METHOD),
        judged.outcome,
        judged.reason,
        f"sampled answers, pooled: {judged.words}",
        n=0 if audited is None else audited.answers,
        needed=_answers_needed(audited, judged),
        p_fail=None if e is None else min(1.0, 1 / e),
    )


def _answers_needed(audited: AuditResult | None, judged: SampledJudgement) -> int | None:
    """Estimate the answers that hold the missing tokens; `None` if no answer was audited."""
    if audited is None or judged.tokens_needed is None or not audited.law.tokens:
        return None
    return -(-judged.tokens_needed * audited.answers // audited.law.tokens)
