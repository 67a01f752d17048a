"""The policy that a rollout was registered with, and what was tried on its candidate already."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a cell, or of a release."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Standing(StrEnum):
    """How the policy of a verdict stands to the one registered for its rollout."""

    REGISTERED = "registered"
    """It is the one that was registered before the first pair was received."""
    EDITED = "edited"
    """Another one was registered before the first pair."""
    LATE = "late"
    """None was registered before the first pair, but one after it."""
    UNREGISTERED = "unregistered"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRegistration:
    """A policy to be registered for a rollout."""

    policy_name: str
    policy_hash: str
    """SHA-256 of the text."""
    text: str
    """The canonical policy: JSON with sorted keys and every default."""

    def __post_init__(self) -> None:
        found = hashlib.sha256(self.text.encode()).hexdigest()
        if self.policy_hash != found:
            raise ValueError(f"policy_hash: wanted the text's SHA-256 {found}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredPolicy:
    """A policy as it was registered for a rollout; kept, whatever is registered later."""

    id: int
    """Grows with every registration of any rollout."""
    rollout: str
    policy_name: str
    policy_hash: str
    text: str
    before_first_pair: bool
    """Whether not both arms of the rollout had been received from when it was registered."""
    who: str
    """Name of the API key that registered it; `local` if no key was needed."""
    key_id: str | None
    time_unix_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePart:
    """The stored pairs of one rollout that a verdict rests on.

    Read again with the same three numbers, they have the same hash, unless scores were replaced or
    data were deleted.
    """

    rollout: str
    arrived_after: int
    """All generations of every pair arrived after this one; 0: from the first on."""
    arrived_up_to: int
    """Generations up to this one; ids grow in the order of arrival."""
    scored_up_to: int
    """Scores up to this post."""
    pairs: int
    """Prompts and repeats seen in either arm."""
    data_hash: str
    """SHA-256 of the table of these pairs."""
    control: bool = False
    """Whether it is the A/A rollout in which no difference may be found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierVerdict:
    """A verdict that was posted before, by what makes it another look."""

    id: str
    rollout: str
    outcome: Outcome
    policy_name: str
    policy_hash: str
    pairs: int
    data_hash: str
    arrived_after: int | None
    """As of its evidence; None for a verdict that names none."""
    watch: bool
    """Whether `draftgate watch` gave it, which may look at every moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateIdentity:
    """The properties by which two rollouts' candidates are the same, as their first answers say it.

    Fingerprints are compared if both have one.
    """

    provider: str | None
    model: str | None
    """That answered, else the one that was asked for."""
    fingerprint: str | None
    """Hash of target, draft, tokenizer, engine version and flags."""
    spec_method: str | None
    spec_draft_model: str | None
    spec_num_speculative_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRollout:
    """An earlier rollout of the same candidate."""

    rollout: str
    verdicts: int
    """Posted on it."""
    outcome: Outcome | None
    """Of its newest verdict; None if none was posted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutHistory:
    """A rollout's policies and verdicts, and earlier rollouts of its candidate."""

    rollout: str
    registrations: tuple[RegisteredPolicy, ...]
    """Newest first."""
    registered: RegisteredPolicy | None
    """The one that counts: the newest of those before the first pair."""
    candidate: CandidateIdentity | None
    """None before its first answer."""
    verdicts: tuple[EarlierVerdict, ...]
    """Posted on this rollout, oldest first."""
    rollouts: tuple[EarlierRollout, ...]
    """Earlier ones of the same candidate, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictHistory:
    """The registration of a verdict's policy, and earlier looks and retries."""

    standing: Standing
    strict: bool
    """Whether any standing but `registered` keeps it from passing."""
    registered_name: str | None
    registered_hash: str | None
    """None if no policy was registered before the first pair."""
    registered_by: str | None
    changes: tuple[str, ...]
    """What differs from the registered policy, such as `prove[3].min: -0.02 → -0.05`."""
    look: int
    """1 for the first verdict on this rollout's data, 2 for the second on grown data, …"""
    earlier: int
    """Verdicts that were posted on this rollout before, on other data or under another policy."""
    verdicts: tuple[EarlierVerdict, ...]
    """The newest of them, oldest first."""
    rollouts: tuple[EarlierRollout, ...]
    notes: tuple[str, ...]
    """All of that in words, a sentence each."""
