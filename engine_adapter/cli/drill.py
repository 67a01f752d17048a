"""`draftgate drill`: test whether the switch works, and how fast."""

import json
import os
from dataclasses import asdict
from typing import Annotated

import typer

from collector.client import Client
from collector.client.command_line import Collector, Database
from collector.nouns import counted
from engine_adapter.cli.options import FAILED, UNDECIDED, RolloutName, usable
from engine_adapter.router.drill import BOUND_S, DrillResult
from engine_adapter.router.drill import drill as measure

app = typer.Typer(add_completion=False)


@app.command()
def drill(  # one argument per option
    rollout: RolloutName,
    router: Annotated[
        str,
        typer.Option(help="The router's address without a path, such as http://localhost:8080."),
    ],
    *,
    watch_s: Annotated[
        float,
        typer.Option(
            "--watch",
            min=1,
            help="Seconds to watch for candidate requests after the switch is set off.",
        ),
    ] = 5.0,
    traffic_s: Annotated[
        float,
        typer.Option(
            "--traffic", min=1, help="Seconds to wait for candidate requests before it is set off."
        ),
    ] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Set the switch off under live traffic, time the last candidate request, and set it on again.

    Exit 0: none began later than 1 s after, 1: one did, or the router never obeyed, 2: unusable, or
    nothing to drill, 3: traffic stopped meanwhile, so that nothing is shown.

    Example: draftgate drill support-k4 --router http://localhost:8080
    """
    key = os.environ.get("DRAFTGATE_ROUTER_KEY")
    with usable(), Client.opened(collector, database) as client:
        found = measure(
            client, rollout, router, key=key or None, traffic_s=traffic_s, watch_s=watch_s
        )
    verdict = {"decides": found.decides, "holds": found.holds}
    typer.echo(json.dumps(asdict(found) | verdict) if as_json else _in_words(found))
    if not found.holds:
        raise typer.Exit(FAILED)
    if not found.decides:
        raise typer.Exit(UNDECIDED)


def _in_words(found: DrillResult) -> str:
    side = "after" if found.last_candidate_s >= 0 else "before"
    text = (
        f"{found.rollout}: the last candidate request began {abs(found.last_candidate_s):.4f} s "
        f"{side} the flip (± {found.clock_error_s:.4f} s, as two clocks are compared).\n"
    )
    if found.learnt_s is None:
        text += "The router was never seen to obey.\n"
    else:
        text += f"The router was seen to obey {found.learnt_s:.3f} s after the flip.\n"
    text += (
        f"In the {found.watched_s:g} s watched, {counted(found.baseline_after, 'request')} began "
        f"at the baseline after that, {found.candidate_after:,} at the candidate since the flip.\n"
    )
    if found.restored:
        text += "The switch is on again."
    else:
        text += "The switch was left as it is: somebody else set it meanwhile."
    if not found.holds:
        text += f"\nFAIL: the router must obey, and send the candidate nothing after {BOUND_S:g} s."
    elif not found.decides:
        text += "\nUNDECIDED: traffic stopped, so nothing shows that the baseline took over."
    return text
