"""Judge the audits of both arms' sampled answers."""

import math
from typing import NamedTuple

from scipy.stats import fisher_exact

from collector.contract import Outcome, Reason
from evals.lossless.sampled_answers import CUT, FAILED, GREEDY, SAME_SEED, Alarm, AuditResult

ENOUGH = 1000.0
"""Minimum uncertain tokens for a pass. By then the audit with the draft model had detected four of
five planted faults in most runs (52 to 910; top-p .95 takes 2,000), without it two: see
docs/measurements.md, times 1 − the likeliest token's probability."""
ENOUGH_SEEDED = 300.0
"""Minimum uncertain tokens for a pass if both arms' tokens are those that the seeds give; by then
this audit had detected each planted fault in most runs (55 to 270; in `engine: local` acceptance
× 1.2 takes 305)."""
MOST_CUT = 0.05
"""Maximum share of answers cut into other tokens beyond the baseline's share; with more, the rest
is a biased selection."""
CUT_LEVEL = 0.01
"""Level of the test that the candidate has no more such answers than the baseline."""
_NAMED_WRONGLY = " (or the evidence names another seed, dtype or k)"
_EXPECTED = frozenset({CUT, GREEDY, FAILED, SAME_SEED})
"""Reasons for leaving an answer out that are judged elsewhere, or are harmless."""


class SampledJudgement(NamedTuple):
    """The judgement of an arm's sampled answers."""

    outcome: Outcome
    reason: Reason | None
    words: str
    tokens_needed: int | None = None
    """Tokens still missing, if more of them would decide."""


def judge(
    audited: AuditResult, control: AuditResult | None, cut_level: float = CUT_LEVEL
) -> SampledJudgement:
    """Judge an arm's sampled answers; `control` is the same audit of the baseline's answers.

    Fails if the e-value reaches the alarm, if tokens are not those that the seeds give, where the
    baseline's are, or if Fisher's exact test finds more answers cut into other tokens than the
    baseline has. An alarm counts only if the baseline's own answers are quiet over as many tokens;
    otherwise the model or sampler that ran is not the one that was rescored. Without `control` the
    arm is judged by itself. A correct sampler raises a false alarm with probability 1 over the
    alarm's e-value, 1 % by default, and fails the test of cuts with `cut_level`.
    """
    numbers = _numbers(audited)
    if audited.law.alarmed:
        return _judge_alarm(audited, control, numbers)
    if control is not None and _missed(audited.seeded, control.seeded):
        words = (
            f"{numbers}; ALARM over {audited.seeded.tokens:,} tokens, which are not those that the "
            f"seeds give{_NAMED_WRONGLY}, where {control.seeded.tokens:,} of the baseline's are: "
            "fail"
        )
        return SampledJudgement(Outcome.FAIL, None, words)
    if control is not None and (p := _p_cut(audited, control)) <= cut_level:
        words = f"{_cut(audited)}, of the baseline's {_cut(control)} (p = {p:.2g}): fail"
        return SampledJudgement(Outcome.FAIL, None, words)
    if control is not None and control.law.alarmed:
        return _control_alarmed(control, numbers)
    return _judge_quiet(audited, control, numbers)


def _missed(seeded: Alarm, control: Alarm) -> bool:
    """Return whether an arm's tokens are not the seeds', and the baseline's are over as many."""
    if seeded.tokens_to_alarm is None or control.alarmed:
        return False
    return control.tokens >= seeded.tokens_to_alarm


def _judge_quiet(
    audited: AuditResult, control: AuditResult | None, numbers: str
) -> SampledJudgement:
    """Judge a quiet arm: pass, unless too few answers or a biased selection could be audited."""
    if _is_choice(audited, control):
        words = f"{numbers}; {_cut(audited)}, and the others are a choice: inconclusive"
        return SampledJudgement(Outcome.INCONCLUSIVE, Reason.MISSING, words)
    if lacking := {why: n for why, n in audited.left_out.items() if why not in _EXPECTED}:
        named = ", ".join(f"{count:,} {why}" for why, count in sorted(lacking.items()))
        words = f"{numbers}; {named} could not be rescored: inconclusive"
        return SampledJudgement(Outcome.INCONCLUSIVE, Reason.MISSING, words)
    if control is not None and (seeded := _fewest_seeded(audited, control)) is not None:
        words = f"quiet over {numbers}, and {seeded:,} are those that the seeds give: pass"
        return SampledJudgement(Outcome.PASS, None, words)
    numbers = f"{numbers}{_unseeded(audited, control)}"
    if audited.law.uncertain < ENOUGH:
        return _too_certain(audited.law, numbers)
    return SampledJudgement(Outcome.PASS, None, f"quiet over {numbers}{_unseen(audited)}: pass")


def _is_choice(audited: AuditResult, control: AuditResult | None) -> bool:
    """Return whether the audited answers may differ from those cut into other tokens.

    Where the baseline has as large a share, texts cause it and not the arm.
    """
    share = audited.cut / max(audited.cut + audited.answers, 1)
    of_baseline = 0.0
    if control is not None:
        of_baseline = control.cut / max(control.cut + control.answers, 1)
    return share > MOST_CUT + of_baseline or audited.cut > audited.answers


def _too_certain(law: Alarm, numbers: str) -> SampledJudgement:
    """Return inconclusive, with the tokens that this model and sampler still need."""
    words = f"quiet over {numbers}; {law.uncertain:,.0f} are expected not to be the likeliest"
    if not law.uncertain:
        words = f"{words}, of {ENOUGH:,.0f} needed: inconclusive"
        return SampledJudgement(Outcome.INCONCLUSIVE, Reason.TOO_FEW, words)
    needed = math.ceil((ENOUGH - law.uncertain) * law.tokens / law.uncertain)
    words = f"{words}, of {ENOUGH:,.0f} needed: {needed:,} more tokens: inconclusive"
    return SampledJudgement(Outcome.INCONCLUSIVE, Reason.TOO_FEW, words, needed)


def _unseen(audited: AuditResult) -> str:
    """Return what the audit cannot see without the draft model."""
    if audited.drafted_tokens:
        return ""
    return (
        "; without `--rescore-draft` it does not see wrong acceptance of draft tokens or wrong "
        "resampling of rejected ones"
    )


def _unseeded(audited: AuditResult, control: AuditResult | None) -> str:
    """Return why answers of an engine whose draws can be made again are not judged by them.

    An arm's own alarm is named too: without a baseline that is quiet over as many tokens, it may be
    the evidence that is wrong.
    """
    arms = {"": audited} if control is None else {"": audited, "of the baseline ": control}
    lacking = [
        f"; {count:,} answers {whose}{why} are not judged by their seeds"
        for whose, arm in arms.items()
        for why, count in sorted(arm.unseeded.items())
    ]
    missed = [
        f"; {arm.seeded.tokens:,} tokens {whose}are not those that the seeds give{_NAMED_WRONGLY}, "
        "so seeds do not judge"
        for whose, arm in arms.items()
        if arm.seeded.alarmed
    ]
    return "".join([*lacking, *missed])


def _fewest_seeded(audited: AuditResult, control: AuditResult) -> int | None:
    """Return the fewer tokens that an arm's seeds gave; None if too few, or if either alarms."""
    both = audited.seeded, control.seeded
    if any(one.alarmed or one.uncertain < ENOUGH_SEEDED for one in both):
        return None
    return min(one.tokens for one in both)


def _judge_alarm(
    audited: AuditResult, control: AuditResult | None, numbers: str
) -> SampledJudgement:
    if control is None:
        return SampledJudgement(Outcome.FAIL, None, f"ALARM over {numbers}: fail")
    if control.law.alarmed:
        return _control_alarmed(control, numbers)
    needed = (audited.law.tokens_to_alarm or 0) - control.law.tokens
    if needed > 0:
        words = (
            f"{numbers}, but only {control.law.tokens:,} tokens of the baseline's answers could be "
            f"audited, {needed:,} too few to tell a fault from another sampler or model: "
            "inconclusive"
        )
        return SampledJudgement(Outcome.INCONCLUSIVE, Reason.TOO_FEW, words, needed)
    quiet = f"the baseline's own are quiet over {_numbers(control)}"
    return SampledJudgement(Outcome.FAIL, None, f"ALARM over {numbers}, where {quiet}: fail")


def e_value(audited: AuditResult) -> float:
    """Return the greatest e-value, capped at e^700."""
    return math.exp(min(audited.law.log_e, 700.0))


def _numbers(audited: AuditResult) -> str:
    return (
        f"{audited.law.tokens:,} tokens of {audited.answers:,} answers "
        f"(e-value {e_value(audited):.3g}, an alarm at {audited.law.level:g})"
    )


def _cut(audited: AuditResult) -> str:
    all_ = audited.cut + audited.answers
    return f"{audited.cut:,} of {all_:,} answers are {CUT}"


def _p_cut(audited: AuditResult, control: AuditResult) -> float:
    table = [[audited.cut, audited.answers], [control.cut, control.answers]]
    return float(fisher_exact(table, alternative="greater").pvalue)


def _control_alarmed(control: AuditResult, numbers: str) -> SampledJudgement:
    """Return inconclusive: even the baseline's own answers do not fit the rescored model."""
    words = (
        f"{numbers}; the baseline's own alarm, too, over {_numbers(control)}: the model that was "
        "rescored is not its, or a sampler ran that the requests do not name (a server's default "
        "top-k, top-p or min-p): inconclusive"
    )
    return SampledJudgement(Outcome.INCONCLUSIVE, Reason.AA, words)
