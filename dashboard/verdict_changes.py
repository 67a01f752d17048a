"""What differs between two verdicts on one rollout."""

from collections.abc import Iterator
from typing import NamedTuple

from collector.contract import Finding, Verdict
from dashboard import words

_Key = tuple[str | None, str, str, str, str]


class Changed(NamedTuple):
    """A finding that one of the verdicts has not, or in which they differ."""

    what: str
    before: Finding | None
    after: Finding | None

    @property
    def decided_otherwise(self) -> bool:
        """Say whether the outcome itself changed."""
        if self.before is None or self.after is None:
            return True
        return self.before.outcome is not self.after.outcome


def changes(before: Verdict, after: Verdict) -> list[Changed]:
    """Return what differs, changed outcomes first; within both as the later verdict has it."""
    old = {_key(finding): finding for finding in before.findings}
    new = {_key(finding): finding for finding in after.findings}
    found = [
        Changed(words.cell(finding), old.get(key), finding)
        for key, finding in new.items()
        if old.get(key) != finding
    ]
    found += [
        Changed(words.cell(finding), finding, None)
        for key, finding in old.items()
        if key not in new
    ]
    return sorted(found, key=lambda change: not change.decided_otherwise)


def about(before: Verdict, after: Verdict) -> Iterator[str]:
    """Yield, in words, in what the verdicts differ as a whole."""
    outcomes = [words.outcome(verdict.outcome) for verdict in (before, after)]
    if before.outcome is not after.outcome:
        yield f"The verdict went from {outcomes[0]} to {outcomes[1]}."
    else:
        yield f"Both verdicts are {outcomes[0]}."
    if before.policy_hash == after.policy_hash:
        yield "Both were made under the same policy."
    else:
        yield "The policy is not the same: margins or cells moved between them."
    pairs = " → ".join(words.count(verdict.pairs) for verdict in (before, after))
    same = before.data_hash == after.data_hash
    yield f"{'The same data' if same else 'Not the same data'}: {pairs} pairs."


def _key(finding: Finding) -> _Key:
    return (finding.cohort, finding.metric, finding.stat, finding.role.value, finding.bound)
