"""`draftgate register`: register a rollout's policy before its first request."""

import typer

from collector.client import Client
from collector.client.command_line import Collector, Database
from evals import policy as policies
from evals.cli.options import PolicyFile, Rollout, usable
from evals.exit_codes import ExitCode
from evals.policy.registration import registration_for

app = typer.Typer(add_completion=False)


@app.command()
def register(
    rollout: Rollout,
    *,
    policy: PolicyFile = "default",
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Register the policy that a rollout is to be judged by, before its first request.

    `draftgate run`, `route` and `watch` do so by themselves. The newest registration before the
    first pair counts; a later one is kept as late, with exit 3.
    Needs a key with the scopes read and judge.

    Example: draftgate register support-k4 --policy policy.yaml
    """
    with usable():
        chosen = policies.by_name(policy)
        with Client.opened(collector, database) as client:
            stored = client.register_policy(rollout, registration_for(client, rollout, chosen))
    which = f"policy {stored.policy_name} {stored.policy_hash[:12]}"
    if stored.before_first_pair:
        typer.echo(f"{rollout}: {which} is registered, before the first pair")
        return
    typer.echo(
        f"{rollout}: {which} is registered after the first pair was received, so that verdicts do "
        "not count it as registered; name a new rollout, and register its policy first"
    )
    raise typer.Exit(ExitCode.INCONCLUSIVE)
