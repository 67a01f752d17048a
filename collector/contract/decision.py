"""What a rollout controller asks: may this rollout go on, by which verdict, and how fresh it is."""

from dataclasses import dataclass

from collector.contract.registration import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDecision:
    """The newest verdict as far as it may move traffic; whatever is in doubt is inconclusive."""

    rollout: str
    decision: Outcome
    """Pass only for a fresh pass under the policy that was registered before the first pair."""
    reason: str
    """Why, in one sentence."""
    verdict: str | None = None
    """Id of the verdict that decided; None without one."""
    posted_unix_ns: int | None = None
    age_s: float | None = None
    """Seconds since it was posted; None without one, and if it lies in the future."""
    pairs: int | None = None
    policy_name: str | None = None
    policy_hash: str | None = None
    registered: bool = False
    """Whether its policy is the one that was registered before the first pair."""
