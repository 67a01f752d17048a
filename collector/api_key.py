"""API keys: what one may do, how it is written, and what is kept of it.

A key reads `dgk_<id>_<secret>`. The id names it in listings and logs; the secret is 256 random
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
    """What a key allows; none implies another."""

    INGEST = "ingest"
    """Send spans, metrics, logs and feedback."""
    JUDGE = "judge"
    """Register policies; post scores, verdicts and watches; lease what is to be scored."""
    READ = "read"
    """Read everything but text."""
    CONTENT = "content"
    """Read prompts, answers, passages and references too, where `read` is held as well."""
    ADMIN = "admin"
    """Every other route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it is stored."""

    id: str
    name: str
    digest: bytes = field(repr=False)
    scopes: frozenset[Scope]
    project: str | None = None
    """A label for listings and logs; it restricts nothing."""
    rate_per_s: float | None = None
    """Requests a second; None where the collector's default holds."""
    created_unix_ns: int
    expires_unix_ns: int | None = None
    revoked_unix_ns: int | None = None
    last_used_unix_ns: int | None = None

    def matches(self, secret: str) -> bool:
        """Say whether the secret is this key's, in a time that does not depend on the answer."""
        return hmac.compare_digest(self.digest, digest(secret))

    def is_usable(self, now_unix_ns: int) -> bool:
        """Say whether the key is neither revoked nor expired."""
        expired = self.expires_unix_ns is not None and now_unix_ns >= self.expires_unix_ns
        return self.revoked_unix_ns is None and not expired


class KeyText(NamedTuple):
    """The two parts of a key as its holder has it."""

    id: str
    secret: str

    def __str__(self) -> str:
        """Return the key as it is sent."""
        return f"dgk_{self.id}_{self.secret}"

    def __repr__(self) -> str:
        """Leave the secret out, so that no log or traceback can hold it."""
        return f"dgk_{self.id}_…"


def new_key_text() -> KeyText:
    """Return a new random key."""
    return KeyText(secrets.token_hex(_ID_BYTES), secrets.token_hex(_SECRET_BYTES))


def parse(text: str) -> KeyText | None:
    """Return the parts of a key, or None where the text has not the form of one."""
    found = _FORM.fullmatch(text)
    return KeyText(*found.groups()) if found else None


def digest(secret: str) -> bytes:
    """Return what is stored of a secret.

    A slow password hash would defend a secret that can be guessed. This one is 256 random bits:
    nobody can try them all, however fast the hash, and a fast one keeps ingest cheap.
    """
    return hashlib.sha256(secret.encode()).digest()
