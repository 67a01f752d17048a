"""Watch a rollout: count new pairs once, with any number of watchers; switch off proven harm."""

import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

from collector.client import Client, ClientError, PairChanges
from collector.contract import (
    Outcome,
    Role,
    StoredWatch,
    Switch,
    SwitchChange,
    SwitchState,
    Watch,
    WatchAction,
    WatchUpdate,
)
from evals.errors import SourceError
from evals.policy import Policy
from evals.verdict_history import with_history
from evals.watch.advance import advance, refill
from evals.watch.early_pairs import EarlyPairs
from evals.watch.epoch import begun_anew
from evals.watch.plan import begin, live
from evals.watch.verdict import to_verdict
from evals.watch.window import Place, read

_LONGEST_REASON = 2000
_STORE_EVERY = 10_000


class WatchStep(StrEnum):
    """The result of one step."""

    NOTHING_NEW = "nothing new"
    COUNTED = "counted"
    OVERTAKEN = "another watcher went on"


class StepResult(NamedTuple):
    """The state after a step."""

    watch: Watch
    step: WatchStep
    more: bool
    """Whether more pairs are waiting."""
    switch: SwitchState | None
    """State after the step; None if it was never set."""
    set_off: str | None = None
    """Why the switch was set off in this step, or in a dry run would have been."""


class Watcher:
    """Continues from the stored state, one window at a time.

    The state, the place up to which everything is counted, and the switch are changed in one
    transaction of the collector, by compare-and-set on versions. So a watcher can be killed at any
    moment and continue, and of several watchers only one counts each window and acts. Every method
    raises `ClientError` if the collector does not answer; the call can be repeated. A rollout that
    declared looks raises `SourceError`.
    """

    def __init__(
        self,
        client: Client,
        rollout: str,
        policy: Policy,
        *,
        dry_run: bool = False,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """With `dry_run`, start from the stored state, but store, post and set nothing."""
        self._client, self._rollout, self._policy = client, rollout, policy
        self._dry_run, self._clock = dry_run, clock
        self._stored: StoredWatch | None = None
        self._early = EarlyPairs(live(policy).looks[-1])

    def step(self) -> StepResult:
        """Count one window of new pairs, and act on the result."""
        stored, switch = self._state(), self._switch()
        watch = begun_anew(stored.watch, switch)
        start = Place(watch.arrived_up_to, watch.scored_up_to)
        changes = self._client.pair_changes(
            self._rollout, arrived_after=start.arrived, scored_after=start.scored
        )
        if watch == stored.watch and _is_idle(changes, start):
            self._post(stored)
            return StepResult(watch, WatchStep.NOTHING_NEW, changes.more, switch)
        self._read_early_pairs(watch)
        window = read(changes, start)
        if window.evidence.looks is not None:
            raise SourceError(
                f"rollout {self._rollout}: its run declared looks, and which cohort's pairs come "
                "next depends on what they show; judge it at these looks with `draftgate gate`"
            )
        watch = advance(watch, window, self._early, self._policy, self._clock())
        set_off = self._harm(watch, switch)
        if set_off is not None:
            action = WatchAction(time_unix_ns=self._clock(), pairs=watch.pairs, reason=set_off)
            watch = replace(watch, actions=(*watch.actions, action))
        if not self._store(stored, watch, set_off):
            return StepResult(stored.watch, WatchStep.OVERTAKEN, True, switch)  # noqa: FBT003
        if set_off is not None and not self._dry_run:
            switch = self._switch()
        return StepResult(watch, WatchStep.COUNTED, changes.more, switch, set_off)

    def catch_up(self, shown: Callable[[StepResult], None] | None = None) -> StepResult:
        """Count all pairs that are available now."""
        while True:
            result = self.step()
            if shown is not None:
                shown(result)
            if not result.more:
                return result

    def _state(self) -> StoredWatch:
        """Return the newest state, which may be another watcher's."""
        if self._dry_run and self._stored is not None:
            return self._stored
        ours = [
            one
            for one in self._client.watches(self._rollout)
            if one.watch.policy_hash == self._policy.policy_hash
        ]
        fresh = StoredWatch(version=0, updated_unix_ns=0, watch=begin(self._rollout, self._policy))
        self._stored = ours[0] if ours else fresh
        return self._stored

    def _switch(self) -> SwitchState | None:
        log = self._client.switch(self._rollout)
        return log[0] if log else None

    def _read_early_pairs(self, watch: Watch) -> None:
        """Read the first pairs that were counted by another watcher, or before a restart."""
        if all(cell.next_look is None for cell in watch.cells) and watch.threshold_s is not None:
            return
        place = Place(self._early.arrived_up_to, watch.scored_up_to)
        while place.arrived < watch.arrived_up_to:
            changes = self._client.pair_changes(
                self._rollout, arrived_after=place.arrived, scored_after=place.scored
            )
            end = Place(min(changes.arrived_up_to, watch.arrived_up_to), place.scored)
            changes = changes._replace(arrived_up_to=end.arrived, scored_up_to=end.scored)
            refill(watch, read(changes, place), self._early, self._policy)
            place = end

    def _harm(self, watch: Watch, switch: SwitchState | None) -> str | None:
        """Return why the switch must be set off; `None` if it need not, or is off already."""
        if watch.outcome is not Outcome.FAIL or len(watch.actions) > watch.epoch:
            return None  # once an epoch
        if switch is not None and switch.state is Switch.OFF:
            return None
        failed = [
            c.message
            for c in watch.cells
            if c.outcome is Outcome.FAIL and c.role is not Role.REPORT
        ]
        name = f"policy {watch.policy_name} {watch.policy_hash[:12]}"
        reason = f"draftgate watch, {name}: {watch.summary} {'; '.join(failed)}"
        return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"

    def _store(self, stored: StoredWatch, watch: Watch, set_off: str | None) -> bool:
        """Store the next state and the switch's change; False if another watcher was faster."""
        if self._dry_run:
            self._stored = replace(stored, version=stored.version + 1, watch=watch)
            return True
        change = None if set_off is None else SwitchChange(state=Switch.OFF, reason=set_off)
        update = WatchUpdate(continues=stored.version, watch=watch, switch=change)
        done = self._client.update_watch(update)
        if done is None:
            self._stored = None
            return False
        self._stored = done
        self._post(done)
        return True

    def _post(self, stored: StoredWatch) -> None:
        """Post a verdict if the outcome of the release, or of a cell, has changed since the last.

        If the watcher is killed in between, the next one posts again; the last one stored counts.
        """
        outcomes = posted_key(stored.watch)
        if self._dry_run or stored.version == 0 or outcomes == stored.watch.posted:
            return
        verdict = to_verdict(stored.watch, self._policy)
        history = self._client.history(self._rollout)
        try:
            self._client.post_verdict(with_history(verdict, history, self._policy))
        except ClientError as exc:
            if exc.status != HTTPStatus.CONFLICT:
                raise
            self._stored = None  # another watcher went on, and posts what it comes to
            return
        noted = replace(stored.watch, posted=outcomes)
        self._stored = self._client.update_watch(WatchUpdate(continues=stored.version, watch=noted))


def _is_idle(changes: PairChanges, start: Place) -> bool:
    """Return whether the new place need not be stored: nothing of this rollout is new.

    Other rollouts move the place too, so it is still stored after `_STORE_EVERY` scores.
    """
    return len(changes.table) == 0 and changes.scored_up_to - start.scored < _STORE_EVERY


def posted_key(watch: Watch) -> str:
    """Return the key whose change causes a new verdict: outcomes, and cohorts that drifted."""
    letters = "".join(cell.outcome.value[0] for cell in watch.cells)
    drifted = sum(one.drifted for one in watch.acceptance)
    return f"{watch.epoch}:{watch.outcome.value}:{letters}{f':{drifted}' if drifted else ''}"
