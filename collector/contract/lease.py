"""Leases, by which evaluator workers share the generations that are not scored yet."""

from dataclasses import dataclass

from collector.contract.records import Generation, Pair, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedEvaluator:
    """An evaluator: the key of its scores besides trace and span id."""

    metric: str
    evaluator: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """A worker's request for a lease.

    Workers with the same evaluators share a rollout; workers with other evaluators get it again.
    """

    rollout: str
    worker: str
    """A name for humans, such as host and process; not necessarily unique."""
    evaluators: tuple[LeasedEvaluator, ...]
    pairs: bool = False
    """Whether to return the pairs too that became complete with a leased generation."""
    generations: int = 100
    """Maximum number of generations."""
    ttl_s: float = 60.0
    """Seconds without renewal after which the lease expires and may go to another worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRenewal:
    """A renewal of a lease."""

    ttl_s: float
    """Seconds from now until the lease expires; 0 releases it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Generations leased to one worker until the lease expires."""

    id: str
    rollout: str
    expires_in_s: float
    """Seconds from the response, by the database's clock."""
    generations: tuple[Generation, ...]
    """In the order of arrival."""
    pairs: tuple[Pair, ...]
    """Without their scores."""
    scores: tuple[Score, ...]
    """Existing scores of the generations and of the pairs' candidates."""
