"""Policy registrations of a rollout, and its history of verdicts and earlier rollouts."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a cell, or of a release."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Standing(StrEnum):
    """The relation of a verdict's policy to the one registered for its rollout."""

    REGISTERED = "registered"
    """It was registered before the first pair arrived."""
    EDITED = "edited"
    """A different policy was registered before the first pair."""
    LATE = "late"
    """A policy was registered only after the first pair."""
    UNREGISTERED = "unregistered"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRegistration:
    """A policy to be registered for a rollout."""

    policy_name: str
    policy_hash: str
    """SHA-256 of the text."""
    text: str
    """The canonical policy: JSON with sorted keys and all defaults."""

    def __post_init__(self) -> None:
        found = hashlib.sha256(self.text.encode()).hexdigest()
        if self.policy_hash != found:
            raise ValueError(f"policy_hash: wanted the text's SHA-256 {found}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredPolicy:
    """A policy registered for a rollout; never changed or deleted by later registrations."""

    id: int
    """Increases with every registration of any rollout."""
    rollout: str
    policy_name: str
    policy_hash: str
    text: str
    before_first_pair: bool
    """Whether at registration at least one arm of the rollout had no generations yet."""
    who: str
    """Name of the API key that registered it; `local` if no key was needed."""
    key_id: str | None
    time_unix_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePart:
    """The stored pairs of one rollout on which a verdict is based.

    Read again with the same three bounds, they have the same hash, unless scores were replaced or
    data deleted.
    """

    rollout: str
    arrived_after: int
    """All generations of every pair have higher ids than this; 0: all generations."""
    arrived_up_to: int
    """Last generation id included; ids increase in the order of arrival."""
    scored_up_to: int
    """Last score revision included."""
    pairs: int
    """Prompts and repeats with a generation in either arm."""
    data_hash: str
    """SHA-256 of the table of these pairs."""
    control: bool = False
    """Whether this is the A/A rollout, in which no difference may be found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierVerdict:
    """An earlier verdict, with the fields that decide whether it is another look at the data."""

    id: str
    rollout: str
    outcome: Outcome
    policy_name: str
    policy_hash: str
    pairs: int
    data_hash: str
    arrived_after: int | None
    """From its evidence; None for a verdict without evidence."""
    watch: bool
    """Whether it is from `draftgate watch`, which is valid at every look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateIdentity:
    """The properties that identify a candidate, from its first successful generation.

    Fingerprints are compared only if both rollouts have one.
    """

    provider: str | None
    model: str | None
    """The response model, else the request model."""
    fingerprint: str | None
    """Hash of target, draft, tokenizer, engine version and flags."""
    spec_method: str | None
    spec_draft_model: str | None
    spec_num_speculative_tokens: int | None
    engine_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRollout:
    """An earlier rollout of the same candidate."""

    rollout: str
    verdicts: int
    """Number of verdicts posted."""
    outcome: Outcome | None
    """Outcome of its newest verdict; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedVerdict:
    """A verdict with its time, and the serving that it judged."""

    id: str
    rollout: str
    posted_unix_ns: int
    outcome: Outcome
    summary: str
    policy_name: str
    policy_hash: str
    pairs: int
    watch: bool
    """Whether it is from `draftgate watch`."""
    who: str | None
    """Name of the API key that posted it; None if not recorded."""
    candidate: CandidateIdentity | None
    """By the newest successful generation among its pairs; for a verdict that names no stored
    pairs, as that of a watch, among those begun before it. None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutHistory:
    """A rollout's policies and verdicts, and earlier rollouts of its candidate."""

    rollout: str
    registrations: tuple[RegisteredPolicy, ...]
    """Newest first."""
    registered: RegisteredPolicy | None
    """The policy in force: the newest one registered before the first pair."""
    candidate: CandidateIdentity | None
    """None before the candidate's first successful generation."""
    verdicts: tuple[EarlierVerdict, ...]
    """Posted on this rollout, oldest first."""
    rollouts: tuple[EarlierRollout, ...]
    """Earlier ones of the same candidate, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictHistory:
    """The registration of a verdict's policy, and earlier looks and retries."""

    standing: Standing
    strict: bool
    """Whether any standing other than `registered` prevents a pass."""
    registered_name: str | None
    registered_hash: str | None
    """None if no policy was registered before the first pair."""
    registered_by: str | None
    changes: tuple[str, ...]
    """Differences from the registered policy, such as `prove[3].min: -0.02 → -0.05`."""
    look: int
    """1 for the first verdict on this rollout's data, 2 for the second on grown data, …"""
    earlier: int
    """Number of earlier verdicts on this rollout, on other data or under another policy."""
    verdicts: tuple[EarlierVerdict, ...]
    """The newest of them, oldest first."""
    rollouts: tuple[EarlierRollout, ...]
    notes: tuple[str, ...]
    """The same in words, one sentence each."""
