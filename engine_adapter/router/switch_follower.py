"""Follows a rollout's switch and ramp at the collector, in a thread of its own.

What was last told stands in `known` and on disk: it holds for as long as the collector is away.
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
from engine_adapter.router.known_state import Known
from engine_adapter.router.ramp import RampSection

_WAIT_S: Final = 2.0
"""Of one long poll: how long the end of the router waits for it, and how old a ramp gets."""
_ANSWER_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 0.8
"""Below a second, so that a collector that is back is heard within one."""
_PROMOTE_EVERY_S: Final = 10.0
_log = logging.getLogger(__name__)


class SwitchFollower:
    """Keeps `known` up to date; a context manager whose thread ends with it."""

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
        """`open_client` is given the seconds that an answer may take.

        `confirm` derives the verdict again that a larger share would rest on, and says why it
        cannot be relied on. `register` registers the rollout's policy, once the collector answers.
        """
        self.known = known_state.read(file, rollout)
        """Replaced whole, never changed: read it once, then use what was read."""
        self.trouble: str | None = None
        """Why the collector cannot be asked now; None if it answered last."""
        self._rollout = rollout
        self._open_client = open_client
        self._file = file
        self._ramp = ramp_section
        self._confirm = confirm
        self._register = register
        self._promoted_at_s = float("-inf")
        self._refused = ""
        self._ended = threading.Event()
        self._asked = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="switch follower", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(_WAIT_S + _ANSWER_S)

    def wait_for_answer(self, timeout_s: float) -> bool:
        """Wait until the collector was asked once; say whether it answered."""
        self._asked.wait(timeout_s)
        return self._asked.is_set() and self.trouble is None

    def _follow(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._ended.is_set():
            try:
                with self._open_client(_ANSWER_S) as client:
                    # Without waiting: a new collector's log may have begun anew, below our ids.
                    self._hear(client, wait_s=0)
                    pause_s = _FIRST_PAUSE_S
                    while not self._ended.is_set():
                        self._hear(client, wait_s=_WAIT_S)
            except ClientError as exc:
                self._note_trouble(exc)
                self._ended.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _hear(self, client: Client, *, wait_s: float) -> None:
        self._register_once(client)
        since = 0 if self.known.switch is None else self.known.switch.id
        log = client.switch(self._rollout, wait_s=wait_s, since=since)
        self._learn(next(iter(log), None), self.known.ramp)
        if self._ramp is not None:
            step = next(iter(client.ramp(self._rollout)), None)
            self._learn(self.known.switch, step)
            self._promote(client, self._ramp)
        self.trouble = None
        self._asked.set()

    def _register_once(self, client: Client) -> None:
        """Register the policy; what refuses it will refuse it again, and is logged."""
        if self._register is None:
            return
        try:
            self._register(client)
        except ClientError as exc:
            if exc.status is None or exc.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            _log.warning("%s: no policy is registered: %s", self._rollout, exc)
        self._register = None

    def _learn(self, switch: SwitchState | None, step: RampStep | None) -> None:
        before = self.known
        self.known = replace(before, switch=switch, ramp=step, told_unix_ns=time.time_ns())
        if (before.switch, before.ramp) != (switch, step) or before.told_unix_ns is None:
            known_state.write(self._file, self.known)
        if before.switch != switch:
            _log.warning("%s: %s", self._rollout, switch_in_words(self.known))
        if before.ramp != step and step is not None:
            _log.warning("%s: the ramp stands at %g %%", self._rollout, step.percent)

    def _promote(self, client: Client, section: RampSection) -> None:
        """Take the ramp's next step where it may go on by itself."""
        now_s = time.monotonic()
        if not (section.automatic and self.known.on):
            return
        if now_s < self._promoted_at_s + _PROMOTE_EVERY_S:
            return
        self._promoted_at_s = now_s
        try:
            stands = ramp.standing(client, self._rollout)
            change = ramp.next_step(self._rollout, section.steps, stands)
            if stands.verdict is not None:
                ramp.require_confirmed(change, self._confirm(stands.verdict))
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
        self._learn(self.known.switch, step)

    def _note_refusal(self, exc: Exception) -> None:
        if str(exc) != self._refused:
            _log.warning("%s: the ramp cannot go on by itself: %s", self._rollout, exc)
        self._refused = str(exc)

    def _note_trouble(self, exc: ClientError) -> None:
        if self.trouble is None:
            _log.warning("%s: goes on with what it knows: %s", self._rollout, exc)
        self.trouble = str(exc)
        self._asked.set()


def switch_in_words(known: Known) -> str:
    """Return the switch as a line for people."""
    if known.switch is None:
        why = "nobody ever set it" if known.told_unix_ns else "the collector never told"
        return f"the switch is not known to be on ({why}): all requests go to the baseline"
    event = known.switch
    return f"the switch is {event.state}, set by {event.who}: {event.reason}"
