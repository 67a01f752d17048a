"""`draftgate run`: replay a workload on a baseline and its candidates."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from collector.contract import Arm
from collector.nouns import counted
from engine_adapter.cli import registration
from engine_adapter.cli.options import FAILED, CollectorUrl, Launch, UntilDecidedOptions, usable_run
from engine_adapter.engines import EngineOpener
from engine_adapter.run import journal, rollout_file
from engine_adapter.run.journal import Journal
from engine_adapter.run.launches import Serve
from engine_adapter.run.phases import UntilDecided
from engine_adapter.run.replay import RunCounts, RunProgress, replay
from engine_adapter.run.rollout_file import CollectorAddress, Rollout
from engine_adapter.run.server_process import all_serving
from engine_adapter.run.telemetry import require_collector

if TYPE_CHECKING:
    from engine_adapter.cli.until_decided import Decided, Judge

app = typer.Typer(add_completion=False)


@app.command()
def run(  # noqa: PLR0913  # one argument an option
    file: Annotated[Path, typer.Argument(help="The rollout file (YAML).")],
    collector: CollectorUrl = None,
    *,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over, ignoring what earlier attempts stored.")
    ] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--journal/--no-journal",
            help="Record progress in FILE.journal, so that the same command continues a "
            "stopped run.",
        ),
    ] = True,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Policy to register before the first pair: a file, or the name of a shipped "
            "one. The run ends if it cannot be registered. Default: the file's, else "
            "the shipped one for its `change`."
        ),
    ] = None,
    launch: Launch = None,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Score and judge at declared looks, end as soon as it is decided, and exit "
            "as `gate` does.",
        ),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            help="With --until-decided, the limit: a time such as 2h, 45m or 30s, or "
            "a number of pairs."
        ),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(help="With --until-decided: an A/A rollout, which must show no difference."),
    ] = None,
    rescore: Annotated[
        str | None,
        typer.Option(
            help="With --until-decided: the baseline's model, to rescore where answers differ."
        ),
    ] = None,
    rescore_draft: Annotated[
        str | None,
        typer.Option(
            help="With --until-decided: the draft model, to see sampled tokens that it finds too "
            "likely."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print the counts and how late requests were sent as JSON; with "
            "--until-decided, the verdicts too.",
        ),
    ] = False,
) -> None:
    """Replay a workload on a baseline and its candidates, and send each generation as a span.

    The turns of a session are asked one after another, as `load.history` and `load.think_s` say.
    If Ctrl-C, SIGTERM or a crash stops it, run it again to continue. Routes with a `start` command
    are started, and stopped at the end, as often as `load.launches` says. Exit code 1: more than
    half of an arm's answers failed. They are stored, and the gate judges them.

    Example: draftgate run rollout.yaml --policy policy.yaml
    Example: draftgate run rollout.yaml --until-decided --budget 2h
    """
    errors = Console(stderr=True)
    say = partial(errors.print, markup=False, soft_wrap=True)
    looking = UntilDecidedOptions(budget, control, rescore, rescore_draft)
    if not until_decided and (given := looking.given):
        raise typer.BadParameter("goes with --until-decided", param_hint=given)
    again = f"draftgate run {file}{' --until-decided' if until_decided else ''}" if keep else None
    with usable_run(errors, again):
        rollout = read_overridden(file, collector, launch)
        require_collector(rollout.collector.url)  # before a server or a model is started
        notes = journal.unwritten()
        if keep:
            notes = journal.open_beside(file, rollout, fresh=fresh, until_decided=until_decided)
        chosen = policy or registration.beside(file, rollout.policy)
        with closing(notes), terminated_as_interrupted():
            say(
                registration.register_for_run(
                    rollout.collector.url, rollout.rollout, chosen, rollout.change, rollout.family
                )
            )
            judge = _judge(rollout, chosen, looking, say) if until_decided else None
            counts = replay_with_progress(
                rollout,
                errors,
                notes=notes,
                serve=lambda number: all_serving(file, rollout, launch=number),
                until=None if judge is None else judge.until,
            )
            decided = None if judge is None else judge.decided()
    if as_json:
        typer.echo(_as_json(rollout, counts, decided))
    else:
        typer.echo(_in_words(rollout, counts, following=decided is None))
    for words in counts.suspicions:
        say(f"suspected: {words}", style="yellow")
    for words in counts.failures:
        say(f"error: {words}", style="red")
    if decided is not None:
        decided.end(budget_reached=counts.budget_reached, quiet=as_json)
    if counts.failures:
        raise typer.Exit(FAILED)


def read_overridden(file: Path, collector: str | None, launch: str | None = None) -> Rollout:
    """Read a rollout file, with the options that win over it."""
    rollout = rollout_file.read(file)
    if collector is not None:
        address = CollectorAddress(url=collector)
        rollout = rollout.model_copy(update={"collector": address})
    return rollout if launch is None else rollout_file.with_launch(rollout, launch)


def _judge(
    rollout: Rollout, policy: str | None, given: UntilDecidedOptions, say: Callable[[str], None]
) -> "Judge":
    # Imported here: it imports `evals`, which takes a second.
    from engine_adapter.cli.until_decided import Judge  # noqa: PLC0415

    return Judge(rollout, policy, given, say)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C: send the answers received so far, then exit."""
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _as_json(rollout: Rollout, counts: RunCounts, decided: "Decided | None") -> str:
    named = counts._asdict()
    lags = {key: named[key]._asdict() for key in ("send_lag", "loop_lag")}
    arms = {arm: asdict(one) for arm, one in counts.arms.items()}
    found: dict[str, object] = {"rollout": rollout.rollout, **named, **lags, "arms": arms}
    if decided is None:
        del found["budget_reached"]
    else:
        found |= decided.document()
    return json.dumps(found)


def _in_words(rollout: Rollout, counts: RunCounts, *, following: bool) -> str:
    before = f" ({counts.resumed:,} stored before)" if counts.resumed else ""
    first = (
        f"{rollout.rollout}: {counted(counts.generations, 'generation')} sent to "
        f"{rollout.collector.url}{before}, {counts.failed:,} of them failed."
    )
    lines = [first]
    for lag, what in (
        (counts.send_lag, "requests were sent, or answers read, late by"),
        (counts.loop_lag, "the load generator itself was busy for"),
    ):
        if lag.p50_s is not None and lag.p99_s is not None:
            lines.append(
                f"{what} {lag.p50_s * 1e3:.2f} ms (median), {lag.p99_s * 1e3:.2f} ms (p99)."
            )
    if following:
        names = " ".join(rollout.rollouts_of(Arm.BASELINE))
        lines.append(f"Next: draftgate evaluate {names} --collector {rollout.collector.url}")
    return "\n".join(lines)


def replay_with_progress(
    rollout: Rollout,
    console: Console,
    *,
    opener: EngineOpener | None = None,
    notes: Journal | None = None,
    serve: Serve | None = None,
    until: UntilDecided | None = None,
) -> RunCounts:
    """Replay with a progress bar that shows each arm's cohort as it answers."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(f"{rollout.rollout}: opening both routes", total=None)

        def show(step: RunProgress) -> None:
            made = step.generation
            text = f"{made.route} answers {made.cohort}" if made else "starting"
            if step.launches > 1:
                text += f", launch {step.launch} of {step.launches}"
            bar.update(
                task,
                completed=step.done,
                total=step.total,
                description=f"{rollout.rollout}: {text}",
            )

        return replay(rollout, opener=opener, progress=show, notes=notes, serve=serve, until=until)
