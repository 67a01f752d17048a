"""`draftgate watch`: judge while traffic flows, and switch a harmful rollout off."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from collector.client import Client, ClientError
from collector.client.command_line import Collector, Database
from evals import policy as policies
from evals.cli.options import PolicyOfRollout, Rollout, usable
from evals.exit_codes import EXIT, ExitCode
from evals.policy import Policy
from evals.policy.registration import policy_for, register_once
from evals.report.terminal import to_json
from evals.watch.screen import line, screen
from evals.watch.verdict import to_verdict
from evals.watch.watcher import StepResult, Watcher

app = typer.Typer(add_completion=False)
Show = Callable[[StepResult | None, str | None], None]
"""Called with the newest state (None before the first) and the current problem, if any."""


@app.command()
def watch(  # noqa: PLR0913  # one argument an option
    rollout: Rollout,
    *,
    policy: PolicyOfRollout = None,
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Judge the stored pairs, print the state, and exit as `gate` does."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; say what would be done.")
    ] = False,
    every_s: Annotated[
        float, typer.Option("--every", min=0.1, help="Seconds between checks for new pairs.")
    ] = 2.0,
    wait_s: Annotated[
        float,
        typer.Option(
            "--wait",
            min=0,
            help="Seconds to wait for a first answer: for a collector that is not up, or a rollout "
            "without data; then exit code 2.",
        ),
    ] = 600.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdict as JSON at the end.")
    ] = False,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Judge a rollout while traffic flows, and switch it off on proven harm.

    Without --policy it judges by the policy that is registered; if none is, it registers its own.
    Continues where it, or another watcher, stopped; Ctrl-C ends it. Exit 0 pass, 1 fail,
    2 unusable, 3 undecided.

    Posts a verdict when a cell's outcome changes. Needs a key with the scopes read, judge and
    admin; with --dry-run only read.

    Example: draftgate watch support-k4 --policy policy.yaml
    """
    with usable():
        if policy is not None:
            policies.by_name(policy)  # report an unusable file before connecting to a collector
        with Client.opened(collector, database) as client:
            wait = None if once else _Wait(every_s, wait_s)
            chosen = _policy(client, rollout, policy, wait)
            watcher = Watcher(client, rollout, chosen, dry_run=dry_run)

            def register() -> None:
                if not dry_run:
                    register_once(client, rollout, chosen)

            if once:
                register()
                result: StepResult | None = watcher.catch_up()
            else:
                with _shown(chosen, dry_run=dry_run, quiet=as_json) as show:
                    result = _until_stopped(register, watcher, _Wait(every_s, wait_s), show)
    if result is None:
        raise typer.Exit(ExitCode.INCONCLUSIVE)
    if as_json:
        typer.echo(to_json(to_verdict(result.watch, chosen)))
    elif once:
        Console().print(
            screen(result.watch, chosen, result.switch, _note(result, dry_run), time.time_ns())
        )
    raise typer.Exit(EXIT[result.watch.outcome])


@dataclass(slots=True)
class _Wait:
    """The wait for a first answer, which begins with the first failure."""

    every_s: float
    """Seconds between tries."""
    longest_s: float
    _until_s: float | None = None

    def is_over(self) -> bool:
        """Return whether a failure now is one too many."""
        if self._until_s is None:
            self._until_s = time.monotonic() + self.longest_s
        return time.monotonic() >= self._until_s

    def __str__(self) -> str:
        return f"waiting up to {self.longest_s:g} s"


def _policy(client: Client, rollout: str, given: str | None, wait: _Wait | None) -> Policy:
    """Return the policy to watch by; wait for a collector that does not answer."""
    told = False
    while True:
        try:
            return policy_for(client, rollout, given).policy
        except ClientError as exc:
            if wait is None or wait.is_over():
                raise
            if not told:
                typer.echo(f"{wait}: {exc}", err=True)
            told = True
            time.sleep(wait.every_s)


def _until_stopped(
    register: Callable[[], None], watcher: Watcher, wait: _Wait, show: Show
) -> StepResult | None:
    """Watch until SIGINT or SIGTERM; retry while the collector does not answer."""
    stopped, result, registered = threading.Event(), None, False
    with _stopping(stopped):
        while not stopped.is_set():
            try:
                if not registered:
                    register()
                    registered = True
                result = watcher.step()
                show(result, None)
                if result.more:
                    continue
            except ClientError as exc:
                if result is None and wait.is_over():
                    raise
                tries = wait if result is None else f"trying again every {wait.every_s:g} s"
                show(result, f"{tries}: {exc}")
            stopped.wait(wait.every_s)
    return result


@contextmanager
def _stopping(stopped: threading.Event) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _shown(policy: Policy, *, dry_run: bool, quiet: bool) -> Iterator[Show]:
    """Show a live view on a terminal; elsewhere print a line to standard error on each change."""
    console = Console(stderr=quiet)
    if not console.is_terminal:
        yield _lines(policy, dry_run=dry_run)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:

        def show(result: StepResult | None, trouble: str | None) -> None:
            if result is None:
                live.update(trouble or "", refresh=True)
                return
            note = trouble or _note(result, dry_run)
            live.update(
                screen(result.watch, policy, result.switch, note, time.time_ns()), refresh=True
            )

        yield show


def _lines(policy: Policy, *, dry_run: bool) -> Show:
    last = ""

    def show(result: StepResult | None, trouble: str | None) -> None:
        nonlocal last
        note = trouble if result is None else trouble or _note(result, dry_run)
        parts = [] if result is None else [line(result.watch, policy, result.switch)]
        text = " | ".join([*parts, *([] if note is None else [note])])
        if text != last:
            typer.echo(f"{time.strftime('%H:%M:%S')} {text}", err=True)
        last = text

    return show


def _note(result: StepResult, dry_run: bool) -> str | None:  # noqa: FBT001  # one caller a view
    if result.set_off is not None:
        return "dry run: the switch would be set off now" if dry_run else "the switch is set off"
    return "dry run: nothing is stored, posted or set" if dry_run else None
