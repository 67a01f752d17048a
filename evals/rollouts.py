"""The rollouts that a collector holds."""

import time
from collections.abc import Callable

from collector.client import Client, ClientError
from evals.errors import SourceError

_ASKED_EVERY_S = 2.0


def require(client: Client, rollout: str) -> int:
    """Return how many generations a rollout has; raises `SourceError` for an unknown one."""
    overviews = client.rollouts()
    for overview in overviews:
        if overview.rollout == rollout:
            return overview.baseline_generations + overview.candidate_generations
    names = ", ".join(sorted(overview.rollout for overview in overviews)) or "none at all"
    raise SourceError(f"rollout {rollout}: the collector holds no such rollout; it holds {names}")


def wait_for(client: Client, rollout: str, wait_s: float, say: Callable[[str], None]) -> None:
    """Return once the collector holds the rollout, and say once what is waited for.

    Raises `SourceError`, or `ClientError` of a collector that does not answer, after `wait_s`.
    """
    last_s = time.monotonic() + wait_s
    said = False
    while True:
        try:
            require(client, rollout)
        except (ClientError, SourceError) as exc:
            if time.monotonic() >= last_s:
                raise
            if not said:
                say(f"waiting up to {wait_s:g} s: {exc}")
                said = True
        else:
            return
        time.sleep(min(_ASKED_EVERY_S, max(last_s - time.monotonic(), 0)))
