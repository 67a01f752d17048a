"""Load a rollout's evidence from the collector, and judge it."""

from dataclasses import replace
from typing import NamedTuple

from collector.client import Client
from collector.columns import Table
from collector.contract import Verdict
from evals.evidence.columns import Evidence
from evals.evidence.pairs_table import from_table
from evals.evidence.parts import parts_of, with_part
from evals.gate import decide
from evals.lossless.comparer import Comparer
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


class ComparedWith(NamedTuple):
    """Comparisons of a rollout beside that with its baseline."""

    control: str | None = None
    """The A/A rollout."""
    comparer: Comparer | None = None
    """Compares the answers themselves, for a lossless policy."""

    def tables(self, client: Client, rollout: str) -> tuple[Table, Table | None]:
        """Return the rollout's table of pairs and the A/A control's; raises like `load_pairs`."""
        table = load_pairs(client, rollout)
        equal = None if self.control is None else (self.control, load_pairs(client, self.control))
        if self.comparer is not None:
            return self.comparer.compared(client, {rollout: table}, equal)
        return table, None if equal is None else equal[1]


def judge(client: Client, rollout: str, policy: Policy, *, control: str | None = None) -> Verdict:
    """Judge a rollout from the collector's data; does not post the verdict."""
    return judge_tables(client, rollout, policy, ComparedWith(control).tables(client, rollout))


def judge_tables(
    client: Client, rollout: str, policy: Policy, tables: tuple[Table, Table | None]
) -> Verdict:
    """Judge a rollout's table of pairs, and the A/A control's; does not post the verdict."""
    table, equal = tables
    verdict = decide(
        from_table(table),
        policy,
        rollout=rollout,
        control=None if equal is None else from_table(equal),
    )
    parts = parts_of(table) if equal is None else parts_of(table) + parts_of(equal, control=True)
    verdict = replace(verdict, evidence=parts)
    return with_history(verdict, client.history(rollout), policy)
