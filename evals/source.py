"""What the collector holds, as evidence, and the verdict on it."""

from dataclasses import replace

import pyarrow as pa

from collector.client import Client
from collector.contract import Verdict
from evals.evidence import Evidence
from evals.evidence_parts import named, parts_of
from evals.gate import decide
from evals.pairs_table import from_table
from evals.policy import Policy
from evals.rollouts import require
from evals.verdict_history import with_history


def load_evidence(client: Client, rollout: str) -> Evidence:
    """Return the rollout's pairs; raises `SourceError` where the collector does not know it."""
    return from_table(load_pairs(client, rollout))


def load_pairs(client: Client, rollout: str, *, younger_than: int = 0) -> pa.Table:
    """Return the rollout's table of pairs, with the part of the stored data that it is.

    Of pairs that arrived after a generation, or of all. Raises as `load_evidence`.
    """
    require(client, rollout)
    return named(client.pairs_table(rollout, younger_than=younger_than), rollout)


def judge(client: Client, rollout: str, policy: Policy, *, control: str | None = None) -> Verdict:
    """Decide on a rollout from what the collector holds; posts nothing."""
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
