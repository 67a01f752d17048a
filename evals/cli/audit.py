"""`draftgate audit`: whether sampled answers are the baseline's."""

import json
import math
from typing import Annotated

import typer

from collector.contract import Arm
from evals.cli.options import Collector, Database, ExitCode, Rollout, open_client, usable
from evals.lossless.rescoring import TransformersRescorer
from evals.lossless.sampled_answers import ENOUGH_TOKENS, Audited, audit
from evals.lossless.sampling_audit import ALARM
from evals.rollouts import require

app = typer.Typer(add_completion=False)


@app.command("audit")
def audit_(  # noqa: PLR0913  # one argument an option
    rollout: Rollout,
    rescore: Annotated[str, typer.Option("--rescore", help="The baseline's model.")],
    *,
    arm: Annotated[Arm, typer.Option(help="Arm whose answers are audited.")] = Arm.CANDIDATE,
    tolerance: Annotated[
        float, typer.Option(min=0.0, max=0.05, help="Bias that numerics may cause.")
    ] = 0.005,
    seed: Annotated[int, typer.Option(min=0, help="Of the random ranks.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Audit sampled answers token by token: exit 0 quiet, 1 alarm, 2 unusable, 3 too few tokens.

    Example: draftgate audit support-k4 --rescore models/target
    """
    with usable(), open_client(collector, database) as client:
        require(client, rollout)
        found = audit(
            client, rollout, TransformersRescorer(rescore), arm=arm, tolerance=tolerance, seed=seed
        )
    exit_code = _exit(found)
    if as_json:
        document = {
            "rollout": rollout,
            "arm": arm.value,
            "outcome": exit_code.name.lower(),
            "answers": found.answers,
            "tokens": found.tokens,
            "left_out": dict(found.left_out),
            "log_e": found.log_e,
            "tolerance": tolerance,
            "seed": seed,
        }
        typer.echo(json.dumps(document))
    else:
        typer.echo(f"{rollout}, {arm.value}: {_words(found)}")
    raise typer.Exit(exit_code)


def _exit(found: Audited) -> ExitCode:
    if found.selected:
        return ExitCode.INCONCLUSIVE
    if found.alarmed:
        return ExitCode.FAIL
    return ExitCode.PASS if found.tokens >= ENOUGH_TOKENS else ExitCode.INCONCLUSIVE


def _words(found: Audited) -> str:
    seen = f"{found.tokens:,} tokens of {found.answers:,} answers"
    said = f"e-value {math.exp(min(found.log_e, 50.0)):.3g}, an alarm at {ALARM:g}"
    if found.selected:
        text = f"inconclusive: too many answers cannot be cut into their tokens, {seen} ({said})"
    elif found.alarmed:
        text = f"ALARM after {seen} ({said}): these are not the baseline's samples"
    elif found.tokens >= ENOUGH_TOKENS:
        text = f"quiet over {seen} ({said})"
    else:
        lacking = ENOUGH_TOKENS - found.tokens
        text = f"inconclusive: quiet over {seen} ({said}), needs {lacking:,} more tokens"
    left_out = [f"{count} {reason}" for reason, count in sorted(found.left_out.items())]
    return f"{text}; left out: {', '.join(left_out)}" if left_out else text
