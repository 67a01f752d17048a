"""The release decision that rollout controllers request."""

from dataclasses import dataclass

from collector.contract.registration import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDecision:
    """Whether a rollout may proceed, by its newest verdict; inconclusive in case of doubt."""

    rollout: str
    decision: Outcome
    """Pass only for a fresh pass under the policy that was registered before the first pair."""
    reason: str
    """Why, in one sentence."""
    verdict: str | None = None
    """Id of the verdict that decided; None without one."""
    posted_unix_ns: int | None = None
    age_s: float | None = None
    """Seconds since the verdict was posted; None without one, or if that is in the future."""
    pairs: int | None = None
    policy_name: str | None = None
    policy_hash: str | None = None
    registered: bool = False
    """Whether the verdict's policy is the one registered before the first pair."""
