"""What sampled answers come to: the candidate's audit beside the baseline's own."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from collector.contract import Arm
from evals import policy
from evals.evidence.columns import SampledTokens
from evals.gate.lossless_cells import lossless_findings
from evals.gate.sampled_cells import sampled_findings
from evals.lossless.sampled_answers import CUT, GREEDY, SAME_SEED, Alarm, AuditResult
from evals.lossless.sampled_judgement import judge

RULES = """
version: 1
name: lossless
lossless: {greedy: {max_tie_gap: auto}, sampled: {tolerance: 0.005}}
prove: [{metric: failures, stat: diff, max: 0.10, scope: pooled}]
"""
NO_TEXT = "without the texts"
GIVEN, FEW = Alarm(500, 300), Alarm(99, 299)
MISSED = Alarm(500, 300, 30.0, 100)


def seen(
    answers: int = 200,
    left_out: Mapping[str, int] | None = None,
    *,
    alarm_at: int | None = None,
    seeded: Alarm | None = None,
    uncertain: float = 0.25,
    drafted: int = 0,
    unseeded: Mapping[str, int] | None = None,
) -> AuditResult:
    """Return an audit of answers of 25 tokens each, of which such a share is uncertain."""
    log_e = 0.5 if alarm_at is None else 30.0
    law = Alarm(25 * answers, 25 * answers * uncertain, log_e, alarm_at)
    return AuditResult(answers, law, left_out or {}, seeded or Alarm(), drafted, unseeded or {})


@pytest.mark.parametrize(
    ("candidate", "baseline", "outcome", "words"),
    [
        (seen(), seen(), "pass", "quiet over 5,000 tokens of 200 answers"),
        (seen(alarm_at=100), seen(), "fail", "ALARM over 5,000 tokens"),
        (seen(143, {CUT: 57}, alarm_at=100), seen(), "fail", "ALARM over 3,575 tokens"),
        (seen(143, {CUT: 57}), seen(), "fail", "57 of 200 answers are cut into other tokens"),
        (seen(180, {CUT: 20}), seen(182, {CUT: 18}), "pass", "quiet over 4,500 tokens of 180"),
        (seen(180, {CUT: 20}), seen(190, {CUT: 9}), "inconclusive", "the others are a choice"),
        (seen(180, {CUT: 20}), None, "inconclusive", "20 of 200 answers are cut into other"),
        (seen(180, {CUT: 181}), seen(180, {CUT: 181}), "inconclusive", "the others are a choice"),
        (seen(alarm_at=100), seen(alarm_at=900), "inconclusive", "the baseline's own alarm, too"),
        (seen(), seen(alarm_at=900), "inconclusive", "the baseline's own alarm, too"),
        (seen(alarm_at=100), seen(3), "inconclusive", "25 too few to tell a fault from another"),
        (seen(alarm_at=100), None, "fail", "ALARM"),
        (seen(100), seen(), "inconclusive", "1,500 more tokens"),
        (seen(uncertain=0.001), seen(), "inconclusive", "; 5 are expected not to be the likeliest"),
        (seen(uncertain=0.001), seen(), "inconclusive", "of 1,000 needed: 995,000 more tokens"),
        (seen(uncertain=0), seen(), "inconclusive", "0 are expected not to be the likeliest, of 1"),
        (seen(), seen(), "pass", "without `--rescore-draft` it does not see wrong acceptance"),
        (seen(drafted=5_000), seen(), "pass", "an alarm at 100): pass"),
        (
            seen(9, unseeded={"of K": 9}),
            seen(),
            "inconclusive",
            "; 9 answers of K are not judged by",
        ),
        (seen(), seen(unseeded={"of K": 9}), "pass", "; 9 answers of the baseline of K are not"),
        (seen(200, {NO_TEXT: 1}), seen(), "inconclusive", "1 without the texts could not be"),
        (seen(200, {SAME_SEED: 90, "failed": 2}), seen(), "pass", "quiet"),
        (seen(198, {CUT: 2}), seen(), "pass", "quiet"),
        (seen(0), seen(0), "inconclusive", "0 are expected not to be the likeliest"),
        (seen(20, seeded=GIVEN), seen(20, seeded=GIVEN), "pass", "500 are those that the seeds"),
        (seen(20, seeded=GIVEN), seen(20), "inconclusive", "3,500 more tokens"),
        (seen(20, seeded=FEW), seen(20, seeded=GIVEN), "inconclusive", "3,500 more tokens"),
        (seen(20, seeded=MISSED), seen(20, seeded=GIVEN), "fail", "ALARM over 500 tokens, which"),
        (
            seen(seeded=MISSED),
            seen(seeded=FEW),
            "pass",
            "; 500 tokens are not those that the seeds",
        ),
        (seen(20, seeded=MISSED), seen(20, seeded=MISSED), "inconclusive", "3,500 more tokens"),
        (seen(seeded=MISSED), seen(seeded=MISSED), "pass", "quiet over 5,000 tokens of 200"),
        (
            seen(seeded=GIVEN),
            seen(seeded=MISSED),
            "pass",
            "; 500 tokens of the baseline are not those",
        ),
        (
            seen(),
            seen(seeded=MISSED),
            "pass",
            "names another seed, dtype or k), so seeds do not judge",
        ),
        (seen(seeded=MISSED), None, "pass", "quiet"),
        (seen(seeded=MISSED), seen(alarm_at=900, seeded=GIVEN), "fail", "ALARM over 500 tokens"),
    ],
)
def test_an_alarm_is_the_candidates_where_the_baseline_is_quiet(
    candidate: AuditResult, baseline: AuditResult | None, outcome: str, words: str
) -> None:
    """Many answers that cannot be cut never mute it; too little, or a choice, decides nothing."""
    found = judge(candidate, baseline)
    assert found.outcome == outcome, found.words
    assert words in found.words


def pairs(evidence_of: Any, side: Any, sampled: int, greedy: int, log_e: float | None) -> Any:
    """Return pairs of which the first were sampled; audited where an e-value is given."""
    made = evidence_of(
        [
            {
                "prompt_id": f"{i:03}",
                "baseline": side() | {"temperature": float(i < sampled)},
                "candidate": side() | {"temperature": float(i < sampled)},
            }
            for i in range(sampled + greedy)
        ]
    )
    if log_e is None:
        return made
    is_sampled = np.arange(sampled + greedy) < sampled
    unknown = np.full(sampled + greedy, -1)

    def audited(log_e: float) -> SampledTokens:
        return SampledTokens(
            tokens=np.where(is_sampled, 50, -1),
            uncertain=np.where(is_sampled, 12.5, np.nan),
            log_e=np.where(is_sampled, log_e, np.nan),
            left_out=np.where(is_sampled, None, GREEDY),
            seeded_tokens=unknown,
            seeded_log_e=np.full(sampled + greedy, np.nan),
            drafted_tokens=unknown,
            unseeded=np.full(sampled + greedy, None),
        )

    return replace(made, sampled={Arm.BASELINE: audited(0.1), Arm.CANDIDATE: audited(log_e)})


@pytest.mark.parametrize(
    ("sampled", "log_e", "outcome", "reason", "words"),
    [
        (40, None, "inconclusive", "missing", "nobody audited the tokens of 40 sampled pairs"),
        (40, 20.0, "fail", None, "ALARM over 2,000 tokens of 40 answers"),
        (40, 0.0, "inconclusive", "n", "2,000 more tokens"),
        (90, 0.0, "pass", None, "quiet over 4,500 tokens of 90 answers"),
    ],
)
def test_a_policy_that_asks_for_losslessness_judges_sampled_answers(
    evidence_of: Any,
    side: Any,
    sampled: int,
    log_e: float | None,
    outcome: str,
    reason: str | None,
    words: str,
) -> None:
    """Nobody passes, or fails, for want of an audit; lacking tokens are told as pairs."""
    given = pairs(evidence_of, side, sampled, 5, log_e)
    (found,) = sampled_findings(given, policy.parse(RULES, "p.yaml"))
    assert (found.outcome, found.reason, found.role) == (outcome, reason, "prove")
    assert words in found.message
    assert found.n_needed == (40 if reason == "n" else None)


def test_only_what_the_rollout_holds_is_judged(evidence_of: Any, side: Any) -> None:
    """All greedy: no word of samples. All sampled: none of greedy answers. No section: nothing."""
    rules = policy.parse(RULES, "p.yaml")
    assert sampled_findings(pairs(evidence_of, side, 0, 40, None), rules) == ()
    every = pairs(evidence_of, side, 40, 0, None)
    assert lossless_findings(every, None, rules) == ()
    assert sampled_findings(every, policy.shipped("default")) == ()


def test_the_warmup_that_is_dropped_takes_its_answers_with_it(evidence_of: Any, side: Any) -> None:
    """Columns of the audit follow their pairs."""
    whole = pairs(evidence_of, side, 40, 0, 20.0)
    half = whole.take(np.arange(40) < 10)
    (found,) = sampled_findings(half, policy.parse(RULES, "p.yaml"))
    assert found.n == 10
