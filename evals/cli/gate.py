"""`draftgate gate`: decide on a rollout."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from collector.client import Client
from collector.client.command_line import Collector, Database
from collector.columns import Table
from collector.contract import Family, Outcome, Verdict
from evals import bundle as bundles
from evals import policy as policies
from evals.arms import report as arm_report
from evals.arms.grid import grid
from evals.arms.interaction import interactions
from evals.cli.options import PolicyOfRollout, RescoreDraft, usable
from evals.cli.signing import JudgedBy, SignCommand, Signing, SignKey, signing_of
from evals.errors import SourceError, WriteError
from evals.evidence.pairs_table import from_table
from evals.evidence.parts import pooled
from evals.exit_codes import EXIT
from evals.gate import hypothesis, plan
from evals.lossless.comparer import Comparer
from evals.policy import Policy
from evals.policy.registration import ChosenPolicy, policy_for
from evals.report.formats import FORMATS
from evals.report.terminal import print_verdict
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
            metavar="ROLLOUT",
            help="Name of the rollout, or of a rollout file with `arms`; with earlier rollouts of "
            "the same candidate after it, all of their pairs are judged together.",
        ),
    ],
    *,
    policy: PolicyOfRollout = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Pass only under the registered policy; a pass under any other is inconclusive.",
        ),
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
        Format,
        typer.Option(
            "--format",
            help="How to print the verdict: text; json, all of it; markdown, for a pull "
            "request; junit, a test case per cell; github, workflow annotations.",
        ),
    ] = Format.TEXT,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Say what would be tested and how many pairs it needs, and decide nothing.",
        ),
    ] = False,
    control: Annotated[
        str | None,
        typer.Option("--control", help="A/A rollout, which must show no difference."),
    ] = None,
    rescore: Annotated[
        str | None,
        typer.Option(
            "--rescore",
            help="The baseline's model, a folder or transformers name: checks greedy answers "
            "for ties, and audits sampled ones.",
        ),
    ] = None,
    rescore_draft: RescoreDraft = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            "--bundle",
            help="Zip file to write: policy, pairs, control, history, verdict, and their hashes.",
        ),
    ] = None,
    sign_key: SignKey = None,
    sign_command: SignCommand = None,
    judged_by: JudgedBy = None,
    writes: Annotated[
        list[str] | None,
        typer.Option("--write", help="Also write FORMAT=FILE, such as junit=gate.xml; repeatable."),
    ] = None,
    post: Annotated[bool, typer.Option("--post/--no-post", help="Store the verdict.")] = True,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Decide whether a rollout may be released: exit 0 pass, 1 fail, 2 unusable, 3 inconclusive.

    The name of a rollout file with `arms` stands for all of its candidates: exit 0 if one of them
    passes, 1 if every one fails, else 3. Then `--bundle` and `--write` make a file for each, with
    the candidate's name in the file's.

    Example: draftgate gate support-k4 --policy policy.yaml --strict
    """
    rollout = rollouts[0]
    form = Format.JSON if as_json else form
    with usable():
        if policy is not None:
            policies.by_name(policy)  # report an unusable file before connecting to a collector
        wanted = _Wanted(
            policy=policy,
            strict=strict,
            since_step=since_step,
            control=control,
            rescore=rescore,
            rescore_draft=rescore_draft,
            bundle=bundle,
            sign=_signing_for(bundle, signing_of(sign_key, sign_command, judged_by)),
            files=[_file_of(one) for one in writes or ()],
            post=post,
        )
        with Client.opened(collector, database) as client:
            chosen = policy_for(client, rollout, policy)
            family = chosen.policy.family
            of_family = family is not None and rollouts == [family.name]
            if explain:
                names = [family.rollouts[0]] if family and of_family else rollouts
                table = pooled(_tables(client, names, chosen.policy, since_step=since_step))
                lines = [hypothesis(cell) for cell in plan(from_table(table), chosen.policy)]
                typer.echo("\n".join([*lines, *explained(chosen.policy)]))
                return
            if family and of_family:
                outcome = _decide_family(client, family, chosen, wanted, form)
            else:
                verdict, _ = _judged(client, rollouts, chosen, wanted)
                outcome = verdict.outcome
                _name_policy(chosen, policy)
                _print(verdict, form)
    raise typer.Exit(EXIT[outcome])


class _Wanted(NamedTuple):
    """The options that say how to judge, and where verdicts go."""

    policy: str | None
    """The policy that was given; `None`: the registered one or the default counts."""
    strict: bool
    since_step: bool
    control: str | None
    rescore: str | None
    rescore_draft: str | None
    bundle: Path | None
    sign: Signing | None
    files: Sequence[tuple[str, Path]]
    """Formats and files."""
    post: bool

    def named(self, arm: str) -> "_Wanted":
        """Return the options with a candidate's name in the names of the files."""
        return self._replace(
            bundle=None if self.bundle is None else _with(self.bundle, arm),
            files=[(form, _with(path, arm)) for form, path in self.files],
        )


def _with(path: Path, arm: str) -> Path:
    return path.with_name(f"{path.stem}-{arm}{path.suffix}")


def _judged(
    client: Client, rollouts: Sequence[str], chosen: ChosenPolicy, wanted: _Wanted
) -> tuple[Verdict, Table]:
    """Judge the rollouts together, write and post the verdict; return it with the judged pairs."""
    rollout, control = rollouts[0], wanted.control
    given = _tables(client, rollouts, chosen.policy, since_step=wanted.since_step)
    equal = None if control is None else (control, load_pairs(client, control))
    if chosen.policy.lossless is None:
        table, other = pooled(given), None if equal is None else equal[1]
    else:
        tolerance = chosen.policy.lossless.tolerance
        comparer = Comparer(wanted.rescore, tolerance, wanted.rescore_draft)
        named = dict(zip(rollouts, given, strict=True))
        table, other = comparer.compared(client, named, equal)
    history = client.history(rollout)
    inputs = bundles.Inputs(rollout, chosen.text, table, other, history, wanted.strict)
    verdict = bundles.judge(inputs, chosen.source)
    if wanted.bundle is not None:
        bundles.write(wanted.bundle, inputs, verdict, wanted.sign)
    for form, path in wanted.files:
        _write(path, FORMATS[form](verdict))
    if wanted.post:
        client.post_verdict(verdict)
    return verdict, table


def _decide_family(
    client: Client, family: Family, chosen: ChosenPolicy, wanted: _Wanted, form: Format
) -> Outcome:
    """Judge every candidate of a family, print the grid, and return its outcome."""
    if form in (Format.JUNIT, Format.GITHUB):
        raise WriteError(
            f"--format {form}: a family is printed as text, json or markdown; `--write "
            f"{form}=FILE` writes a file for each candidate, and `draftgate gate "
            f"{family.rollouts[0]}` prints one"
        )
    verdicts, tables = {}, {}
    for arm in family.arms:
        names = [family.rollout_of(arm)]
        verdicts[arm], tables[arm] = _judged(client, names, chosen, wanted.named(arm))
    found = grid(family, list(verdicts.values()))
    together = interactions(tables, family, chosen.policy)
    _name_policy(chosen, wanted.policy)
    if form is Format.JSON:
        typer.echo(arm_report.to_json(found, together, verdicts))
    elif form is Format.MARKDOWN:
        typer.echo(arm_report.to_markdown(found, together, verdicts))
    else:
        arm_report.print_grid(Console(), found, together, verdicts)
    return found.outcome


def _name_policy(chosen: ChosenPolicy, given: str | None) -> None:
    if given is None:
        typer.echo(f"judged by {chosen.source}; --policy names another", err=True)


def _print(verdict: Verdict, form: Format) -> None:
    if form is Format.TEXT:
        print_verdict(Console(), verdict)
    else:
        typer.echo(FORMATS[form.value](verdict))


def _tables(
    client: Client, rollouts: Sequence[str], policy: Policy, *, since_step: bool
) -> list[Table]:
    """Return each rollout's pairs; raises `SourceError` if they cannot be judged together."""
    if len(set(rollouts)) < len(rollouts):
        raise SourceError(f"rollouts {', '.join(rollouts)}: a name appears twice; give each once")
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


def _require_no_looks(rollouts: Sequence[str], tables: Sequence[Table]) -> None:
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
