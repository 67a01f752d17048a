"""Notice that a served rollout's candidate is no longer heard of.

Silence is counted in seconds of this process during which the database answered. So neither a clock
that is set, a collector that was stopped or suspended, nor an unavailable database is a silence; a
restart counts from 0.
"""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from collector.store import Store
from collector.store.release import evidence_flow

_LOOK_EVERY_S: Final = 10.0


class _Seen(NamedTuple):
    """The findings of one look, and the rollouts that it changes."""

    followed: dict[str, bool]
    served: frozenset[str]
    heard: frozenset[str]
    newest_id: int

    @property
    def begun(self) -> frozenset[str]:
        return self.heard - self.followed.keys()

    @property
    def resumed(self) -> frozenset[str]:
        return frozenset(name for name in self.heard if self.followed.get(name))

    @property
    def ended(self) -> dict[str, bool]:
        return {name: told for name, told in self.followed.items() if name not in self.served}

    @property
    def quiet(self) -> frozenset[str]:
        flowing = {name for name, stopped in self.followed.items() if not stopped}
        return frozenset(flowing & self.served) - self.heard


class Silence:
    """Puts a notification in the outbox once a silence, and once it ends."""

    def __init__(
        self, store: Store, after_s: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Tell of a silence of `after_s` seconds; `clock` is monotonic."""
        self._store = store
        self._after_s = after_s
        self._every_s = min(_LOOK_EVERY_S, after_s / 4)
        self._clock = clock
        self._looked_s: float | None = None
        self._newest_id: int | None = None
        self._quiet_s: dict[str, float] = {}

    def look(self, is_ours: Callable[[], bool]) -> int:
        """Look if it is time to; return how many rollouts changed.

        `is_ours` returns whether this collector, of several, is the one to look.
        """
        now_s = self._clock()
        passed_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        if self._looked_s is not None and passed_s < self._every_s:
            return 0
        seen = self._read()
        if not (seen.served or seen.followed) or not is_ours():
            self._looked_s, self._newest_id, self._quiet_s = now_s, None, {}
            return 0
        passed_s = min(passed_s, 2 * self._every_s)
        self._quiet_s = {name: self._quiet_s.get(name, 0.0) + passed_s for name in seen.quiet}
        silent = sorted(name for name, s in self._quiet_s.items() if s >= self._after_s)
        changed = len(silent) + len(seen.begun) + len(seen.resumed) + len(seen.ended)
        if changed:
            self._write(seen, silent)
        self._looked_s, self._newest_id = now_s, seen.newest_id
        return changed

    def _read(self) -> _Seen:
        with self._store.read() as connection:
            newest_id = evidence_flow.newest_id(connection)
            served = evidence_flow.served(connection)
            after = newest_id if self._newest_id is None else self._newest_id
            heard = evidence_flow.heard(connection, served, after)
            return _Seen(evidence_flow.stored(connection), served, heard, newest_id)

    def _write(self, seen: _Seen, silent: list[str]) -> None:
        now = time.time_ns()
        with self._store.transaction() as connection:
            if evidence_flow.stored(connection) != seen.followed:
                return  # another collector was faster
            for name in sorted(seen.begun):
                evidence_flow.follow(connection, name)
            for name in silent:
                words = f"no generation of the candidate for {self._after_s:g} s"
                evidence_flow.turn(connection, name, stopped=True, summary=words, unix_ns=now)
            for name in sorted(seen.resumed):
                words = "the candidate's generations come again"
                evidence_flow.turn(connection, name, stopped=False, summary=words, unix_ns=now)
            evidence_flow.forget(connection, seen.ended, now)
