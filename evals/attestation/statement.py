"""In-toto statements (version 1) about a bundle: its files, and the decision on them.

python -m evals.attestation.statement > docs/attestation.schema.json
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from collector.contract import (
    CohortAnswer,
    DocumentError,
    Outcome,
    Standing,
    Verdict,
    from_document,
    to_document,
)
from evals.attestation.errors import AttestationError, Fault

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://github.com/draftgate/draftgate/attestations/verdict/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttestedPolicy:
    """The policy that decided."""

    name: str
    sha256: str
    """Of the canonical policy: JSON with sorted keys and all defaults."""
    standing: Standing | None = None
    """Relation to the registered policy; None if no collector's history was read."""
    registered_by: str | None = None
    """Name of the API key that registered a policy before the first pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttestedData:
    """The stored pairs of one rollout behind the decision."""

    rollout: str
    control: bool
    """Whether it is the A/A rollout."""
    pairs: int
    digest: str
    """SHA-256 of the table of these pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictPredicate:
    """The signer's statement about a bundle's verdict."""

    judged_by: str | None = None
    """Name that the signer gives itself; None if it gave none. The key is the proof."""
    rollout: str
    outcome: Outcome
    summary: str
    """The verdict in one sentence."""
    cohorts: tuple[CohortAnswer, ...] = ()
    policy: AttestedPolicy
    pairs: int
    """Prompts and repeats with a generation in either arm."""
    evidence_digest: str
    """SHA-256 of the canonical evidence."""
    data: tuple[AttestedData, ...] = ()
    """Empty if the pairs are not from a collector."""
    versions: Mapping[str, str]
    """Versions of the software that decided, by name."""


def predicate_of(verdict: Verdict, judged_by: str | None = None) -> VerdictPredicate:
    """Return the statement about a verdict."""
    history = verdict.history
    return VerdictPredicate(
        judged_by=judged_by,
        rollout=verdict.rollout,
        outcome=verdict.outcome,
        summary=verdict.summary,
        cohorts=verdict.cohorts,
        policy=AttestedPolicy(
            name=verdict.policy_name,
            sha256=verdict.policy_hash,
            standing=None if history is None else history.standing,
            registered_by=None if history is None else history.registered_by,
        ),
        pairs=verdict.pairs,
        evidence_digest=verdict.data_hash,
        data=tuple(
            AttestedData(
                rollout=part.rollout, control=part.control, pairs=part.pairs, digest=part.data_hash
            )
            for part in verdict.evidence
        ),
        versions=dict(verdict.versions),
    )


def statement_of(
    verdict: Verdict, files: Mapping[str, bytes], judged_by: str | None = None
) -> bytes:
    """Return the statement about a bundle's files, by name, and its verdict, as JSON."""
    document = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": n, "digest": {"sha256": d}} for n, d in _digests(files).items()],
        "predicateType": PREDICATE_TYPE,
        "predicate": to_document(predicate_of(verdict, judged_by)),
    }
    return json.dumps(document, sort_keys=True, ensure_ascii=False).encode()


def check_statement(payload: bytes, files: Mapping[str, bytes], verdict_file: str) -> None:
    """Raise `AttestationError` unless the statement is about these files and this verdict.

    Keys that a later version may add to a statement are ignored, as the specification asks.
    """
    statement = _object(payload)
    types = (statement.get("_type"), statement.get("predicateType"))
    if types != (STATEMENT_TYPE, PREDICATE_TYPE):
        message = f"wanted a statement {STATEMENT_TYPE} about {PREDICATE_TYPE}, got {types}"
        raise AttestationError(Fault.PAYLOAD_TYPE, message)
    signed, found = _signed_digests(statement), _digests(files)
    changed = sorted(name for name in {*signed, *found} if signed.get(name) != found.get(name))
    if changed:
        raise AttestationError(Fault.SUBJECT, f"{', '.join(changed)}: not what was signed")
    try:
        verdict = from_document(Verdict, json.loads(files[verdict_file]))
    except (ValueError, DocumentError, KeyError) as exc:
        raise AttestationError(Fault.SUBJECT, f"{verdict_file}: wanted a verdict ({exc})") from exc
    given = statement.get("predicate")
    stated: Mapping[str, Any] = given if isinstance(given, dict) else {}
    expected = to_document(predicate_of(verdict, stated.get("judged_by")))
    if differing := [key for key, value in expected.items() if stated.get(key) != value]:
        message = f"the statement's {', '.join(differing)} is not the verdict's"
        raise AttestationError(Fault.PREDICATE, message)


def attestation_schema() -> str:
    """Return the predicate's schema (JSON Schema 2020-12) as text with sorted keys."""
    schema = TypeAdapter(VerdictPredicate).json_schema(mode="serialization")
    schema |= {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": PREDICATE_TYPE}
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _object(payload: bytes) -> Mapping[str, Any]:  # Any: JSON values
    try:
        statement = json.loads(payload)
    except (ValueError, RecursionError) as exc:
        message = f"wanted an in-toto statement: {exc}"
        raise AttestationError(Fault.MALFORMED, message) from exc
    if not isinstance(statement, dict):
        raise AttestationError(Fault.MALFORMED, "wanted an in-toto statement, an object")
    return statement


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}


def _signed_digests(statement: Mapping[str, Any]) -> dict[str, str]:
    try:
        return {str(one["name"]): str(one["digest"]["sha256"]) for one in statement["subject"]}
    except (KeyError, TypeError) as exc:
        message = f"subject: wanted names with a SHA-256 each ({exc!r})"
        raise AttestationError(Fault.MALFORMED, message) from exc


if __name__ == "__main__":
    sys.stdout.write(attestation_schema())
