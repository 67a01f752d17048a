"""The rollouts that a collector holds."""

from collector.client import Client
from evals.errors import SourceError


def require(client: Client, rollout: str) -> int:
    """Return how many generations a rollout has; raises `SourceError` for an unknown one."""
    overviews = client.rollouts()
    for overview in overviews:
        if overview.rollout == rollout:
            return overview.baseline_generations + overview.candidate_generations
    names = ", ".join(sorted(overview.rollout for overview in overviews)) or "none at all"
    raise SourceError(f"rollout {rollout}: the collector holds no such rollout; it holds {names}")
