"""Ramps: the share grows in steps, each of which needs a passing verdict newer than the last step.

The collector stores the steps and enforces that rule; this module chooses the step to request.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Final, NamedTuple

from pydantic import Field, field_validator

from collector.client import Client, ClientError
from collector.contract import Outcome, RampChange, RampStep, StoredVerdict
from engine_adapter.errors import NotConfirmedError, PromotionError
from engine_adapter.routes import Section

STEPS: Final = (1.0, 5.0, 25.0, 50.0, 100.0)
_LOOKED_AT: Final = 100
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class RampSection(Section):
    """The `ramp` of a routes file."""

    steps: Annotated[tuple[Percent, ...], Field(min_length=1)] = STEPS
    """Percentages above 0, each larger than the one before."""
    automatic: bool = False
    """Let the router begin the ramp and go on at each passing verdict; its key then needs
    `admin`."""

    @field_validator("steps")
    @classmethod
    def _grow(cls, steps: tuple[float, ...]) -> tuple[float, ...]:
        if list(steps) != sorted(set(steps)) or steps[0] <= 0:
            raise ValueError("wanted growing percentages above 0, such as [1, 5, 25, 50, 100]")
        return steps


class RampProgress(NamedTuple):
    """A ramp's last step and the verdict for the next one."""

    step: RampStep | None
    """`None` if the ramp has not begun."""
    verdict: StoredVerdict | None
    """The newest one under the registered policy that was posted after the step."""


def progress(client: Client, rollout: str) -> RampProgress:
    """Fetch a ramp's progress from the collector; raises `ClientError`."""
    step = next(iter(client.ramp(rollout)), None)
    if step is None:
        return RampProgress(None, None)
    verdict = _registered_verdict(client, rollout)
    newer = verdict is not None and verdict.posted_unix_ns > step.time_unix_ns
    return RampProgress(step, verdict if newer else None)


def next_step(rollout: str, steps: Sequence[float], now: RampProgress) -> RampChange:
    """Return the next step up; raises `PromotionError` if none can be taken now."""
    last, verdict = now
    if last is None:
        return RampChange(percent=steps[0], reason=f"begin at {steps[0]:g} %")
    larger = [percent for percent in steps if percent > last.percent]
    if not larger:
        raise PromotionError(f"{rollout}: stands at {last.percent:g} %, its last step")
    wanted = f"{rollout}: stands at {last.percent:g} %; {larger[0]:g} %"
    if verdict is None:
        raise PromotionError(
            f"{wanted} needs a passing verdict under the registered policy that is newer than the "
            "step, and there is none: let traffic flow, then run "
            f"`draftgate gate {rollout} --since-step`"
        )
    if verdict.verdict.outcome is not Outcome.PASS:
        raise PromotionError(
            f"{wanted} needs a passing verdict; the newest is {verdict.verdict.outcome}: "
            f"{verdict.verdict.summary}"
        )
    reason = f"pass under {verdict.verdict.policy_name}: {verdict.verdict.summary}"
    return RampChange(
        percent=larger[0], reason=reason[:2000], continues=last.id, verdict=verdict.id
    )


def require_confirmed(change: RampChange, why_not: str | None) -> None:
    """Raise `NotConfirmedError` if the verdict behind a step cannot be relied on."""
    if why_not is not None:
        raise NotConfirmedError(
            f"to {change.percent:g} %: the verdict {change.verdict} cannot be relied on: {why_not}"
        )


def step_back(
    rollout: str, steps: Sequence[float], now: RampProgress, *, percent: float, reason: str
) -> RampChange:
    """Return the step down to `percent`; raises `PromotionError` if that is not a step down."""
    last = now.step
    if last is None:
        raise PromotionError(f"{rollout}: its ramp has not begun; leave out --back-to")
    if percent >= last.percent:
        known = ", ".join(f"{step:g}" for step in (0.0, *steps) if step < last.percent)
        raise PromotionError(
            f"{rollout}: stands at {last.percent:g} %, so {percent:g} % is no step back; "
            f"wanted less, such as {known or 'nothing: it stands at 0'}"
        )
    return RampChange(percent=percent, reason=reason, continues=last.id)


def _registered_verdict(client: Client, rollout: str) -> StoredVerdict | None:
    registered = client.history(rollout).registered
    if registered is None:
        return None
    try:
        posted = client.verdicts(rollout, limit=_LOOKED_AT)
    except ClientError as exc:
        if exc.status == HTTPStatus.NOT_FOUND:  # the collector has no data of the rollout yet
            return None
        raise
    heeded = (one for one in posted if one.verdict.moves_ramp)
    return next((one for one in heeded if one.verdict.policy_hash == registered.policy_hash), None)
