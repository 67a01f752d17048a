"""`draftgate gate` and `draftgate verify`: decide, and decide again."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from collector.contract import Outcome
from evals import bundle as bundles
from evals import policy as policies
from evals.cli.options import (
    Collector,
    Database,
    ExitCode,
    PolicyFile,
    Rollout,
    open_client,
    usable,
)
from evals.errors import WriteError
from evals.gate import hypothesis, plan
from evals.lossless.answers import noise_of, with_divergences
from evals.lossless.rescoring import TransformersRescorer
from evals.pairs_table import from_table
from evals.report import print_verdict
from evals.report_formats import FORMATS
from evals.source import load_pairs
from evals.watch.explain import explained

app = typer.Typer(add_completion=False)


class Format(StrEnum):
    """How a verdict is printed."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    GITHUB = "github"


EXIT = {  # of `gate`, and of `watch`
    Outcome.PASS: ExitCode.PASS,
    Outcome.FAIL: ExitCode.FAIL,
    Outcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}


@app.command()
def gate(  # noqa: PLR0913  # one argument an option
    rollout: Rollout,
    *,
    policy: PolicyFile = "default",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdict as JSON: --format json.")
    ] = False,
    form: Annotated[
        Format, typer.Option("--format", help="How to print the verdict.")
    ] = Format.TEXT,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what would be tested, and decide nothing.")
    ] = False,
    control: Annotated[
        str | None,
        typer.Option("--control", help="A/A rollout, in which no difference may be found."),
    ] = None,
    rescore: Annotated[
        str | None,
        typer.Option("--rescore", help="The baseline's model, to rescore where answers differ."),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", help="Zip to write, with the verdict and all it was made of."),
    ] = None,
    writes: Annotated[
        list[str] | None,
        typer.Option(
            "--write", help="FORMAT=FILE to write too, such as junit=gate.xml; repeatable."
        ),
    ] = None,
    post: Annotated[
        bool, typer.Option("--post/--no-post", help="Store the verdict in the collector.")
    ] = True,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Decide whether a rollout may be released: exit 0 pass, 1 fail, 2 unusable, 3 inconclusive.

    Example: draftgate gate support-k4 --policy policy.yaml
    """
    with usable():
        text = policies.named_text(policy)
        chosen = policies.parse(text, policy)
        files = [_file_of(one) for one in writes or ()]
        with open_client(collector, database) as client:
            table = load_pairs(client, rollout)
            if explain:
                lines = [hypothesis(cell) for cell in plan(from_table(table), chosen)]
                typer.echo("\n".join([*lines, *explained(chosen)]))
                return
            equal = None if control is None else load_pairs(client, control)
            if chosen.lossless is not None:
                rescorer = None if rescore is None else TransformersRescorer(rescore)
                noise = 0.0
                if control is not None and equal is not None:
                    equal = with_divergences(client, control, equal, rescorer)
                    noise = noise_of(equal)
                table = with_divergences(client, rollout, table, rescorer, noise=noise)
            inputs = bundles.Inputs(rollout, text, table, equal)
            verdict = bundles.judge(inputs, policy)
            if bundle is not None:
                bundles.write(bundle, inputs, verdict)
            for form_of, path in files:
                _write(path, FORMATS[form_of](verdict))
            if post:
                client.post_verdict(verdict)
    if as_json:
        form = Format.JSON
    if form is Format.TEXT:
        print_verdict(Console(), verdict)
    else:
        typer.echo(FORMATS[form.value](verdict))
    raise typer.Exit(EXIT[verdict.outcome])


def _file_of(given: str) -> tuple[str, Path]:
    """Return format and file of a `--write`."""
    name, _, path = given.partition("=")
    if name not in FORMATS or not path:
        raise WriteError(f"--write {given}: wanted FORMAT=FILE, with one of {', '.join(FORMATS)}")
    return name, Path(path)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as exc:
        raise WriteError(f"{path}: cannot be written ({exc.strerror})") from exc


@app.command()
def verify(
    bundle: Annotated[Path, typer.Argument(help="Zip that `gate --bundle` wrote.")],
) -> None:
    """Judge a bundle again, without a collector: exit 0 same verdict, 1 it differs, 2 unusable.

    Example: draftgate verify support-k4.zip
    """
    with usable():
        differing = bundles.verify(bundle)
    for line in differing:
        typer.echo(line)
    if differing:
        typer.echo(f"error: {bundle}: judged again, the verdict differs", err=True)
        raise typer.Exit(ExitCode.FAIL)
    typer.echo(f"{bundle}: the same verdict, byte for byte")
