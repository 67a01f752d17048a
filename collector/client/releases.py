"""Client requests for verdicts, watches, switches and ramps."""

from http import HTTPStatus

from collector.client.connection import ApiResource, Query, rollout_path
from collector.contract import (
    DatedVerdict,
    PolicyRegistration,
    RampChange,
    RampStep,
    RegisteredPolicy,
    ReleaseDecision,
    RolloutHistory,
    StoredVerdict,
    StoredWatch,
    Switch,
    SwitchChange,
    SwitchState,
    Verdict,
    WatchUpdate,
)
from collector.errors import ClientError


class ReleaseRequests(ApiResource):
    """Verdicts, watches, switches and ramps."""

    def switch(self, rollout: str, *, wait_s: float = 0, since: int = 0) -> tuple[SwitchState, ...]:
        """Return the newest events of a rollout's switch, whose first is its state.

        Empty if it was never set. With `wait_s` (at most 60), wait up to that long for an event
        after the one with the id `since`.
        """
        path, query = rollout_path(rollout, "switch"), {"since": since, "wait_s": wait_s or None}
        return self._connection.list(SwitchState, "log", path, query, wait_s=wait_s)

    def set_switch(self, rollout: str, state: Switch, *, reason: str) -> SwitchState:
        """Set a rollout's switch and return the stored event; needs the scope admin."""
        change = SwitchChange(state=state, reason=reason)
        return self._connection.post_record(SwitchState, rollout_path(rollout, "switch"), change)

    def ramp(self, rollout: str) -> tuple[RampStep, ...]:
        """Return the newest steps of a rollout's ramp, whose first is the current one."""
        return self._connection.list(RampStep, "log", rollout_path(rollout, "ramp"))

    def take_step(self, rollout: str, change: RampChange) -> RampStep:
        """Take a step of a rollout's ramp and return it as stored; needs the scope admin.

        Raises `ClientError` with the status 409 if another step was stored first, and if a larger
        share does not name the newest verdict under the registered policy, which must be a pass on
        pairs that arrived after the last step.
        """
        return self._connection.post_record(RampStep, rollout_path(rollout, "ramp"), change)

    def register_policy(self, rollout: str, given: PolicyRegistration) -> RegisteredPolicy:
        """Register the policy to judge a rollout by; needs the scope judge.

        It takes effect only if no pair has arrived yet: see `before_first_pair` of the result.
        """
        return self._connection.post_record(
            RegisteredPolicy, rollout_path(rollout, "policies"), given
        )

    def history(self, rollout: str) -> RolloutHistory:
        """Return a rollout's policies and verdicts, and earlier rollouts of the same candidate."""
        body = self._connection.get(rollout_path(rollout, "history"))
        return self._connection.record(RolloutHistory, body)

    def dated_verdicts(
        self, rollout: str, *, same_candidate: bool = False, limit: int = 100
    ) -> tuple[DatedVerdict, ...]:
        """Return a rollout's newest verdicts with what they judged, newest first.

        With `same_candidate`, also those on earlier rollouts of the same candidate.
        """
        path = rollout_path(rollout, "verdicts")
        query: Query = {"same_candidate": same_candidate, "limit": limit}
        return self._connection.list(DatedVerdict, "verdicts", path, query)

    def watches(self, rollout: str) -> tuple[StoredWatch, ...]:
        """Return the state of each watch of a rollout, the last updated first."""
        return self._connection.list(StoredWatch, "watches", rollout_path(rollout, "watches"))

    def update_watch(self, update: WatchUpdate) -> StoredWatch | None:
        """Store a watch's next state; needs the scope judge, and admin if it sets the switch.

        Returns None if the state that this continues is no longer the newest: then nothing is
        stored or set, and `watches` returns the newer state.
        """
        path = rollout_path(update.watch.rollout, "watches")
        try:
            return self._connection.post_record(StoredWatch, path, update)
        except ClientError as exc:
            if exc.status == HTTPStatus.CONFLICT:
                return None
            raise

    def post_verdict(self, verdict: Verdict) -> StoredVerdict:
        """Store a verdict and return it as stored; idempotent; needs the scope judge.

        Raises `ClientError` with the status 409 if its evidence is not, or no longer, stored.
        """
        return self._connection.post_record(StoredVerdict, "/api/v1/verdicts", verdict)

    def verdicts(self, rollout: str | None = None, *, limit: int = 20) -> tuple[StoredVerdict, ...]:
        """Return the newest verdicts, of one rollout or of all, newest first."""
        query: Query = {"rollout": rollout, "limit": limit}
        return self._connection.list(StoredVerdict, "verdicts", "/api/v1/verdicts", query)

    def decision(self, rollout: str, *, max_age_s: float = 3600.0) -> ReleaseDecision:
        """Return whether a rollout may proceed, by its newest verdict; a pass must be fresh."""
        body = self._connection.get(rollout_path(rollout, "decision"), {"max_age_s": max_age_s})
        return self._connection.record(ReleaseDecision, body)

    def newest_verdict(self, rollout: str) -> StoredVerdict | None:
        """Return a rollout's newest verdict; None if it has none."""
        return next(iter(self.verdicts(rollout, limit=1)), None)
