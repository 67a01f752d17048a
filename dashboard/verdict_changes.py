"""Compare two verdicts on one rollout."""

from collections.abc import Iterator
from typing import NamedTuple

from collector.contract import Finding, Verdict
from dashboard import words

_Key = tuple[str | None, str, str, str, str]


class FindingChange(NamedTuple):
    """A finding that is missing in one verdict or differs between both."""

    what: str
    before: Finding | None
    after: Finding | None

    @property
    def decided_otherwise(self) -> bool:
        """Whether the outcome changed, or the finding is missing in one verdict."""
        if self.before is None or self.after is None:
            return True
        return self.before.outcome is not self.after.outcome


def changes(before: Verdict, after: Verdict) -> list[FindingChange]:
    """Return the changed findings, changed outcomes first, each group in the later's order."""
    old = {_key(finding): finding for finding in before.findings}
    new = {_key(finding): finding for finding in after.findings}
    found = [
        FindingChange(words.cell(finding), old.get(key), finding)
        for key, finding in new.items()
        if old.get(key) != finding
    ]
    found += [
        FindingChange(words.cell(finding), finding, None)
        for key, finding in old.items()
        if key not in new
    ]
    return sorted(found, key=lambda change: not change.decided_otherwise)


def about(before: Verdict, after: Verdict) -> Iterator[str]:
    """Yield sentences that compare the verdicts' outcomes, policies and data."""
    outcomes = [words.outcome(verdict.outcome) for verdict in (before, after)]
    if before.outcome is not after.outcome:
        yield f"The verdict went from {outcomes[0]} to {outcomes[1]}."
    else:
        yield f"Both verdicts are {outcomes[0]}."
    if before.policy_hash == after.policy_hash:
        yield "Both were made under the same policy."
    else:
        yield "The policies differ in margins or cells."
    pairs = " → ".join(words.count(verdict.pairs) for verdict in (before, after))
    same = before.data_hash == after.data_hash
    yield f"{'The same data' if same else 'Not the same data'}: {pairs} pairs."


def _key(finding: Finding) -> _Key:
    return (finding.cohort, finding.metric, finding.stat, finding.role.value, finding.bound)
