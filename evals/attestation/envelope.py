"""DSSE envelopes, version 1.0.2: https://github.com/secure-systems-lab/dsse."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from evals.attestation.errors import AttestationError, Fault


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature of an envelope."""

    sig: bytes
    keyid: str = ""
    """A hint at the key; it is not signed."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload with its signatures."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that a DSSE signature covers: the pre-authentication encoding."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def to_bytes(envelope: Envelope) -> bytes:
    """Return the envelope as JSON with sorted keys."""
    signatures = [
        {"sig": _encoded(one.sig)} | ({"keyid": one.keyid} if one.keyid else {})
        for one in envelope.signatures
    ]
    document = {
        "payload": _encoded(envelope.payload),
        "payloadType": envelope.payload_type,
        "signatures": signatures,
    }
    return json.dumps(document, indent=2, sort_keys=True).encode()


def from_bytes(data: bytes) -> Envelope:
    """Read an envelope; unknown keys are ignored, and both alphabets of base64 are read.

    Raises `AttestationError` with `Fault.MALFORMED`.
    """
    try:
        document = json.loads(data)
        return Envelope(
            _text(document["payloadType"]),
            decoded(document["payload"]),
            tuple(
                Signature(decoded(one["sig"]), _text(one.get("keyid") or ""))
                for one in document["signatures"]
            ),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        raise AttestationError(Fault.MALFORMED, f"wanted a DSSE envelope: {exc!r}") from exc


def decoded(text: Any) -> bytes:  # Any: a JSON value
    """Decode base64, standard or URL-safe; raises `ValueError`."""
    standard = _text(text).strip().replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(standard, validate=True)
    except binascii.Error as exc:
        raise ValueError(f"wanted base64 ({exc})") from exc


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _text(value: Any) -> str:  # Any: a JSON value
    if not isinstance(value, str):
        raise TypeError(f"wanted text, got {type(value).__name__}")
    return value
