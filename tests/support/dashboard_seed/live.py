"""What moves: engine samples, a switch's log, and a watch that is still undecided."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from otlp_bodies import metrics_request

from collector.client import Client
from collector.contract import (
    AcceptanceWatch,
    EProcess,
    Outcome,
    Reason,
    Role,
    Switch,
    Watch,
    WatchAction,
    WatchCell,
    WatchCohort,
    WatchLook,
    WatchPath,
    WatchUpdate,
)

ROLLOUT = "support-eagle-k6"
_GAUGES = {
    "vllm:kv_cache_usage_perc": ("1", 0.42, 0.013),
    "vllm:num_requests_running": ("1", 6.0, 0.21),
    "vllm:num_requests_waiting": ("1", 1.0, 0.07),
    "DCGM_FI_DEV_GPU_UTIL": ("%", 71.0, 0.9),
    "DCGM_FI_DEV_FB_USED": ("MiBy", 61_000.0, 25.0),
}


def metrics_body() -> bytes:
    """Return the last ten minutes of an engine's gauges, as an OTLP body."""
    request = metrics_request(list(_gauges()), resource={"service.name": "desk-serving"})
    return bytes(request.SerializeToString())


def _gauges() -> Iterator[Mapping[str, Any]]:
    now = time.time_ns()
    for name, (unit, first, slope) in _GAUGES.items():
        points = [
            {
                "timeUnixNano": str(now - (20 - i) * 30 * 1_000_000_000),
                "asDouble": first + slope * (i % 7),
            }
            for i in range(20)
        ]
        yield {"name": name, "unit": unit, "gauge": {"dataPoints": points}}


def turn_switches(client: Client) -> None:
    """Set a switch off and on again, each with its reason."""
    client.set_switch(ROLLOUT, Switch.OFF, reason="p99 TTFT doubled in json after the deploy")
    client.set_switch(ROLLOUT, Switch.ON, reason="Rolled the draft back; A/A is quiet again")


def watch(client: Client) -> None:
    """Store a watch's state."""
    client.update_watch(WatchUpdate(continues=0, watch=_watch()))


def _watch() -> Watch:
    now = time.time_ns()
    return Watch(
        rollout=ROLLOUT,
        policy_name="default",
        policy_hash="5f1c9a" * 10 + "abcd",
        pairs=236,
        outcome=Outcome.INCONCLUSIVE,
        summary="So far nothing is proved and nothing is broken, after 236 pairs.",
        reasons=("task completion over all cohorts needs about 109 more pairs",),
        actions=(WatchAction(time_unix_ns=now - 10**12, pairs=120, reason="set off: e 41 ≥ 20"),),
        cohorts=(WatchCohort(cohort="rag", baseline=40, candidate=40, complete=40),),
        cells=(_bounded(None, 0.9), _bounded("json", 0.4), _looked()),
        acceptance=_acceptance(),
    )


def _acceptance() -> tuple[AcceptanceWatch, ...]:
    """Return a cohort whose acceptance fell, one whose did not, and two without a reference yet."""
    seen = EProcess(limit=0.07, n=1_240, log_wealth=(0.4, 0.9), log_e=1.7, highest_log_e=1.9)
    fell = "acceptance of requests in `rag` fell: 71.2% in the first 400, 48.3% lately, after 1,640"
    return (
        AcceptanceWatch(
            cohort="rag",
            number=1,
            reference=0.712,
            lately=0.483,
            fall=seen,
            drifted=True,
            message=fell,
        ),
        AcceptanceWatch(cohort="chat", number=2, reference=0.624, lately=0.631, fall=seen),
        AcceptanceWatch(cohort="json", number=3, first=(0.5,) * 117),
        AcceptanceWatch(cohort=None, number=4, first=(0.25,) * 12),
    )


def _bounded(cohort: str | None, speed: float) -> WatchCell:
    numbers = tuple(range(20, 240, 20))
    return WatchCell(
        metric="task_completion",
        stat="mean_diff",
        cohort=cohort,
        role=Role.PROVE,
        bound="min",
        margin=-0.02,
        pass_at=1.0,
        method="betting/1",
        message="109 more pairs would settle it at this rate.",
        n=236,
        estimate=-0.0042,
        lower=-0.031,
        upper=0.0207,
        log_e_to_pass=2.996,
        log_e_to_fail=5.3,
        passing=EProcess(limit=0.02, n=236, log_wealth=(0.4, 0.9), log_e=1.7, highest_log_e=1.9),
        failing=EProcess(limit=0.02, n=236, log_wealth=(-0.4, -0.9), log_e=-0.8, highest_log_e=0.1),
        path=WatchPath(
            time_unix_ns=tuple(time.time_ns() for _ in numbers),
            n=numbers,
            estimate=tuple(-0.004 for _ in numbers),
            log_e_pass=tuple(speed * n / 110 for n in numbers),
            log_e_fail=tuple(-0.2 * speed * n / 110 for n in numbers),
        ),
    )


def _looked() -> WatchCell:
    return WatchCell(
        metric="ttft",
        stat="p95_ratio",
        cohort=None,
        role=Role.GUARD,
        bound="max",
        margin=1.1,
        pass_at=1.0,
        method="mover-os/1 at looks",
        reason=Reason.TOO_FEW,
        message="The first look is at 300 pairs.",
        n=236,
        looks=tuple(
            WatchLook(pairs=pairs, alpha=alpha)
            for pairs, alpha in ((300, 0.001), (600, 0.003), (1_200, 0.006))
        ),
        next_look=300,
    )
