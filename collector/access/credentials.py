"""Extraction of the API key from HTTP headers or gRPC metadata."""

import base64
import binascii
from collections.abc import Mapping


def key_text(headers: Mapping[str, str]) -> str | None:
    """Return the key of `authorization: Bearer` or `x-api-key`; None without either.

    Webhooks that can only be given a URL, `https://any:KEY@host/`, send the key as the password of
    `authorization: Basic`. `headers` must find lower-case names.
    """
    authorization = headers.get("authorization")
    if authorization is None:
        return headers.get("x-api-key")
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() == "basic":
        return _password(key)
    return key.strip() if scheme.lower() == "bearer" else authorization


def _password(encoded: str) -> str:
    """Return the password after the colon; text that is no Basic credential is returned as is."""
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return encoded
