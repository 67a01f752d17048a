"""The evaluation commands, one file a verb."""

import typer

from evals.cli import advise, audit, evaluate, gate, import_, watch

app = typer.Typer(no_args_is_help=True, add_completion=False)
for _verb in (evaluate, gate, watch, advise, audit, import_):
    app.add_typer(_verb.app)
