"""A drill of the switch: off under live traffic, and how long the candidate was asked after that.

Evidence is the router's own: when it last began a request to the candidate, by its clock. The clock
of the router is compared with ours at each question; the error of that is half the question's time.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx

from collector.client import Client
from collector.contract import Switch, SwitchState
from engine_adapter.errors import DrillError

BOUND_S: Final = 1.0
_EVERY_S: Final = 0.02
_ANSWER_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drilled:
    """What was measured."""

    rollout: str
    watched_s: float
    """How long the router was watched after the flip."""
    candidate_before: int
    """Requests that began at the candidate while traffic was waited for."""
    candidate_after: int
    """Requests that began at the candidate after the last look before the flip."""
    baseline_after: int
    last_candidate_s: float
    """When the candidate's last request began, from the flip on; negative: before it."""
    clock_error_s: float
    """How wrong that may be, for two clocks were read."""
    learnt_s: float | None
    """When the router was first seen to obey; None: it never was."""
    restored: bool
    """Whether the switch was set on again; not where somebody else set it meanwhile."""

    @property
    def decides(self) -> bool:
        """Say whether traffic went on, without which nothing is shown."""
        return self.baseline_after > 0

    @property
    def holds(self) -> bool:
        """Say whether the router obeyed, and no candidate request began later than a second."""
        return self.learnt_s is not None and self.last_candidate_s + self.clock_error_s <= BOUND_S


@dataclass(frozen=True, slots=True)
class _Look:
    """The router at one moment."""

    at_unix_ns: float
    """By our clock."""
    error_ns: float
    ahead_ns: float
    """How far the router's clock is ahead of ours."""
    state: dict[str, Any]  # Any: JSON of the router

    def arm(self, name: str, key: str) -> int:
        return int(self.state["arms"][name][key] or 0)

    @property
    def allowed(self) -> bool:
        return bool(self.state["control"]["candidate_allowed"])


def drill(
    client: Client,
    rollout: str,
    router_url: str,
    *,
    key: str | None = None,
    traffic_s: float = 10.0,
    watch_s: float = 5.0,
) -> Drilled:
    """Set the rollout's switch off, watch the router, and set it on again.

    Raises `DrillError` if there is nothing to drill, and `ClientError`.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else None
    with httpx.Client(base_url=router_url, headers=headers, timeout=_ANSWER_S) as http:

        def look() -> _Look:
            return _look(http)

        _require_on(client, rollout, router_url, look())
        first, before = _wait_for_traffic(look, traffic_s, router_url)
        looks, flipped_unix_ns = [before], time.time_ns()
        reason = f"drill: {router_url} is watched for {watch_s:g} s"
        event = client.set_switch(rollout, Switch.OFF, reason=reason)
        with _setting_on_again(client, event) as restored:
            looks += _watch(look, watch_s)
    learnt = next((seen for seen in looks if not seen.allowed), None)
    last = looks[-1]
    best = min(looks, key=lambda seen: seen.error_ns)
    return Drilled(
        rollout=rollout,
        watched_s=watch_s,
        candidate_before=before.arm("candidate", "begun") - first.arm("candidate", "begun"),
        candidate_after=last.arm("candidate", "begun") - before.arm("candidate", "begun"),
        baseline_after=last.arm("baseline", "begun") - (learnt or last).arm("baseline", "begun"),
        last_candidate_s=(
            last.arm("candidate", "last_begun_unix_ns") - best.ahead_ns - flipped_unix_ns
        )
        / 1e9,
        clock_error_s=best.error_ns / 1e9,
        learnt_s=None if learnt is None else (learnt.at_unix_ns - flipped_unix_ns) / 1e9,
        restored=restored[0],
    )


def _require_on(client: Client, rollout: str, router_url: str, now: _Look) -> None:
    control = now.state["control"]
    if control["rollout"] != rollout:
        raise DrillError(f"{router_url}: routes {control['rollout']!r}, not {rollout!r}")
    log = client.switch(rollout)
    if not log or log[0].state is not Switch.ON:
        state = log[0].state.value if log else "not set"
        raise DrillError(
            f"{rollout}: the switch is {state}, so there is nothing to switch off; "
            f'set it with `draftgate switch {rollout} on --reason "…"`'
        )
    if not now.allowed:
        raise DrillError(
            f"{router_url}: sends nothing to the candidate (mode {control['mode']}, "
            f"collector: {control['collector_trouble'] or 'answers'}), though the switch is on; "
            "does the router follow this collector, and is its mode mirror, split or candidate?"
        )


def _wait_for_traffic(
    look: Callable[[], _Look], most_s: float, router_url: str
) -> tuple[_Look, _Look]:
    """Return the first look, and one after which the candidate was asked."""
    first = look()
    until_s = time.monotonic() + most_s
    while time.monotonic() < until_s:
        time.sleep(_EVERY_S)
        now = look()
        if now.arm("candidate", "begun") > first.arm("candidate", "begun"):
            return first, now
    share = first.state["control"]["share_percent"]
    said = "" if share is None else f" (its share is {share:g} %)"
    raise DrillError(
        f"{router_url}: no request went to the candidate in {most_s:g} s{said}; "
        "a drill needs live traffic that does, so send some, or wait longer with --traffic"
    )


def _watch(look: Callable[[], _Look], watch_s: float) -> list[_Look]:
    until_s = time.monotonic() + watch_s
    looks = []
    while time.monotonic() < until_s:
        looks.append(look())
        time.sleep(_EVERY_S)
    return [*looks, look()]


@contextmanager
def _setting_on_again(client: Client, drilled: SwitchState) -> Iterator[list[bool]]:
    """Set the switch on when the block ends, however it does, unless somebody else set it."""
    restored = [False]
    try:
        yield restored
    finally:
        newest = client.switch(drilled.rollout)[0]
        if newest.id == drilled.id:
            client.set_switch(drilled.rollout, Switch.ON, reason="drill over: as it was before")
            restored[0] = True


def _look(http: httpx.Client) -> _Look:
    asked_ns = time.time_ns()
    try:
        answer = http.get("/router/state")
        answered_ns = time.time_ns()
        answer.raise_for_status()
        state = answer.json()
        middle_ns = (asked_ns + answered_ns) / 2
        ahead_ns = state["now_unix_ns"] - middle_ns
        look = _Look(middle_ns, (answered_ns - asked_ns) / 2, ahead_ns, state)
        look.arm("candidate", "begun")
        look.arm("baseline", "last_begun_unix_ns")
        _ = look.allowed
    except httpx.HTTPStatusError as exc:
        raise DrillError(
            f"{exc.request.url}: {exc.response.status_code}; a router with client keys wants one "
            "of them in DRAFTGATE_ROUTER_KEY"
        ) from exc
    except httpx.HTTPError as exc:
        raise DrillError(
            f"{http.base_url}router/state: no answer ({exc or type(exc).__name__}); "
            "is `draftgate route` running there?"
        ) from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise DrillError(
            f"{http.base_url}router/state: is not what `draftgate route` answers ({exc!r}); "
            "give the router's address without a path, such as http://localhost:8080"
        ) from exc
    return look
