"""The signature of a webhook's body, by which a receiver verifies its sender and time."""

import hashlib
import hmac
from typing import Final

HEADER: Final = "Draftgate-Signature"


def signature(secret: str, body: bytes, unix_s: int) -> str:
    """Return the header's value: `t=SECONDS,v1=HEX`.

    HEX is the HMAC-SHA-256, keyed with the secret, of the seconds, a full stop and the body.
    """
    signed = hmac.new(secret.encode(), f"{unix_s}.".encode() + body, hashlib.sha256)
    return f"t={unix_s},v1={signed.hexdigest()}"
