"""The `draftgate` command's subcommands by name; the only module that knows every package."""

import re
from importlib import import_module, metadata
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

COMMANDS = {
    "run": (
        "engine_adapter.cli.run",
        ("Replay a workload on a baseline and its candidates, and send each generation as a span."),
    ),
    "check": (
        "engine_adapter.cli.check",
        "Probe all routes, and report what would spoil their comparison.",
    ),
    "sweep": (
        "engine_adapter.cli.sweep",
        "Run a rollout for every k, every number of requests in flight, or both.",
    ),
    "route": (
        "engine_adapter.cli.route",
        "Mirror, split or switch off a candidate's traffic, behind one OpenAI-compatible address.",
    ),
    "switch": (
        "engine_adapter.cli.switch",
        "Set a rollout's switch, or show it with its audit log, newest first.",
    ),
    "promote": (
        "engine_adapter.cli.promote",
        "Take the ramp's next step, which needs a newer passing verdict.",
    ),
    "drill": (
        "engine_adapter.cli.drill",
        (
            "Set the switch off under live traffic, time the last candidate request, and set it on"
            " again."
        ),
    ),
    "serve": ("collector.cli.serve", "Receive OTLP and serve the API, until interrupted."),
    "db": ("collector.cli.db", "Manage the database."),
    "keys": ("collector.cli.keys", "Manage API keys."),
    "notify": ("collector.cli.notify", "Manage notifications."),
    "unpaired": (
        "collector.cli.unpaired",
        "List generations that do not pair, and why.",
    ),
    "export": (
        "collector.cli.export",
        "Write a rollout's generations with their scores to a file.",
    ),
    "evaluate": (
        "evals.cli.evaluate",
        "Score the answers of rollouts that have no score yet.",
    ),
    "policy": ("evals.cli.policy", "Manage policy files."),
    "register": (
        "evals.cli.register",
        "Register the policy that a rollout is to be judged by, before its first request.",
    ),
    "gate": (
        "evals.cli.gate",
        (
            "Decide whether a rollout may be released: exit 0 pass, 1 fail, 2 unusable, 3"
            " inconclusive."
        ),
    ),
    "keygen": ("evals.cli.signing", "Make an Ed25519 key pair to sign bundles with."),
    "sign": (
        "evals.cli.signing",
        "Add a signature to a bundle.",
    ),
    "verify": (
        "evals.cli.verify",
        "Judge a bundle again, without a collector: exit 0 same verdict, 1 it differs, 2 unusable.",
    ),
    "comment": (
        "evals.cli.comment",
        "Put a verdict under a pull or merge request, as one comment that is kept up to date.",
    ),
    "history": (
        "evals.cli.history",
        "Print a rollout's verdicts by serving (engine, model, draft, k, fingerprint) and policy.",
    ),
    "watch": (
        "evals.cli.watch",
        "Judge a rollout while traffic flows, and switch it off on proven harm.",
    ),
    "advise": (
        "evals.cli.advise",
        "Say where speculation pays: keep it, change k, or disable it, by cohort and load.",
    ),
    "acceptance": ("evals.cli.acceptance", "Look at acceptance prompt by prompt."),
    "audit": (
        "evals.cli.audit",
        (
            "Audit sampled answers token by token: exit 0 quiet, 1 alarm, 2 unusable, 3"
            " inconclusive."
        ),
    ),
    "import": (
        "evals.cli.import_",
        "Write a public data set as a workload, or store another evaluator's scores of both arms.",
    ),
    "dashboard": ("dashboard.cli", "Serve the dashboard until Ctrl-C."),
    "demo": (
        "demo.cli",
        "Judge three candidates on real models: a good one, a broken one, and too little evidence.",
    ),
}
"""Each subcommand's module, which has its `app`, and its line in the list of commands.

The lines are here so that help imports no module: all of them together take seconds to import.
"""


VARIABLES = {
    "DRAFTGATE_COLLECTOR_URL": (
        "Collector that commands and the dashboard use, such as http://localhost:4318. Default:"
        " none."
    ),
    "DRAFTGATE_API_KEY": (
        "API key that commands, the dashboard and the router send to a collector. Default: none."
    ),
    "DRAFTGATE_CA_FILE": (
        "Certificates (PEM) by which a collector is trusted. Default: the system's."
    ),
    "DRAFTGATE_ROUTER_KEY": "Client key that drill sends to a router. Default: none.",
    "DRAFTGATE_PROPOSED_CONVENTIONS": (
        "If true, run and route send the counts of speculation also by the names proposed to"
        " OpenTelemetry. Default: false."
    ),
}
"""Environment variables of several commands, or without an option."""

# Help that is a docstring has its source's line ends; a terminal is rarely as wide as the source.
_SOURCE_LINE_END = re.compile(r"(?<=[^\n])\n(?!\n|Example)")


def load(name: str) -> Any:  # a click command, of which typer bundles a copy
    """Import and return the command, or group of commands, of this name."""
    found = typer.main.get_command(import_module(COMMANDS[name][0]).app)
    command = getattr(found, "commands", {}).get(name, found)
    for one in (command, *getattr(command, "commands", {}).values()):
        one.help = _SOURCE_LINE_END.sub(" ", one.help or "")
    return command


class _OnDemand(TyperGroup):
    """Lists commands without importing them, and imports only the one that is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, (_, line) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=line))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, load(name) if name is not None else found, rest


app = typer.Typer(
    name="draftgate",
    help="Prove, or disprove, that speculative decoding made serving faster and answers no worse.",
    epilog="Environment variables:\n\n"
    + "\n\n".join(f"{name}: {text}" for name, text in VARIABLES.items()),
    cls=_OnDemand,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:  # noqa: FBT001  # typer gives the flag's value
    if asked:
        typer.echo(f"draftgate {metadata.version('draftgate')}")
        raise typer.Exit


@app.callback()
def draftgate(
    *,
    version: Annotated[  # the callback has it
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Prove, or disprove, that speculative decoding made serving faster and answers no worse."""
