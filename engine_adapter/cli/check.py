"""`draftgate check`: find problems that would spoil a comparison before it is run."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from collector.nouns import counted
from engine_adapter.errors import AdapterError
from engine_adapter.preflight import PreflightFinding, Severity, examine
from engine_adapter.run import rollout_file
from engine_adapter.run.server_process import all_serving

app = typer.Typer(add_completion=False)

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="The rollout file (YAML).")],
    *,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print each finding's check, severity, message, evidence and fix as JSON.",
        ),
    ] = False,
) -> None:
    """Probe all routes, and report what would spoil their comparison.

    Each arm answers one short request. Exit code 0: no error, 1: errors, 2: unusable input.

    Example: draftgate check rollout.yaml
    """
    errors = Console(stderr=True)
    try:
        rollout = rollout_file.read(file)
        with all_serving(file, rollout) as served:
            found = asyncio.run(examine(served))
    except AdapterError as exc:
        errors.print(f"error: {exc}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from exc
    if as_json:
        typer.echo(json.dumps({"rollout": rollout.rollout, "findings": list(map(asdict, found))}))
    else:
        _print(found)
    if any(finding.severity is Severity.ERROR for finding in found):
        raise typer.Exit(1)


def _print(found: Sequence[PreflightFinding]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for finding in found:
        colour = _COLOURS[finding.severity]
        console.print(f"{finding.severity}: {finding.message}", style=colour, markup=False)
        console.print(f"  seen: {finding.evidence}", markup=False)
        console.print(f"  fix:  {finding.fix}", markup=False)
    counts = {kind: sum(f.severity is kind for f in found) for kind in Severity}
    console.print(", ".join(counted(count, kind) for kind, count in counts.items()))
