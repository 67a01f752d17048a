"""What the collector holds, as evidence, and the verdict on it."""

import pyarrow as pa

from collector.client import Client
from collector.contract import Verdict
from evals.evidence import Evidence
from evals.gate import decide
from evals.pairs_table import from_table
from evals.policy import Policy
from evals.rollouts import require


def load_evidence(client: Client, rollout: str) -> Evidence:
    """Return the rollout's pairs; raises `SourceError` where the collector does not know it."""
    return from_table(load_pairs(client, rollout))


def load_pairs(client: Client, rollout: str) -> pa.Table:
    """Return the rollout's table of pairs; raises as `load_evidence`."""
    require(client, rollout)
    return client.pairs_table(rollout)


def judge(client: Client, rollout: str, policy: Policy, *, control: str | None = None) -> Verdict:
    """Decide on a rollout from what the collector holds; posts nothing."""
    equal = None if control is None else load_evidence(client, control)
    return decide(load_evidence(client, rollout), policy, rollout=rollout, control=equal)
