"""`draftgate gate`: decide on a rollout."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from rich.console import Console

from collector.client import Client
from evals import bundle as bundles
from evals import policy as policies
from evals.cli.options import (
    EXIT,
    Collector,
    Database,
    PolicyOfRollout,
    usable,
)
from evals.cli.signing import JudgedBy, SignCommand, Signing, SignKey, signing_of
from evals.errors import SourceError, WriteError
from evals.evidence_parts import pooled
from evals.gate import hypothesis, plan
from evals.lossless.comparer import Comparer
from evals.pairs_table import from_table
from evals.policy import Policy
from evals.registration import policy_for
from evals.report import print_verdict
from evals.report_formats import FORMATS
from evals.source import load_pairs
from evals.watch.explain import explained

app = typer.Typer(add_completion=False)


class Format(StrEnum):
    """The output format of a verdict."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    GITHUB = "github"


@app.command()
def gate(  # noqa: PLR0913  # one argument an option
    rollouts: Annotated[
        list[str],
        typer.Argument(
            metavar="ROLLOUT...",
            help="Name of the rollout; with earlier ones of the same candidate after it, all of "
            "their pairs are judged together.",
        ),
    ],
    *,
    policy: PolicyOfRollout = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Pass only under the policy that was registered beforehand."),
    ] = False,
    since_step: Annotated[
        bool,
        typer.Option(
            "--since-step",
            help="Judge only pairs that arrived after the ramp's newest step, as promote wants.",
        ),
    ] = False,
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
    sign_key: SignKey = None,
    sign_command: SignCommand = None,
    judged_by: JudgedBy = None,
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

    Example: draftgate gate support-k4 --policy policy.yaml --strict
    """
    rollout = rollouts[0]
    with usable():
        files = [_file_of(one) for one in writes or ()]
        sign = _signing_for(bundle, signing_of(sign_key, sign_command, judged_by))
        if policy is not None:
            policies.by_name(policy)  # report an unusable file before connecting to a collector
        with Client.opened(collector, database) as client:
            chosen, text, source = policy_for(client, rollout, policy)
            given = _tables(client, rollouts, chosen, since_step=since_step)
            table = pooled(given)
            if explain:
                lines = [hypothesis(cell) for cell in plan(from_table(table), chosen)]
                typer.echo("\n".join([*lines, *explained(chosen)]))
                return
            equal = None if control is None else load_pairs(client, control)
            if chosen.lossless is not None:
                comparer = Comparer(rescore, chosen.lossless.tolerance)
                equal = comparer.control(client, control, equal)
                named = zip(rollouts, given, strict=True)
                table = pooled([comparer.rollout(client, name, one) for name, one in named])
            history = client.history(rollout)
            inputs = bundles.Inputs(rollout, text, table, equal, history, strict)
            verdict = bundles.judge(inputs, source)
            if bundle is not None:
                bundles.write(bundle, inputs, verdict, sign)
            for form_of, path in files:
                _write(path, FORMATS[form_of](verdict))
            if post:
                client.post_verdict(verdict)
    if policy is None:
        typer.echo(f"judged by {source}; --policy names another", err=True)
    if as_json:
        form = Format.JSON
    if form is Format.TEXT:
        print_verdict(Console(), verdict)
    else:
        typer.echo(FORMATS[form.value](verdict))
    raise typer.Exit(EXIT[verdict.outcome])


def _tables(
    client: Client, rollouts: Sequence[str], policy: Policy, *, since_step: bool
) -> list[pa.Table]:
    """Return each rollout's pairs; raises `SourceError` if they cannot be judged together."""
    if len(set(rollouts)) < len(rollouts):
        raise SourceError(f"rollouts {', '.join(rollouts)}: one stands twice; name each once")
    if len(rollouts) > 1 and not policy.paired:
        raise SourceError(
            f"rollouts {', '.join(rollouts)}: split traffic is not judged together, for shares and "
            "load may differ between them; use `draftgate watch` on one"
        )
    if len(rollouts) > 1 and since_step:
        raise SourceError("--since-step: a ramp is of one rollout; name one")
    after = 0
    if since_step:
        step = next(iter(client.ramp(rollouts[0])), None)
        if step is None:
            raise SourceError(f"rollout {rollouts[0]}: nobody has begun its ramp")
        after = step.arrived_up_to
    tables = [load_pairs(client, name, younger_than=after) for name in rollouts]
    if len(rollouts) > 1:
        _require_no_looks(rollouts, tables)
    return tables


def _require_no_looks(rollouts: Sequence[str], tables: Sequence[pa.Table]) -> None:
    """Raise `SourceError` if a rollout declared looks, whose level is spent."""
    for name, table in zip(rollouts, tables, strict=True):
        if from_table(table).looks is not None:
            raise SourceError(
                f"rollout {name}: ended when it was decided, so that it is not judged together "
                "with others; name it alone"
            )


def _signing_for(bundle: Path | None, sign: Signing | None) -> Signing | None:
    if sign is not None and bundle is None:
        raise WriteError("--sign-key, --sign-command: a bundle is signed; give --bundle too")
    return sign


def _file_of(given: str) -> tuple[str, Path]:
    """Parse a `--write` option into format and file."""
    name, _, path = given.partition("=")
    if name not in FORMATS or not path:
        raise WriteError(f"--write {given}: wanted FORMAT=FILE, with one of {', '.join(FORMATS)}")
    return name, Path(path)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as exc:
        raise WriteError(f"{path}: cannot be written ({exc.strerror})") from exc
