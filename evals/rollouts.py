"""Check for a rollout in the collector, or wait for it."""

import time
from collections.abc import Callable

from collector.client import Client, ClientError
from evals.errors import SourceError

_POLL_S = 2.0


def require(client: Client, rollout: str) -> int:
    """Return a rollout's number of generations; raises `SourceError` if it is unknown."""
    overviews = client.rollouts()
    for overview in overviews:
        if overview.rollout == rollout:
            return overview.baseline_generations + overview.candidate_generations
    names = ", ".join(sorted(overview.rollout for overview in overviews)) or "none at all"
    raise SourceError(f"rollout {rollout}: the collector holds no such rollout; it holds {names}")


def wait_for(client: Client, rollout: str, wait_s: float, say: Callable[[str], None]) -> None:
    """Wait until the collector has the rollout; `say` gets one message if it is not there yet.

    After `wait_s`, raises `SourceError`, or `ClientError` if the collector does not answer.
    """
    last_s = time.monotonic() + wait_s
    announced = False
    while True:
        try:
            require(client, rollout)
        except (ClientError, SourceError) as exc:
            if time.monotonic() >= last_s:
                raise
            if not announced:
                say(f"waiting up to {wait_s:g} s: {exc}")
                announced = True
        else:
            return
        time.sleep(min(_POLL_S, max(last_s - time.monotonic(), 0)))
