"""Load a rollout's evidence from the collector, and judge it."""

from dataclasses import replace

from collector.client import Client
from collector.columns import Table
from collector.contract import Verdict
from evals.evidence import Evidence
from evals.evidence_parts import parts_of, with_part
from evals.gate import decide
from evals.pairs_table import from_table
from evals.policy import Policy
from evals.rollouts import require
from evals.verdict_history import with_history


def load_evidence(client: Client, rollout: str) -> Evidence:
    """Return the rollout's pairs; raises `SourceError` if the collector does not know it."""
    return from_table(load_pairs(client, rollout))


def load_pairs(client: Client, rollout: str, *, younger_than: int = 0) -> Table:
    """Return the rollout's table of pairs, with the evidence part in its metadata.

    `younger_than` leaves out pairs that arrived up to that generation's number; 0 takes all.
    Raises like `load_evidence`.
    """
    require(client, rollout)
    return with_part(client.pairs_table(rollout, younger_than=younger_than), rollout)


def judge(client: Client, rollout: str, policy: Policy, *, control: str | None = None) -> Verdict:
    """Judge a rollout from the collector's data; does not post the verdict."""
    table = load_pairs(client, rollout)
    equal = None if control is None else load_pairs(client, control)
    verdict = decide(
        from_table(table),
        policy,
        rollout=rollout,
        control=None if equal is None else from_table(equal),
    )
    parts = parts_of(table) if equal is None else parts_of(table) + parts_of(equal, control=True)
    verdict = replace(verdict, evidence=parts)
    return with_history(verdict, client.history(rollout), policy)
