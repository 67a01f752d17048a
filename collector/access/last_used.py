"""Periodic storage of the times when keys were last used, outside of requests."""

import logging
import threading

from collector.access.authority import Authority
from collector.errors import StoreUnavailableError
from collector.store import Store, keys

_EVERY_S = 60.0
_log = logging.getLogger(__name__)


class LastUsed:
    """A thread that stores an authority's key uses once a minute and when stopped."""

    def __init__(self, authority: Authority, store: Store) -> None:
        self._authority = authority
        self._store = store
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="draftgate-key-uses", daemon=True)

    def start(self) -> None:
        """Start the thread if keys are required."""
        if self._authority.required:
            self._thread.start()

    def stop(self) -> None:
        """Store the remaining uses and end the thread; do nothing if it was not started."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY_S):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        used = self._authority.drain_uses()
        if not used:
            return
        try:
            with self._store.transaction() as connection:
                keys.note_use(connection, used)
        except StoreUnavailableError as exc:
            _log.warning("the last use of %d keys was not stored: %s", len(used), exc)
