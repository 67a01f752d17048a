"""Sign a bundle's files, and check who signed them."""

from collections.abc import Mapping
from pathlib import Path

from evals.attestation import envelope as envelopes
from evals.attestation.envelope import Envelope
from evals.attestation.errors import AttestationError, Fault
from evals.attestation.keys import Signer, is_signature, trusted
from evals.attestation.statement import PAYLOAD_TYPE, check_statement


def sign(statement: bytes, signer: Signer, existing: bytes | None = None) -> bytes:
    """Return an envelope of the statement with one more signature than `existing` has.

    A signature by the same key is replaced. Raises `AttestationError` if `existing` holds another
    statement, which the new signer would not have signed.
    """
    kept = []
    if existing is not None:
        earlier = envelopes.from_bytes(existing)
        if (earlier.payload_type, earlier.payload) != (PAYLOAD_TYPE, statement):
            message = "the bundle was signed with another statement; sign as the same --judged-by"
            raise AttestationError(Fault.PREDICATE, message)
        kept = list(earlier.signatures)
    new = signer(envelopes.pae(PAYLOAD_TYPE, statement))
    kept = [one for one in kept if not one.keyid or one.keyid != new.keyid]
    kept = [one for one in kept if one.sig != new.sig]
    return envelopes.to_bytes(Envelope(PAYLOAD_TYPE, statement, (*kept, new)))


def check(
    envelope: bytes | None, files: Mapping[str, bytes], verdict_file: str, keys: Path
) -> tuple[str, ...]:
    """Return the keyids of the trusted keys that signed these files.

    `keys` is a public key, or a directory of them; one signature by one of them is enough. Raises
    `AttestationError` otherwise.
    """
    known = trusted(keys)
    if envelope is None:
        raise AttestationError(Fault.UNSIGNED, "it is not signed")
    found = envelopes.from_bytes(envelope)
    if not found.signatures:
        raise AttestationError(Fault.UNSIGNED, "its envelope has no signature")
    if found.payload_type != PAYLOAD_TYPE:
        message = f"wanted an envelope of {PAYLOAD_TYPE}, got {found.payload_type!r}"
        raise AttestationError(Fault.PAYLOAD_TYPE, message)
    data = envelopes.pae(found.payload_type, found.payload)
    by = [
        keyid
        for keyid, key in known.items()
        if any(is_signature(key, one.sig, data) for one in found.signatures)
    ]
    if not by:
        raise _nobody(found, known)
    check_statement(found.payload, files, verdict_file)
    return tuple(by)


def _nobody(found: Envelope, known: Mapping[str, object]) -> AttestationError:
    named = [one.keyid for one in found.signatures]
    if edited := [keyid for keyid in named if keyid in known]:
        message = f"it was edited after {edited[0][:16]} signed it, or that is no signature of it"
        return AttestationError(Fault.EDITED, message)
    shown = ", ".join(keyid[:16] or "an unnamed key" for keyid in named)
    return AttestationError(Fault.UNTRUSTED, f"signed by {shown}, which is not trusted")
