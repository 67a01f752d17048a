"""Verdicts made up for tests of what stores and carries them, without any finding."""

from dataclasses import replace

from collector.contract import Outcome, Verdict


def made_verdict(
    outcome: Outcome = Outcome.INCONCLUSIVE, *, rollout: str = "k4", **changes: object
) -> Verdict:
    """Return a verdict on one pair, with changes."""
    plain = Verdict(
        rollout=rollout,
        outcome=outcome,
        summary=f"{outcome} of {rollout}",
        reasons=(),
        pairs=1,
        incomplete_pairs=0,
        failed_pairs=0,
        duplicates=0,
        findings=(),
        latency=(),
        acceptance=(),
        quality=(),
        policy_name="default",
        policy_hash="p",
        data_hash="d",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # fields by name
