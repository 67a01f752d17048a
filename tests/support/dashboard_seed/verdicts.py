"""Verdicts on the seeded rollouts, every kind of limit among their findings."""

from collector.contract import (
    Acceptance,
    Arm,
    ArmCapacity,
    ArmLatency,
    CostComparison,
    DraftsAtLoad,
    Finding,
    Outcome,
    Percentiles,
    QualityCounts,
    Reason,
    Role,
    Verdict,
)
from dashboard_seed.generations import CELL, COHORTS, METRICS, PAIRS, REPEATS, Fate


def finding(cohort: str | None, metric: str, stat: str, **changes: object) -> Finding:
    """Return a made-up finding that passes, with changes."""
    difference = stat.endswith("diff")
    values: dict[str, object] = {
        "cohort": cohort,
        "metric": metric,
        "stat": stat,
        "role": Role.PROVE if cohort is None else Role.GUARD,
        "outcome": Outcome.PASS,
        "reason": None,
        "bound": "min" if difference else "max",
        "margin": -0.02 if difference else 1.1,
        "unit": "difference" if difference else "ratio",
        "confidence": 0.95,
        "n": PAIRS if cohort is None else CELL,
        "method": "tango-1998/1" if difference else "mover-os/1",
        "message": f"{metric} {stat} stays within the margin.",
    }
    return Finding(**(values | changes))  # type: ignore[arg-type]


def findings(fate: Fate) -> tuple[Finding, ...]:
    """Return the findings of a made-up verdict, every kind of limit among them."""
    made = [
        finding(
            None,
            "e2e",
            "geomean_ratio",
            margin=1.0,
            estimate=fate.speed + 0.01234567,
            lower=fate.speed - 0.0213,
            upper=fate.speed + 0.0471,
            method="log-ratio-t/1",
        ),
        finding(
            None, "tpot", "geomean_ratio", margin=1.0, estimate=0.58123, lower=0.5412, upper=0.6241
        ),
        finding(None, "ttft", "p95_ratio", estimate=1.0123, lower=0.9634, upper=1.0721),
        finding(
            None,
            "ttft",
            "p99_ratio",
            margin=1.25,
            outcome=Outcome.INCONCLUSIVE,
            reason=Reason.TOO_FEW,
            estimate=1.0841,
            lower=0.8712,
            n_needed=59,
            role=Role.GUARD,
            message="p99 needs 299 pairs for an upper limit; there are 240.",
        ),
        finding(
            None, "groundedness", "mean_diff", estimate=-0.0031, lower=-0.0123, upper=0.0061, n=40
        ),
        finding(None, "task_completion", "diff", estimate=0.0, lower=-0.0187, upper=0.0187),
    ]
    for number, cohort in enumerate(COHORTS):
        made.append(
            finding(
                cohort,
                "ttft",
                "p95_ratio",
                margin=1.25,
                outcome=Outcome.INCONCLUSIVE,
                reason=Reason.TOO_FEW,
                estimate=1.01 + number / 50,
                lower=0.91,
                n_needed=19,
                message="p95 needs 59 pairs for an upper limit; there are 40.",
            )
        )
        made.append(_task(fate, cohort))
    made.append(
        finding(
            "chat",
            "schema_validity",
            "diff",
            outcome=Outcome.INCONCLUSIVE,
            reason=Reason.MISSING,
            n=0,
            role=Role.REPORT,
            message="Nobody scored schema validity in chat.",
        )
    )
    return tuple(made)


def _task(fate: Fate, cohort: str) -> Finding:
    if fate.outcome is Outcome.FAIL and cohort in ("rag", "code"):
        return finding(
            cohort,
            "task_completion",
            "diff",
            outcome=Outcome.FAIL,
            estimate=-0.15,
            lower=-0.2512,
            upper=-0.0614,
            p_fail=0.0004,
            message="Task completion fell by 15.0 pp, and by at least 6.1 pp at 95 % confidence.",
        )
    if fate.outcome is Outcome.PASS:
        return finding(
            cohort,
            "task_completion",
            "diff",
            margin=-0.05,
            estimate=0.0,
            lower=-0.0433,
            upper=0.0433,
        )
    return finding(
        cohort,
        "task_completion",
        "diff",
        outcome=Outcome.INCONCLUSIVE,
        reason=Reason.TOO_FEW,
        estimate=-0.025,
        lower=-0.0981,
        upper=0.0315,
        n_needed=109,
        message="The limits straddle the margin: 109 more pairs needed.",
    )


def percentiles(p50_s: float) -> Percentiles:
    """Return made-up percentiles around a median."""
    return Percentiles(n=40, p50=p50_s, p95=p50_s * 1.42, p99=None)


def verdict(fate: Fate) -> Verdict:
    """Return a made-up verdict, with evidence for every section."""
    scopes = (None, *COHORTS)
    summaries = {
        Outcome.PASS: "38 % faster end to end over 240 pairs, no metric worse than its margin.",
        Outcome.FAIL: "Task completion fell by 15.0 pp in rag and code: faster, but worse answers.",
        Outcome.INCONCLUSIVE: "29 % faster, but 109 more pairs are needed to rule out harm.",
    }
    return Verdict(
        rollout=fate.rollout,
        outcome=fate.outcome,
        summary=summaries[fate.outcome],
        reasons=tuple(
            f"{f.cohort or 'all cohorts'}: {f.message}"
            for f in findings(fate)
            if f.outcome is fate.outcome
        )[:3],
        pairs=PAIRS,
        incomplete_pairs=1,
        failed_pairs=REPEATS,
        duplicates=3,
        findings=findings(fate),
        latency=tuple(
            ArmLatency(
                cohort=cohort,
                arm=arm,
                generations=PAIRS if cohort is None else CELL,
                errors=REPEATS if arm is Arm.CANDIDATE and cohort in (None, "chat") else 0,
                ttft_s=percentiles(0.0813),
                ttfo_s=percentiles(0.0813),
                tpot_s=percentiles(0.0153 * (fate.speed if arm is Arm.CANDIDATE else 1)),
                e2e_s=percentiles(1.51 * (fate.speed if arm is Arm.CANDIDATE else 1)),
            )
            for cohort in scopes
            for arm in Arm
        ),
        acceptance=tuple(acceptance(cohort) for cohort in scopes),
        drafts_by_load=(
            DraftsAtLoad(in_flight=(1, 1), answers=120, undrafted=0, drafts_per_step=4.0),
            DraftsAtLoad(in_flight=(8, 15), answers=120, undrafted=90, drafts_per_step=2.25),
        )
        if fate.outcome is Outcome.PASS
        else (),
        quality=tuple(quality(fate, metric, cohort) for metric in METRICS for cohort in scopes),
        goodput_ms={"ttft_ms": 500, "tpot_ms": 50} if fate.outcome is Outcome.PASS else {},
        capacity=tuple(capacity(cohort, arm) for cohort in scopes for arm in Arm)
        if fate.outcome is Outcome.PASS
        else (),
        costs=() if fate.outcome is Outcome.FAIL else tuple(map(cost, scopes)),
        policy_name="default",
        policy_hash="5f1c9a" * 10 + "abcd",
        data_hash="07e3b1" * 10 + "ef01",
        versions={"draftgate": "0.1.0"},
    )


def acceptance(cohort: str | None) -> Acceptance:
    """Return made-up acceptance of the candidate in a scope."""
    scales = {"rag": 5.0, "tool_call": 6.0, "code": 6.1, "chat": 4.0, "json": 6.8, "summary": 5.1}
    scale = 5.2 if cohort is None else scales[cohort]
    per_pos = tuple((scale - j) / 8 for j in range(4))
    return Acceptance(
        cohort=cohort,
        arm=Arm.CANDIDATE,
        generations=PAIRS - 2 if cohort is None else CELL,
        excluded=2 if cohort in (None, "chat") else 0,
        steps=6_320,
        draft_tokens=25_280,
        accepted_tokens=int(sum(per_pos) * 6_320),
        rate=sum(per_pos) / 4,
        length=1 + sum(per_pos),
        rate_per_pos=per_pos,
        drafts_per_pos=(6_320,) * 4,
    )


def quality(fate: Fate, metric: str, cohort: str | None) -> QualityCounts:
    """Return made-up wins, losses and ties."""
    n = PAIRS if cohort is None else CELL
    losses = {Outcome.PASS: 1, Outcome.FAIL: 7, Outcome.INCONCLUSIVE: 3}[fate.outcome]
    losses *= len(COHORTS) if cohort is None else 1
    return QualityCounts(
        metric=metric,
        cohort=cohort,
        n=n,
        unscored=1,
        baseline_mean=0.9125,
        candidate_mean=0.9125 - losses / 4 / n,
        wins=2,
        losses=losses,
        ties=n - 2 - losses,
    )


def capacity(cohort: str | None, arm: Arm) -> ArmCapacity:
    """Return made-up capacity; of one cohort's baseline a request is unknown."""
    asked = PAIRS if cohort is None else CELL
    late = 12 if arm is Arm.BASELINE else 3
    return ArmCapacity(
        cohort=cohort,
        arm=arm,
        requests=asked,
        good=asked - late,
        unknown=int(cohort == "rag" and arm is Arm.BASELINE),
        good_per_s=1.2345 if arm is Arm.BASELINE else 1.3123,
        output_tokens_per_s=123.4 if arm is Arm.BASELINE else 191.2,
        in_flight=3.84,
    )


def cost(cohort: str | None) -> CostComparison:
    """Return made-up costs; too few prompts for limits in a cohort."""
    whole = cohort is None
    return CostComparison(
        cohort=cohort,
        currency="USD",
        n=PAIRS - 1 if whole else CELL,
        left_out=int(whole),
        in_flight=3.8412,
        confidence=0.95,
        baseline=1.2345678,
        candidate=0.7654321,
        difference=-0.4691357,
        lower=-0.5123 if whole else None,
        upper=-0.4321 if whole else None,
        rejected_drafts=0.0912345,
        rejected_drafts_lower=0.0412 if whole else None,
        rejected_drafts_upper=0.1387 if whole else None,
        notes=() if whole else ("limits need 100 prompts",),
    )
