"""Leases: how any number of evaluators share the generations that nobody has scored yet."""

from dataclasses import dataclass

from collector.contract.records import Generation, Pair, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedEvaluator:
    """The key of scores, beside the ids of what they judge."""

    metric: str
    evaluator: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """A worker's request for a lease.

    Workers that name the same evaluators share a rollout; one that names others has it to itself.
    """

    rollout: str
    worker: str
    """A name for people, such as host and process; two workers may have the same."""
    evaluators: tuple[LeasedEvaluator, ...]
    pairs: bool = False
    """Whether pairs are wanted too: those that became complete with a leased generation."""
    generations: int = 100
    """At most so many."""
    ttl_s: float = 60.0
    """After so long without a renewal they are somebody else's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRenewal:
    """For how long a lease is to last from now on."""

    ttl_s: float
    """0 gives it back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Generations that nobody else is given before the lease runs out."""

    id: str
    rollout: str
    expires_in_s: float
    """From the answer on, by the database's clock."""
    generations: tuple[Generation, ...]
    """In the order of arrival."""
    pairs: tuple[Pair, ...]
    """Without their scores."""
    scores: tuple[Score, ...]
    """Those that the generations, and the candidates of the pairs, have already."""
