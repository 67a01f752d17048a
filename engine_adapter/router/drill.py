"""Drill the switch: set it off under live traffic and measure when the candidate's traffic stops.

The evidence is the time, by the router's clock, at which it last began a request to the candidate.
Each poll compares the router's clock with ours; the error is half of the poll's round trip.
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
class DrillResult:
    """The measurements of one drill."""

    rollout: str
    watched_s: float
    """How long the router was watched after the switch was set off."""
    candidate_before: int
    """Requests to the candidate that began while waiting for traffic."""
    candidate_after: int
    """Requests to the candidate that began after the last poll before the switch was set off."""
    baseline_after: int
    """Requests to the baseline that began after the router was first seen to obey."""
    last_candidate_s: float
    """When the candidate's last request began, relative to the switch-off; negative: before it."""
    clock_error_s: float
    """Bound on the error of `last_candidate_s`, which compares two clocks."""
    learnt_s: float | None
    """When a poll first saw the router obey; `None` if none did."""
    restored: bool
    """Whether the switch was set on again; false if somebody else set it meanwhile."""

    @property
    def decides(self) -> bool:
        """Whether baseline traffic continued; without it the drill shows nothing."""
        return self.baseline_after > 0

    @property
    def holds(self) -> bool:
        """Whether the router obeyed and the last candidate request began within `BOUND_S`."""
        return self.learnt_s is not None and self.last_candidate_s + self.clock_error_s <= BOUND_S


@dataclass(frozen=True, slots=True)
class _Poll:
    """The router's state at one poll."""

    at_unix_ns: float
    """Middle of the poll, by our clock."""
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
) -> DrillResult:
    """Set the rollout's switch off, watch the router, and set the switch on again.

    Raises `DrillError` if the drill cannot run (switch off, no traffic, no router), and
    `ClientError`.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else None
    with httpx.Client(base_url=router_url, headers=headers, timeout=_ANSWER_S) as http:

        def poll() -> _Poll:
            return _poll(http)

        _require_on(client, rollout, router_url, poll())
        first, before = _wait_for_traffic(poll, traffic_s, router_url)
        polls, flipped_unix_ns = [before], time.time_ns()
        reason = f"drill: {router_url} is watched for {watch_s:g} s"
        event = client.set_switch(rollout, Switch.OFF, reason=reason)
        with _setting_on_again(client, event) as restored:
            polls += _watch(poll, watch_s)
    learnt = next((seen for seen in polls if not seen.allowed), None)
    last = polls[-1]
    best = min(polls, key=lambda seen: seen.error_ns)
    return DrillResult(
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


def _require_on(client: Client, rollout: str, router_url: str, now: _Poll) -> None:
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
    poll: Callable[[], _Poll], most_s: float, router_url: str
) -> tuple[_Poll, _Poll]:
    """Return the first poll, and the first one that saw a new request to the candidate."""
    first = poll()
    until_s = time.monotonic() + most_s
    while time.monotonic() < until_s:
        time.sleep(_EVERY_S)
        now = poll()
        if now.arm("candidate", "begun") > first.arm("candidate", "begun"):
            return first, now
    share = first.state["control"]["share_percent"]
    said = "" if share is None else f" (its share is {share:g} %)"
    raise DrillError(
        f"{router_url}: no request went to the candidate in {most_s:g} s{said}; "
        "a drill needs live traffic that does, so send some, or wait longer with --traffic"
    )


def _watch(poll: Callable[[], _Poll], watch_s: float) -> list[_Poll]:
    until_s = time.monotonic() + watch_s
    polls = []
    while time.monotonic() < until_s:
        polls.append(poll())
        time.sleep(_EVERY_S)
    return [*polls, poll()]


@contextmanager
def _setting_on_again(client: Client, drilled: SwitchState) -> Iterator[list[bool]]:
    """Set the switch on when the block ends or fails, unless somebody else has set it."""
    restored = [False]
    try:
        yield restored
    finally:
        newest = client.switch(drilled.rollout)[0]
        if newest.id == drilled.id:
            client.set_switch(drilled.rollout, Switch.ON, reason="drill over: as it was before")
            restored[0] = True


def _poll(http: httpx.Client) -> _Poll:
    asked_ns = time.time_ns()
    try:
        answer = http.get("/router/state")
        answered_ns = time.time_ns()
        answer.raise_for_status()
        state = answer.json()
        middle_ns = (asked_ns + answered_ns) / 2
        ahead_ns = state["now_unix_ns"] - middle_ns
        poll = _Poll(middle_ns, (answered_ns - asked_ns) / 2, ahead_ns, state)
        poll.arm("candidate", "begun")
        poll.arm("baseline", "last_begun_unix_ns")
        _ = poll.allowed
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
    return poll
