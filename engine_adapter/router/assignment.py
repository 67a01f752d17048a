"""Assign sessions and users to the candidate by a hash bucket that is the same at every share.

The bucket is a 64-bit BLAKE2b of rollout and key, its first 53 bits as a fraction of 1. A session
gets the candidate if its bucket is below the share: a session in at 5 % is also in at 25 %.
Buckets of different rollouts are independent.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Final

from pydantic import Field

from engine_adapter.router.decision import RequestFacts
from engine_adapter.routes import Section

_BUCKETS: Final = 1 << 64


class Sticky(Section):
    """The keys that keep a conversation on one arm."""

    headers: tuple[Annotated[str, Field(min_length=1)], ...] = ("x-session-id", "x-user-id")
    """The first of these that a request carries is its session key."""
    body_user: bool = True
    """Without such a header, use `safety_identifier` or `user` of the body."""


def bucket(rollout: str, key: str) -> float:
    """Return the key's bucket in [0, 1)."""
    digest = _digest(rollout, key, 8)
    # 53 bits: a 64-bit fraction could round up to 1.0.
    return (int.from_bytes(digest, "big") >> 11) / (_BUCKETS >> 11)


def _digest(rollout: str, key: str, size: int) -> bytes:
    # surrogatepass: JSON can hold lone surrogates, which UTF-8 cannot encode.
    text = f"{rollout}\0{key}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=size).digest()


class Assignment:
    """Decides which requests fall into a share of the traffic."""

    def __init__(self, rollout: str, sticky: Sticky, draw: Callable[[], float]) -> None:
        """`draw` returns random numbers in [0, 1), for requests without a session key."""
        self._rollout = rollout
        self._headers = tuple(name.lower() for name in sticky.headers)
        self._body_user = sticky.body_user
        self._draw = draw

    def in_share(self, facts: RequestFacts, percent: float) -> bool:
        """Return whether the request's session is in the share; without a session, draw."""
        key = self._key(facts.headers, facts.user)
        at = self._draw() if key is None else bucket(self._rollout, key)
        return at * 100 < percent

    def session(self, facts: RequestFacts) -> str | None:
        """Return a hash of the request's session key in this rollout; `None` without a key."""
        key = self._key(facts.headers, facts.user)
        return None if key is None else _digest(self._rollout, key, 16).hex()

    def drawn(self, percent: float) -> bool:
        """Draw one request at random, whatever its session."""
        return self._draw() * 100 < percent

    def _key(self, headers: Mapping[str, str], user: str | None) -> str | None:
        for name in self._headers:
            if found := headers.get(name):
                return f"{name}\0{found}"
        return f"user\0{user}" if self._body_user and user else None
