"""Check a client's API key; only digests of keys are held.

A fast hash is enough, as with the collector's keys: they are long random text, too long to guess.
"""

import hashlib
from collections.abc import Mapping, Sequence

from engine_adapter.errors import RefusedRequestError
from engine_adapter.router.settings import ClientKey

_CARRIERS = ("x-api-key", "api-key")


class ClientKeys:
    """The accepted keys; if there are none, every client is admitted."""

    def __init__(self, keys: Sequence[ClientKey]) -> None:
        self._names = {key.sha256.lower(): key.name for key in keys}

    def admit(self, headers: Mapping[str, str]) -> str | None:
        """Return the name of the request's key; `None` if no key is required.

        Raises `RefusedRequestError` (401).
        """
        if not self._names:
            return None
        given = _key_in(headers)
        name = self._names.get(hashlib.sha256(given.encode()).hexdigest()) if given else None
        if name is None:
            raise RefusedRequestError(
                401,
                "invalid_api_key",
                "this router does not know the API key"
                if given
                else "no API key; send `Authorization: Bearer …`",
            )
        return name


def _key_in(headers: Mapping[str, str]) -> str | None:
    authorization = headers.get("authorization")
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        return key.strip() if scheme.lower() == "bearer" else None
    return next((headers[name] for name in _CARRIERS if name in headers), None)
