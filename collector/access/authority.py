"""Authorization of requests by API key, shared by HTTP and gRPC."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from collector import api_key
from collector.access.token_bucket import TokenBucket
from collector.api_key import ApiKey, KeyText, Scope
from collector.errors import ForbiddenError, RateLimitError, UnauthenticatedError

CACHED_S = 2.0
"""How long a key is cached: a revocation takes effect within this time."""
_MOST_CACHED = 4096


class Grant(NamedTuple):
    """The rights of a request."""

    key_id: str | None
    """None if no key was needed."""
    scopes: frozenset[Scope]
    key_name: str | None = None

    @property
    def who(self) -> str:
        """The key's name, as audit logs have it; `local` if no key was needed."""
        return self.key_name or "local"


OPEN = Grant(None, frozenset(Scope))


class _Cached(NamedTuple):
    key: ApiKey | None
    """None if no such key exists."""
    until_s: float


class Authority:
    """Checks keys against the database, through a cache; thread-safe."""

    def __init__(
        self,
        read: Callable[[str], ApiKey | None],
        *,
        required: bool,
        default_rate_per_s: float | None = None,
        take: Callable[[str, float], int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`read` returns the stored key with an id; its errors propagate from `authorize`.

        `take` takes a token of a key at a rate from a bucket shared by several collectors, and
        returns 0 or the seconds to wait; without it, tokens are counted in this process.
        """
        self.required = required
        self._read = read
        self._default_rate_per_s = default_rate_per_s
        self._take_shared = take
        self._clock = clock
        self._lock = threading.Lock()
        self._cache: dict[str, _Cached] = {}
        self._buckets: dict[str, TokenBucket] = {}
        self._used_unix_ns: dict[str, int] = {}

    def is_quick(self, key_text: str | None) -> bool:
        """Return whether `authorize` would not access the database."""
        parts = api_key.parse(key_text or "")
        if not self.required or parts is None:
            return True
        cached = self._cached(parts.id)
        if cached is None:
            return False
        return self._take_shared is None or cached.key is None or self._rate_of(cached.key) is None

    def authorize(self, key_text: str | None, needed: Scope) -> Grant:
        """Return the key's rights, which include `needed`; every call counts against its rate.

        If keys are not required, everything is allowed and the key is ignored. Raises
        `UnauthenticatedError`, `ForbiddenError` or `RateLimitError`.
        """
        if not self.required:
            return OPEN
        if not key_text:
            raise UnauthenticatedError(
                "no API key; send `Authorization: Bearer dgk_…`, made with `draftgate keys create`"
            )
        parts = api_key.parse(key_text)
        key = self._key(parts) if parts is not None else None
        now_unix_ns = time.time_ns()
        # The same message in all cases: it must not reveal which ids exist.
        if parts is None or key is None or not key.matches(parts.secret):
            raise UnauthenticatedError("the API key is not known here; check it, or ask for one")
        if not key.is_usable(now_unix_ns):
            raise UnauthenticatedError(
                f"the API key {key.id} was revoked or has expired; ask for a new one"
            )
        if needed not in key.scopes:
            held = ", ".join(sorted(key.scopes))
            raise ForbiddenError(
                f"the API key {key.id} lacks the scope {needed}; it has {held}; "
                f"make one with `draftgate keys create NAME --scope {needed}`",
                lacking=needed,
            )
        with self._lock:
            self._used_unix_ns[key.id] = now_unix_ns
        self._take(key)
        return Grant(key.id, key.scopes, key.name)

    def drain_uses(self) -> dict[str, int]:
        """Return when keys were used since the last call, by id."""
        with self._lock:
            used, self._used_unix_ns = self._used_unix_ns, {}
        return used

    def _key(self, parts: KeyText) -> ApiKey | None:
        cached = self._cached(parts.id)
        if cached is not None:
            return cached.key
        until_s = self._clock() + CACHED_S
        key = self._read(parts.id)
        with self._lock:
            # Invented ids can fill the cache; clearing it only causes keys to be read again.
            if len(self._cache) >= _MOST_CACHED:
                self._cache.clear()
            self._cache[parts.id] = _Cached(key, until_s)
        return key

    def _cached(self, id_: str) -> _Cached | None:
        cached = self._cache.get(id_)
        return cached if cached is not None and self._clock() < cached.until_s else None

    def _take(self, key: ApiKey) -> None:
        rate_per_s = self._rate_of(key)
        if rate_per_s is None:
            return
        take = self._take_shared or self._take_here
        wait_s = take(key.id, rate_per_s)
        if wait_s:
            raise RateLimitError(
                f"the API key {key.id} sent more than {rate_per_s:g} requests a second; "
                f"send this again in {wait_s} s, in fewer and larger requests",
                retry_after_s=wait_s,
            )

    def _rate_of(self, key: ApiKey) -> float | None:
        return key.rate_per_s or self._default_rate_per_s

    def _take_here(self, key_id: str, rate_per_s: float) -> int:
        with self._lock:
            bucket = self._buckets.get(key_id)
            if bucket is None or bucket.rate_per_s != rate_per_s:
                bucket = self._buckets[key_id] = TokenBucket(rate_per_s, self._clock())
            return bucket.take(self._clock())
