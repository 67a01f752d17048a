"""`draftgate audit`: test whether sampled answers follow the baseline's distribution."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from collector.client import Client
from collector.client.command_line import Collector, Database
from collector.contract import Arm
from evals.cli.options import RescoreDraft, Rollout, usable
from evals.exit_codes import EXIT
from evals.lossless.rescoring import TransformersRescorer
from evals.lossless.sampled_answers import ArmAudit, AuditResult, AuditTally
from evals.lossless.sampled_judgement import judge
from evals.rollouts import require

app = typer.Typer(add_completion=False)


@app.command("audit")
def audit_(  # noqa: PLR0913  # one argument an option
    rollout: Rollout,
    rescore: Annotated[
        str, typer.Option("--rescore", help="The baseline's model: a folder or transformers name.")
    ],
    *,
    rescore_draft: RescoreDraft = None,
    arm: Annotated[
        Arm, typer.Option(help="Arm to judge; the baseline is judged by itself.")
    ] = Arm.CANDIDATE,
    tolerance: Annotated[
        float, typer.Option(min=0.0, max=0.05, help="Bias that numerics may cause.")
    ] = 0.005,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the random numbers that break ties.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Audit sampled answers token by token: exit 0 quiet, 1 alarm, 2 unusable, 3 inconclusive.

    The baseline's own answers are audited as well: if they alarm too, the model or the sampler is
    not the one that was rescored, and the audit is inconclusive.
    Needs a key with the scopes read and content.

    Example: draftgate audit support-k4 --rescore models/target
    """
    with usable(), Client.opened(collector, database) as client:
        require(client, rollout)
        rescorer = TransformersRescorer(rescore)
        draft = None if rescore_draft is None else rescorer.draft(rescore_draft)
        audited = {
            one: _audited(client, rollout, one, ArmAudit(rescorer, tolerance, seed, draft=draft))
            for one in dict.fromkeys((arm, Arm.BASELINE))
        }
    control = None if arm is Arm.BASELINE else audited[Arm.BASELINE]
    judged = judge(audited[arm], control)
    if as_json:
        document = {
            "rollout": rollout,
            "arm": arm.value,
            "outcome": EXIT[judged.outcome].name.lower(),
            "message": judged.words,
            **_document(audited[arm]),
            "baseline": None if control is None else _document(control),
            "tolerance": tolerance,
            "seed": seed,
        }
        typer.echo(json.dumps(document))
    else:
        typer.echo(f"{rollout}, {arm.value}: {judged.words}{_left_out(audited[arm])}")
    raise typer.Exit(EXIT[judged.outcome])


def _audited(client: Client, rollout: str, arm: Arm, audit: ArmAudit) -> AuditResult:
    """Audit all answers of an arm, with a progress bar on a terminal."""
    console, tally = Console(stderr=True), AuditTally()
    answers = (
        one
        for one in client.generations(rollout, arm=arm, content=True)
        if one.sentinel is None  # greedy, whatever the rollout samples
    )
    for one in track(
        answers, f"{arm.value}'s answers", console=console, disable=not console.is_terminal
    ):
        tally.add(audit.take(one))
    return tally.audited()


def _document(audited: AuditResult) -> dict[str, object]:
    return {
        "answers": audited.answers,
        "tokens": audited.law.tokens,
        "uncertain_tokens": round(audited.law.uncertain, 1),
        "drafted_tokens": audited.drafted_tokens,
        "left_out": dict(audited.left_out),
        "log_e": audited.law.log_e,
        "seeded": {"tokens": audited.seeded.tokens, "log_e": audited.seeded.log_e},
        "unseeded": dict(audited.unseeded),
    }


def _left_out(audited: AuditResult) -> str:
    counts = [f"{count:,} {reason}" for reason, count in sorted(audited.left_out.items())]
    return f"; left out: {', '.join(counts)}" if counts else ""
