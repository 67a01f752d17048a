"""Derive a stored verdict again, from the pairs that it names and the registered policy.

`python -m evals.rederivation COLLECTOR ROLLOUT VERDICT` exits 0 if the verdict is the same, and 1
with the reason if not.
"""

import sys

from collector.client import Client
from collector.columns import Table
from collector.contract import EvidencePart, StoredVerdict, Verdict
from collector.data_hash import pairs_hash
from evals import policy as policies
from evals.errors import EvalsError
from evals.evidence.pairs_table import from_table
from evals.gate import decide
from evals.lossless.comparer import Comparer
from evals.policy import Policy


def why_not(client: Client, stored: StoredVerdict, rescore: str | None = None) -> str | None:
    """Return why a verdict cannot be relied on; `None` if the derivation gives the same verdict.

    The pairs are judged under the policy that was registered before the rollout's first pair.
    Under a lossless policy, answers are rescored if `rescore` names a model, like `gate --rescore`.
    """
    verdict = stored.verdict
    registered = client.history(verdict.rollout).registered
    if registered is None:
        return f"no policy was registered for {verdict.rollout} before its first pair"
    judged = [part for part in verdict.evidence if not part.control]
    if [part.rollout for part in judged] != [verdict.rollout]:
        return "it names no pairs of this rollout alone, from which it could be derived again"
    try:
        policy = policies.parse(registered.text, "the registered policy")
        again = _decide_again(client, verdict, policy, rescore)
    except EvalsError as exc:
        return str(exc).splitlines()[0]
    if _decisions(again) != _decisions(verdict):
        return f"derived again it says: {again.outcome}: {again.summary}"
    return None


def _decide_again(client: Client, verdict: Verdict, policy: Policy, rescore: str | None) -> Verdict:
    given = {part.control: (part.rollout, _table(client, part)) for part in verdict.evidence}
    table, equal = given[False][1], given[True][1] if True in given else None
    if policy.lossless is not None:
        comparer = Comparer(rescore, policy.lossless.tolerance)
        table, equal = comparer.compared(client, dict([given[False]]), given.get(True))
    control = None if equal is None else from_table(equal)
    return decide(from_table(table), policy, rollout=verdict.rollout, control=control)


def _table(client: Client, part: EvidencePart) -> Table:
    table = client.pairs_table(
        part.rollout,
        younger_than=part.arrived_after,
        arrived_up_to=part.arrived_up_to,
        scored_up_to=part.scored_up_to,
    )
    if pairs_hash(table) != part.data_hash:
        raise EvalsError(f"the pairs of {part.rollout} are no longer those that it was made of")
    return table


def _decisions(verdict: Verdict) -> object:
    """Return the parts that must be equal; limits may differ in the last digits by machine."""
    cells = [(f.metric, f.stat, f.cohort, f.role, f.outcome) for f in verdict.findings]
    return verdict.outcome, verdict.policy_hash, verdict.pairs, cells


def main(collector: str, rollout: str, verdict_id: str) -> str | None:
    """Return why the verdict cannot be relied on; `None` if it can."""
    with Client.from_environment(collector) as client:
        found = [one for one in client.verdicts(rollout, limit=1000) if one.id == verdict_id]
        return why_not(client, found[0]) if found else "it is not stored"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
