"""Describe what `draftgate watch` would do with a policy."""

from evals.policy import Policy
from evals.watch.plan import live
from evals.watch.wording import stretch_words


def explained(policy: Policy) -> tuple[str, ...]:
    """Return a line for each way of judging live traffic; none without such a section."""
    if policy.live is None:
        return ()
    rules, e_value = live(policy), 1 / policy.alpha_pass
    bounded = f"e-processes, a pass at {e_value:g}" if policy.paired else "a confidence sequence"
    unit = "pairs" if policy.paired else "answers an arm"
    looks = ", ".join(
        f"{pairs:,} (level {alpha:g})"
        for pairs, alpha in zip(rules.looks, rules.spend, strict=True)
    )
    lines = [
        f"watch: shares and scores by {bounded}, after every pair",
        f"watch: latency, tokens and cost at looks of {looks} {unit}",
    ]
    if (rollback := rules.rollback) is not None:
        at = (
            "the baseline's p99 of the first 300 pairs"
            if rollback.threshold_s is None
            else f"{rollback.threshold_s:g} s"
        )
        lines.append(
            f"watch: guard: candidate − baseline in the share of {rollback.latency} above {at} is "
            f"≤ {rollback.margin * 100:+.1f} pp, always on"
        )
    lines.append(f"watch: valid at every moment, if {stretch_words(policy)}")
    return tuple(lines)
