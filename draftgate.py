"""The `draftgate` command: gathers the sub-commands; the only module that knows every package."""

import typer

import collector.cli
import dashboard.cli
import demo.cli
import engine_adapter.cli
import evals.cli

app = typer.Typer(
    name="draftgate",
    help="Prove, or disprove, that speculative decoding made serving faster and answers no worse.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _package in (engine_adapter.cli, collector.cli, evals.cli, dashboard.cli, demo.cli):
    app.add_typer(_package.app)


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
