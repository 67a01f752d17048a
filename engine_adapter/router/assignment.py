"""Who gets the candidate: a bucket for each session or user, the same at every share.

The bucket is the first 64 bits of BLAKE2b over rollout and key, as a fraction of 1. It gets the
candidate where it lies below the share: whoever is in at 5 % is in at 25 %, and another rollout's
buckets are independent.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Final

from pydantic import Field

from engine_adapter.router.decision import RequestFacts
from engine_adapter.routes import Section

_BUCKETS: Final = 1 << 64


class Sticky(Section):
    """What keeps a conversation on one arm."""

    headers: tuple[Annotated[str, Field(min_length=1)], ...] = ("x-session-id", "x-user-id")
    """The first of them that a request carries names its session."""
    body_user: bool = True
    """Else `safety_identifier` or `user` of its body."""


def bucket(rollout: str, key: str) -> float:
    """Return where the key lies in [0, 1)."""
    # surrogatepass: JSON can hold halves of characters, which UTF-8 cannot.
    text = f"{rollout}\0{key}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).digest()
    # 53 bits: all 64 could be rounded up to 1.0.
    return (int.from_bytes(digest, "big") >> 11) / (_BUCKETS >> 11)


class Assignment:
    """Says which requests fall into a share of the traffic."""

    def __init__(self, rollout: str, sticky: Sticky, draw: Callable[[], float]) -> None:
        """`draw` gives numbers in [0, 1), for requests that name no session."""
        self._rollout = rollout
        self._headers = tuple(name.lower() for name in sticky.headers)
        self._body_user = sticky.body_user
        self._draw = draw

    def in_share(self, facts: RequestFacts, percent: float) -> bool:
        """Say whether the request's session lies in the share; without one it is drawn."""
        key = self._key(facts.headers, facts.user)
        at = self._draw() if key is None else bucket(self._rollout, key)
        return at * 100 < percent

    def drawn(self, percent: float) -> bool:
        """Say whether one request is drawn, whosever it is."""
        return self._draw() * 100 < percent

    def _key(self, headers: Mapping[str, str], user: str | None) -> str | None:
        for name in self._headers:
            if found := headers.get(name):
                return f"{name}\0{found}"
        return f"user\0{user}" if self._body_user and user else None
