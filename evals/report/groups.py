"""Group a rollout's verdicts by what they judged: serving and policy."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from collector.contract import CandidateIdentity, DatedVerdict, Outcome

_HASH = 12


class VerdictGroup(NamedTuple):
    """Verdicts on one serving under one policy."""

    verdicts: tuple[DatedVerdict, ...]
    """Newest first; at least one."""

    @property
    def newest(self) -> DatedVerdict:
        """The newest verdict."""
        return self.verdicts[0]

    @property
    def oldest(self) -> DatedVerdict:
        """The oldest verdict."""
        return self.verdicts[-1]

    @property
    def outcomes(self) -> Mapping[Outcome, int]:
        """How many verdicts have each outcome."""
        return Counter(one.outcome for one in self.verdicts)


def grouped(verdicts: Sequence[DatedVerdict]) -> tuple[VerdictGroup, ...]:
    """Return a group per serving and policy, the one of the newest verdict first.

    A serving is a candidate's engine, model, method, draft, k and fingerprint, in which the
    engine's version counts.
    """
    found: dict[tuple[CandidateIdentity | None, str], list[DatedVerdict]] = {}
    for one in sorted(verdicts, key=lambda v: (v.posted_unix_ns, v.id), reverse=True):
        found.setdefault((one.candidate, one.policy_hash), []).append(one)
    return tuple(VerdictGroup(tuple(group)) for group in found.values())


def serving_of(candidate: CandidateIdentity | None) -> str:
    """Return a candidate's serving in words; unknown parts are left out."""
    if candidate is None:
        return "not known"
    drafts = [
        candidate.spec_method,
        candidate.spec_draft_model,
        None
        if candidate.spec_num_speculative_tokens is None
        else f"k={candidate.spec_num_speculative_tokens}",
    ]
    mark = candidate.fingerprint and f"fingerprint {candidate.fingerprint[:_HASH]}"
    engine = " ".join(filter(None, (candidate.provider, candidate.engine_version)))
    parts = [engine, candidate.model, " ".join(filter(None, drafts)), mark]
    return ", ".join(filter(None, parts)) or "not known"
