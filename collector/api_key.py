"""API keys: scopes, text format and stored form.

A key is written `dgk_<id>_<secret>`. The id names it in listings and logs; the secret is 256 random
bits, of which only a SHA-256 digest is stored.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

_ID_BYTES = 4
_SECRET_BYTES = 32
_FORM = re.compile(r"dgk_([0-9a-f]{8})_([0-9a-f]{64})")


class Scope(StrEnum):
    """A right of a key; no scope implies another."""

    INGEST = "ingest"
    """Send spans, metrics, logs and feedback."""
    JUDGE = "judge"
    """Register policies; post scores, verdicts and watches; lease generations to score."""
    READ = "read"
    """Read everything but text."""
    CONTENT = "content"
    """Read prompts, answers, passages and references too; needs `read` as well."""
    ADMIN = "admin"
    """Every other route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key."""

    id: str
    name: str
    digest: bytes = field(repr=False)
    scopes: frozenset[Scope]
    project: str | None = None
    """A label for listings and logs; it restricts nothing."""
    rate_per_s: float | None = None
    """Requests per second; None for the collector's default."""
    created_unix_ns: int
    expires_unix_ns: int | None = None
    revoked_unix_ns: int | None = None
    last_used_unix_ns: int | None = None

    def matches(self, secret: str) -> bool:
        """Return whether the secret is this key's, in constant time."""
        return hmac.compare_digest(self.digest, digest(secret))

    def is_usable(self, now_unix_ns: int) -> bool:
        """Return whether the key is neither revoked nor expired."""
        expired = self.expires_unix_ns is not None and now_unix_ns >= self.expires_unix_ns
        return self.revoked_unix_ns is None and not expired


class KeyText(NamedTuple):
    """The two parts of a key's text."""

    id: str
    secret: str

    def __str__(self) -> str:
        """Return the key as it is sent."""
        return f"dgk_{self.id}_{self.secret}"

    def __repr__(self) -> str:
        """Omit the secret, so that no log or traceback contains it."""
        return f"dgk_{self.id}_…"


def new_key_text() -> KeyText:
    """Return a new random key."""
    return KeyText(secrets.token_hex(_ID_BYTES), secrets.token_hex(_SECRET_BYTES))


def parse(text: str) -> KeyText | None:
    """Return the parts of a key, or None if the text does not have its format."""
    found = _FORM.fullmatch(text)
    return KeyText(*found.groups()) if found else None


def digest(secret: str) -> bytes:
    """Return the stored digest of a secret.

    A slow password hash protects secrets that can be guessed. This one is 256 random bits, which
    cannot be enumerated even with a fast hash, and a fast hash keeps ingest cheap.
    """
    return hashlib.sha256(secret.encode()).digest()
