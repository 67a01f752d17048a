"""Client requests for verdicts, watches, switches and ramps."""

from http import HTTPStatus
from urllib.parse import quote

from collector.client.resource import ApiResource
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
    to_document,
)
from collector.errors import ClientError


class ReleaseRequests(ApiResource):
    """Verdicts, watches, switches and ramps."""

    def switch(self, rollout: str, *, wait_s: float = 0, since: int = 0) -> tuple[SwitchState, ...]:
        """Return the newest events of a rollout's switch, whose first is its state.

        Empty if it was never set. With `wait_s` (at most 60), wait up to that long for an event
        after the one with the id `since`.
        """
        query: dict[str, str | int | bool | None] = {"since": since}
        if wait_s:
            query["wait_s"] = str(wait_s)
        body = self._connection.get(_switch_path(rollout), query, wait_s=wait_s)
        return self._connection.records(SwitchState, body, "log")

    def set_switch(self, rollout: str, state: Switch, *, reason: str) -> SwitchState:
        """Set a rollout's switch and return the stored event; needs the scope admin."""
        change = to_document(SwitchChange(state=state, reason=reason))
        response = self._connection.post(_switch_path(rollout), change)
        return self._connection.record(SwitchState, self._connection.json(response))

    def ramp(self, rollout: str) -> tuple[RampStep, ...]:
        """Return the newest steps of a rollout's ramp, whose first is the current one."""
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/ramp"
        return self._connection.records(RampStep, self._connection.get(path), "log")

    def take_step(self, rollout: str, change: RampChange) -> RampStep:
        """Take a step of a rollout's ramp and return it as stored; needs the scope admin.

        Raises `ClientError` with the status 409 if another step was stored first, and if a larger
        share does not name the newest verdict under the registered policy, which must be a pass on
        pairs that arrived after the last step.
        """
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/ramp"
        response = self._connection.post(path, to_document(change))
        return self._connection.record(RampStep, self._connection.json(response))

    def register_policy(self, rollout: str, given: PolicyRegistration) -> RegisteredPolicy:
        """Register the policy to judge a rollout by; needs the scope judge.

        It takes effect only if no pair has arrived yet: see `before_first_pair` of the result.
        """
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/policies"
        response = self._connection.post(path, to_document(given))
        return self._connection.record(RegisteredPolicy, self._connection.json(response))

    def history(self, rollout: str) -> RolloutHistory:
        """Return a rollout's policies and verdicts, and earlier rollouts of the same candidate."""
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/history"
        return self._connection.record(RolloutHistory, self._connection.get(path))

    def dated_verdicts(
        self, rollout: str, *, same_candidate: bool = False, limit: int = 100
    ) -> tuple[DatedVerdict, ...]:
        """Return a rollout's newest verdicts with what they judged, newest first.

        With `same_candidate`, also those on earlier rollouts of the same candidate.
        """
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/verdicts"
        same = str(same_candidate).lower()
        body = self._connection.get(path, {"same_candidate": same, "limit": limit})
        return self._connection.records(DatedVerdict, body, "verdicts")

    def watches(self, rollout: str) -> tuple[StoredWatch, ...]:
        """Return the state of each watch of a rollout, the last updated first."""
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/watches"
        return self._connection.records(StoredWatch, self._connection.get(path), "watches")

    def update_watch(self, update: WatchUpdate) -> StoredWatch | None:
        """Store a watch's next state; needs the scope judge, and admin if it sets the switch.

        Returns None if the state that this continues is no longer the newest: then nothing is
        stored or set, and `watches` returns the newer state.
        """
        path = f"/api/v1/rollouts/{quote(update.watch.rollout, safe='')}/watches"
        try:
            response = self._connection.post(path, to_document(update))
        except ClientError as exc:
            if exc.status == HTTPStatus.CONFLICT:
                return None
            raise
        return self._connection.record(StoredWatch, self._connection.json(response))

    def post_verdict(self, verdict: Verdict) -> StoredVerdict:
        """Store a verdict and return it as stored; idempotent; needs the scope judge.

        Raises `ClientError` with the status 409 if its evidence is not, or no longer, stored.
        """
        response = self._connection.post("/api/v1/verdicts", to_document(verdict))
        return self._connection.record(StoredVerdict, self._connection.json(response))

    def verdicts(self, rollout: str | None = None, *, limit: int = 20) -> tuple[StoredVerdict, ...]:
        """Return the newest verdicts, of one rollout or of all, newest first."""
        body = self._connection.get("/api/v1/verdicts", {"rollout": rollout, "limit": limit})
        return self._connection.records(StoredVerdict, body, "verdicts")

    def decision(self, rollout: str, *, max_age_s: float = 3600.0) -> ReleaseDecision:
        """Return whether a rollout may proceed, by its newest verdict; a pass must be fresh."""
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/decision"
        body = self._connection.get(path, {"max_age_s": str(max_age_s)})
        return self._connection.record(ReleaseDecision, body)

    def newest_verdict(self, rollout: str) -> StoredVerdict | None:
        """Return a rollout's newest verdict; None if it has none."""
        return next(iter(self.verdicts(rollout, limit=1)), None)


def _switch_path(rollout: str) -> str:
    return f"/api/v1/rollouts/{quote(rollout, safe='')}/switch"
