"""A made-up verdict of realistic size."""

from benchmarks.load.spans import COHORTS
from collector.contract import (
    Acceptance,
    Arm,
    ArmLatency,
    Finding,
    Outcome,
    Percentiles,
    Role,
    Verdict,
)


def verdict(rollout: str) -> Verdict:
    """Return a made-up verdict as large as a real one with these cohorts."""
    times = Percentiles(n=1_000, p50=0.2, p95=0.4, p99=0.6)
    scopes = (None, *COHORTS)
    return Verdict(
        rollout=rollout,
        outcome=Outcome.PASS,
        summary="Made up, to be drawn.",
        reasons=(),
        pairs=1_000,
        incomplete_pairs=0,
        failed_pairs=0,
        duplicates=0,
        findings=tuple(
            Finding(
                metric=metric,
                stat=stat,
                cohort=cohort,
                role=Role.PROVE,
                outcome=Outcome.PASS,
                reason=None,
                bound="max",
                margin=1.25,
                unit="ratio",
                confidence=0.95,
                n=1_000,
                estimate=0.9,
                lower=0.85,
                upper=0.95,
                method="made-up/1",
                message="Made up.",
            )
            for cohort in scopes
            for metric in ("ttft", "tpot", "e2e")
            for stat in ("p95_ratio", "geomean_ratio")
        ),
        latency=tuple(
            ArmLatency(
                cohort=cohort,
                arm=arm,
                generations=1_000,
                errors=0,
                ttft_s=times,
                ttfo_s=times,
                tpot_s=times,
                e2e_s=times,
            )
            for cohort in scopes
            for arm in Arm
        ),
        acceptance=tuple(
            Acceptance(
                cohort=cohort,
                arm=Arm.CANDIDATE,
                generations=1_000,
                excluded=0,
                steps=4_000,
                draft_tokens=16_000,
                accepted_tokens=8_000,
                rate=0.5,
                length=3.0,
                rate_per_pos=(0.8, 0.6, 0.4, 0.2),
                drafts_per_pos=(4_000,) * 4,
            )
            for cohort in scopes
        ),
        quality=(),
        policy_name="made-up",
        policy_hash="0" * 64,
        data_hash="0" * 64,
    )
