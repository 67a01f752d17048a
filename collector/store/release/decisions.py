"""Release decisions: whether a rollout's verdicts allow a controller to proceed."""

from sqlalchemy import Connection

from collector.contract import Outcome, RegisteredPolicy, ReleaseDecision, StoredVerdict
from collector.errors import NotFoundError
from collector.store.release import policies, verdicts

_AHEAD_S = 60.0
"""How far the clock of another collector may be ahead."""
_UNREGISTERED = "it passes, but no policy was registered before its first pair"


def decide(
    connection: Connection, rollout: str, *, now_unix_ns: int, max_age_s: float
) -> ReleaseDecision:
    """Return the decision of the newest verdict under the registered policy.

    A pass counts only while it is at most `max_age_s` old; a fail does not expire. As on a ramp,
    verdicts under other policies are ignored. Without a registered policy the newest verdict can
    fail the rollout but never pass it. A rollout without a verdict is inconclusive.
    """
    policy = policies.in_force(policies.of_rollout(connection, rollout))
    known = _newest(connection, rollout, policy)
    if known is None:
        under = "" if policy is None else f" under {policy.policy_name}, which was registered"
        reason = f"nobody has judged it{under}"
        return ReleaseDecision(rollout=rollout, decision=Outcome.INCONCLUSIVE, reason=reason)
    verdict = known.verdict
    age_s = age(known.posted_unix_ns, now_unix_ns)
    doubt = _doubt(age_s, max_age_s) if policy is not None else _UNREGISTERED
    is_open = verdict.outcome is Outcome.PASS and doubt is not None
    return ReleaseDecision(
        rollout=rollout,
        decision=Outcome.INCONCLUSIVE if is_open else verdict.outcome,
        reason=doubt if is_open and doubt is not None else verdict.summary,
        verdict=known.id,
        posted_unix_ns=known.posted_unix_ns,
        age_s=age_s,
        pairs=verdict.pairs,
        policy_name=verdict.policy_name,
        policy_hash=verdict.policy_hash,
        registered=policy is not None,
    )


def _newest(
    connection: Connection, rollout: str, policy: RegisteredPolicy | None
) -> StoredVerdict | None:
    if policy is not None:
        return verdicts.newest_since(connection, rollout, 0, policy_hash=policy.policy_hash)
    try:
        return next(iter(verdicts.newest(connection, rollout, limit=1)), None)
    except NotFoundError:
        return None


def age(posted_unix_ns: int, now_unix_ns: int) -> float | None:
    """Return the seconds since a verdict was posted; None if that is far in the future."""
    age_s = (now_unix_ns - posted_unix_ns) / 1e9
    return None if age_s < -_AHEAD_S else max(age_s, 0.0)


def _doubt(age_s: float | None, max_age_s: float) -> str | None:
    """Return why a pass of this age does not count; None if it does."""
    if age_s is None:
        return "its pass was posted in the future: a clock is wrong"
    if age_s > max_age_s:
        return f"its pass is {age_s:,.0f} s old, and may be {max_age_s:,.0f} s at most: judge again"
    return None
