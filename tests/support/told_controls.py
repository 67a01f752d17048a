"""A router's control, by a routes file and what a collector told of switch and ramp."""

from dataclasses import dataclass
from typing import Any

from collector.contract import RampStep, Switch, SwitchState
from engine_adapter.router.control import RolloutControl
from engine_adapter.router.known_state import KnownState
from engine_adapter.router.opening import control_of
from engine_adapter.router.routes_file import Routes

UPSTREAMS = {"baseline": {"url": "http://b/v1"}, "candidate": {"url": "http://c/v1"}}


@dataclass
class Told:
    """What the collector told, at hand."""

    known: KnownState
    trouble: str | None = None


def switched(state: Switch | None, *, ramp: float | None = None) -> Told:
    event = state and SwitchState(
        id=1, rollout="k4", state=state, reason="r", who="w", time_unix_ns=1
    )
    step = ramp is not None and RampStep(
        id=1, rollout="k4", percent=ramp, reason="r", verdict=None, who="w", time_unix_ns=1
    )
    return Told(KnownState(rollout="k4", switch=event, ramp=step or None, told_unix_ns=7))


def control(told: Told, **routes: Any) -> RolloutControl:
    document = {"rollout": "k4", "upstreams": UPSTREAMS} | routes
    return control_of(Routes.model_validate(document), told)
