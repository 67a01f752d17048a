"""`draftgate acceptance`: acceptance by prompt."""

from pathlib import Path
from typing import Annotated

import typer

from collector.client import Client
from collector.client.command_line import Collector, Database
from collector.nouns import counted
from evals.cli.options import Rollout, usable
from evals.draft_data import hardest
from evals.errors import SourceError, WriteError

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def acceptance() -> None:
    """Look at acceptance prompt by prompt."""


@app.command()
def export(  # noqa: PLR0913  # one argument an option
    rollout: Rollout,
    *,
    to: Annotated[Path, typer.Option(help="File to write: JSON lines.")],
    prompts: Annotated[int, typer.Option(min=1, help="Maximum number of prompts to write.")] = 1000,
    below: Annotated[
        float, typer.Option(min=0, max=1, help="Only prompts whose acceptance is at most this.")
    ] = 1.0,
    min_drafts: Annotated[
        int,
        typer.Option(min=1, help="Draft tokens that a prompt must have, over all of its repeats."),
    ] = 20,
    cohort: Annotated[
        str | None, typer.Option(help="Only prompts of this cohort. Default: all.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Write the candidate's prompts with the lowest acceptance, to retrain its draft from.

    A line has `id`, `conversations` and, if tools were offered, `tools`: the form that speculators
    and SpecForge read. Answers are the candidate's own. Text must have been kept. Needs a key with
    the scopes read and content.

    Example: draftgate acceptance export support-k4 --to hardest.jsonl --prompts 500
    """
    with usable():
        if to.exists() and not force:
            raise WriteError(f"{to}: exists; give --force to replace it")
        with Client.opened(collector, database) as client:
            found = hardest.hardest(client, rollout, cohort=cohort, min_drafts=min_drafts)
            chosen = [one for one in found if one.rate <= below][:prompts]
            if not chosen:
                raise SourceError(
                    f"rollout {rollout}: none of the candidate's prompts has {min_drafts} draft "
                    f"tokens, usable counts, and an acceptance of at most {below:g}"
                )
            written = hardest.write(client, rollout, chosen, to, cohort=cohort)
    for why, count in sorted(written.left_out.items()):
        typer.echo(f"left out: {count} × {why}", err=True)
    kept = written.prompts
    acceptance_of = f"acceptance {kept[0].rate:.3f} to {kept[-1].rate:.3f}"
    typer.echo(f"{to}: {len(kept):,} of {counted(len(found), 'prompt')}, {acceptance_of}")
