"""Where a request carries its key: HTTP headers and gRPC metadata alike."""

import base64
import binascii
from collections.abc import Mapping


def key_text(headers: Mapping[str, str]) -> str | None:
    """Return the key of `authorization: Bearer` or `x-api-key`; None without either.

    Hooks that take nothing but an address send what it names, `https://any:KEY@host/`, as the
    password of `authorization: Basic`. `headers` finds lower-case names.
    """
    authorization = headers.get("authorization")
    if authorization is None:
        return headers.get("x-api-key")
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() == "basic":
        return _password(key)
    return key.strip() if scheme.lower() == "bearer" else authorization


def _password(encoded: str) -> str:
    """Return what stands behind the colon; what is no Basic credential is no key either."""
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return encoded
