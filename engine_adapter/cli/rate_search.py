"""Search the greatest rate that holds a share of good requests, for `draftgate sweep --rates`.

It imports `evals`, which takes a second, so `sweep` imports this module only if it is asked to.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from collector.client import Client, ClientError
from collector.contract import Arm
from engine_adapter.cli import registration
from engine_adapter.errors import PolicyRegistrationError, TelemetryError
from engine_adapter.run import sweep
from engine_adapter.run.rollout_file import Rollout
from evals import policy as policies
from evals.errors import EvalsError
from evals.policy import Policy
from evals.rate_search import Greatest, Held, greatest, held, next_rate, wanted_share
from evals.source import load_evidence


class Found(NamedTuple):
    """The result of a search."""

    wanted: float
    at: dict[float, dict[Arm, Held]]
    """By rate, in requests per second to each arm."""

    @property
    def probes(self) -> dict[float, dict[Arm, bool | None]]:
        """Whether each arm holds each rate."""
        return {
            rate: {arm: one.holds(self.wanted) for arm, one in arms.items()}
            for rate, arms in self.at.items()
        }

    def greatest(self, arm: Arm) -> Greatest:
        """Return what the rates tried say of an arm."""
        return greatest(self.probes, arm)


def ends(text: str) -> tuple[float, float]:
    """Return the lowest and the highest rate of an option such as `1,64`."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?),(\d{1,6}(?:\.\d{1,6})?)", text)
    if found is None or not 0 < float(found[1]) < float(found[2]):
        message = f"{text!r}; wanted the lowest and the highest rate to try, such as 1,64"
        raise typer.BadParameter(message, param_hint="--rates")
    return float(found[1]), float(found[2])


def search(
    file: Path,
    rollout: Rollout,
    rates: tuple[float, float],
    *,
    begin: sweep.Begin,
    say: Callable[[str], None],
) -> Found:
    """Run rate after rate until each arm's greatest is found; raises `AdapterError`."""
    try:
        policy = policies.by_name(registration.beside(file, rollout.policy) or "default")
        found = Found(wanted_share(policy), {})
    except EvalsError as exc:
        raise PolicyRegistrationError(f"--rates: {exc}") from exc
    with sweep.at_rates(file, rollout, begin) as run_at:
        while (rate := next_rate(found.probes, *rates)) is not None:
            found.at[rate] = _held(run_at(rate).rollout, policy)
            shares = ", ".join(f"{arm} {_shown(one)}" for arm, one in found.at[rate].items())
            say(f"{rate:g} a second: {shares} good; wanted {found.wanted:.1%}")
    return found


def _held(rollout: Rollout, policy: Policy) -> dict[Arm, Held]:
    try:
        with Client.from_environment(rollout.collector.url) as client:
            return held(load_evidence(client, rollout.rollout), policy)
    except ClientError as exc:
        raise TelemetryError(f"{exc}; run again: stored answers are not requested again") from exc
    except EvalsError as exc:
        raise PolicyRegistrationError(f"--rates: {exc}") from exc


def print_found(found: Found, *, as_json: bool) -> None:
    """Print the shares at each rate, and each arm's greatest rate that holds."""
    if as_json:
        typer.echo(json.dumps(_document(found)))
        return
    table = Table("requests a second", *(f"{arm}, good" for arm in Arm))
    for rate, arms in sorted(found.at.items()):
        table.add_row(f"{rate:g}", *(_shown(arms[arm]) for arm in Arm))
    console = Console(soft_wrap=True)
    console.print(table)
    for arm in Arm:
        console.print(f"{arm}: {_in_words(found.greatest(arm))}", markup=False)


def _document(found: Found) -> dict[str, object]:
    return {
        "wanted_share": found.wanted,
        "rates": [
            {"rate": rate, **{arm.value: one._asdict() for arm, one in arms.items()}}
            for rate, arms in sorted(found.at.items())
        ],
        "greatest": {arm.value: found.greatest(arm)._asdict() for arm in Arm},
    }


def _shown(one: Held) -> str:
    share = "unknown" if one.share is None else f"{one.share:.1%}"
    return f"{share} ({one.lower:.1%} to {one.upper:.1%})"


def _in_words(found: Greatest) -> str:
    fails = "" if found.fails is None else f"; {found.fails:g} does not hold"
    if found.holds is None:
        return f"no rate that was tried holds{fails}"
    return f"the greatest rate that holds is {found.holds:g} a second{fails}"
