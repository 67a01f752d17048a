"""Follow a rollout's switch and ramp at the collector, in a separate thread.

The newest state is kept in `known` and on disk, and stays in force while the collector is
unreachable.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Final, Self

from collector.client import Client, ClientError
from collector.contract import RampStep, StoredVerdict, SwitchState
from engine_adapter.errors import NotConfirmedError, PromotionError
from engine_adapter.router import known_state, ramp
from engine_adapter.router.known_state import KnownState
from engine_adapter.router.ramp import RampSection

_WAIT_S: Final = 2.0
"""Length of one long poll; also bounds how long shutdown waits and how stale the ramp gets."""
_ANSWER_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 0.8
"""Below one second, so that the router hears of a collector's return within a second."""
_PROMOTE_EVERY_S: Final = 10.0
_log = logging.getLogger(__name__)


class SwitchFollower:
    """Keeps `known` up to date in a thread that runs while the context is entered."""

    def __init__(
        self,
        rollout: str,
        open_client: Callable[[float], Client],
        *,
        file: Path,
        ramp_section: RampSection | None = None,
        confirm: Callable[[StoredVerdict], str | None],
        register: Callable[[Client], object] | None = None,
    ) -> None:
        """`open_client` takes the timeout of a response in seconds.

        `confirm` derives the verdict behind a ramp step again and returns why it cannot be relied
        on, or `None`. `register` registers the rollout's policy once the collector answers.
        """
        self.known = known_state.read(file, rollout)
        """Immutable and replaced as a whole: read it once and use that object."""
        self.trouble: str | None = None
        """Why the last poll of the collector failed; `None` if it succeeded."""
        self._rollout = rollout
        self._open_client = open_client
        self._file = file
        self._ramp = ramp_section
        self._confirm = confirm
        self._register = register
        self._promoted_at_s = float("-inf")
        self._refused = ""
        self._ended = threading.Event()
        self._polled = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="switch follower", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(_WAIT_S + _ANSWER_S)

    def wait_for_answer(self, timeout_s: float) -> bool:
        """Wait until the first poll is over; return whether the collector answered."""
        self._polled.wait(timeout_s)
        return self._polled.is_set() and self.trouble is None

    def _follow(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._ended.is_set():
            try:
                with self._open_client(_ANSWER_S) as client:
                    # Without waiting: a new collector's log may restart at ids below ours.
                    self._poll(client, wait_s=0)
                    pause_s = _FIRST_PAUSE_S
                    while not self._ended.is_set():
                        self._poll(client, wait_s=_WAIT_S)
            except ClientError as exc:
                self._note_trouble(exc)
                self._ended.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _poll(self, client: Client, *, wait_s: float) -> None:
        self._register_once(client)
        since = 0 if self.known.switch is None else self.known.switch.id
        log = client.switch(self._rollout, wait_s=wait_s, since=since)
        self._update(next(iter(log), None), self.known.ramp)
        if self._ramp is not None:
            step = next(iter(client.ramp(self._rollout)), None)
            self._update(self.known.switch, step)
            self._promote(client, self._ramp)
        self.trouble = None
        self._polled.set()

    def _register_once(self, client: Client) -> None:
        """Register the policy; a 4xx is logged and not retried, as it would fail again."""
        if self._register is None:
            return
        try:
            self._register(client)
        except ClientError as exc:
            if exc.status is None or exc.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            _log.warning("%s: no policy is registered: %s", self._rollout, exc)
        self._register = None

    def _update(self, switch: SwitchState | None, step: RampStep | None) -> None:
        before = self.known
        self.known = replace(before, switch=switch, ramp=step, told_unix_ns=time.time_ns())
        if (before.switch, before.ramp) != (switch, step) or before.told_unix_ns is None:
            known_state.write(self._file, self.known)
        if before.switch != switch:
            _log.warning("%s: %s", self._rollout, switch_in_words(self.known))
        if before.ramp != step and step is not None:
            _log.warning("%s: the ramp stands at %g %%", self._rollout, step.percent)

    def _promote(self, client: Client, section: RampSection) -> None:
        """Take the ramp's next step, if the ramp is automatic and the switch is on."""
        now_s = time.monotonic()
        if not (section.automatic and self.known.on):
            return
        if now_s < self._promoted_at_s + _PROMOTE_EVERY_S:
            return
        self._promoted_at_s = now_s
        try:
            now = ramp.progress(client, self._rollout)
            change = ramp.next_step(self._rollout, section.steps, now)
            if now.verdict is not None:
                ramp.require_confirmed(change, self._confirm(now.verdict))
            step = client.take_step(self._rollout, change)
        except NotConfirmedError as exc:
            self._note_refusal(exc)
            return
        except PromotionError as exc:
            self._refused = str(exc)
            return
        except ClientError as exc:
            if exc.status in (HTTPStatus.CONFLICT, HTTPStatus.FORBIDDEN):
                self._note_refusal(exc)
                return
            raise
        self._update(self.known.switch, step)

    def _note_refusal(self, exc: Exception) -> None:
        if str(exc) != self._refused:
            _log.warning("%s: the ramp cannot go on by itself: %s", self._rollout, exc)
        self._refused = str(exc)

    def _note_trouble(self, exc: ClientError) -> None:
        if self.trouble is None:
            _log.warning("%s: continues with the last known state: %s", self._rollout, exc)
        self.trouble = str(exc)
        self._polled.set()


def switch_in_words(known: KnownState) -> str:
    """Return the state of the switch as one line of text."""
    if known.switch is None:
        why = "it was never set" if known.told_unix_ns else "the collector never answered"
        return f"the switch is not known to be on ({why}): all requests go to the baseline"
    event = known.switch
    return f"the switch is {event.state}, set by {event.who}: {event.reason}"
