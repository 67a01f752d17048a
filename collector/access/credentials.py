"""Where a request carries its key: HTTP headers and gRPC metadata alike."""

from collections.abc import Mapping


def key_text(headers: Mapping[str, str]) -> str | None:
    """Return the key of `authorization: Bearer` or `x-api-key`; None without either.

    `headers` finds lower-case names.
    """
    authorization = headers.get("authorization")
    if authorization is None:
        return headers.get("x-api-key")
    scheme, _, key = authorization.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else authorization
