"""Verdicts, watches, switches and ramps."""

from http import HTTPStatus
from urllib.parse import quote

from collector.client.resource import Resource
from collector.contract import (
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


class ReleaseRequests(Resource):
    """Verdicts, watches, switches and ramps."""

    def switch(self, rollout: str, *, wait_s: float = 0, since: int = 0) -> tuple[SwitchState, ...]:
        """Return the newest events of a rollout's switch; the first is its state, none unknown.

        With `wait_s` (at most 60), wait so long for an event after the one with the id `since`.
        """
        query: dict[str, str | int | bool | None] = {"since": since}
        if wait_s:
            query["wait_s"] = str(wait_s)
        body = self._connection.get(_switch_path(rollout), query, wait_s=wait_s)
        return self._connection.records(SwitchState, body, "log")

    def set_switch(self, rollout: str, state: Switch, *, reason: str) -> SwitchState:
        """Set a rollout's switch, which needs the scope admin, and return the stored event."""
        change = to_document(SwitchChange(state=state, reason=reason))
        response = self._connection.post(_switch_path(rollout), change)
        return self._connection.record(SwitchState, self._connection.json(response))

    def ramp(self, rollout: str) -> tuple[RampStep, ...]:
        """Return the newest steps of a rollout's ramp; the first is where it stands, none begun."""
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/ramp"
        return self._connection.records(RampStep, self._connection.get(path), "log")

    def take_step(self, rollout: str, change: RampChange) -> RampStep:
        """Take a step of a rollout's ramp, which needs the scope admin, and return it as stored.

        Raises `ClientError` with the status 409 if somebody else took one first, and if a
        larger share does not name the newest verdict under the registered policy, a pass on pairs
        that arrived after the step before.
        """
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/ramp"
        response = self._connection.post(path, to_document(change))
        return self._connection.record(RampStep, self._connection.json(response))

    def register_policy(self, rollout: str, given: PolicyRegistration) -> RegisteredPolicy:
        """Register the policy that a rollout is to be judged by, which needs the scope judge.

        It counts if it comes before the first pair, which the answer says.
        """
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/policies"
        response = self._connection.post(path, to_document(given))
        return self._connection.record(RegisteredPolicy, self._connection.json(response))

    def history(self, rollout: str) -> RolloutHistory:
        """Return what was registered for a rollout, judged on it, and tried before."""
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/history"
        return self._connection.record(RolloutHistory, self._connection.get(path))

    def watches(self, rollout: str) -> tuple[StoredWatch, ...]:
        """Return how far each watch of a rollout has got, the last updated first."""
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/watches"
        return self._connection.records(StoredWatch, self._connection.get(path), "watches")

    def update_watch(self, update: WatchUpdate) -> StoredWatch | None:
        """Store a watch's next state, which needs the scope judge; setting the switch needs admin.

        None if somebody else went on from the state that this continues: nothing is stored, nor
        set, and `watches` has the newer one.
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
        """Store a verdict, once, which needs the scope judge, and return it as stored.

        Raises `ClientError` with the status 409 if its evidence is not, or no longer, stored.
        """
        response = self._connection.post("/api/v1/verdicts", to_document(verdict))
        return self._connection.record(StoredVerdict, self._connection.json(response))

    def verdicts(self, rollout: str | None = None, *, limit: int = 20) -> tuple[StoredVerdict, ...]:
        """Return the newest verdicts, of one rollout or of all, newest first."""
        body = self._connection.get("/api/v1/verdicts", {"rollout": rollout, "limit": limit})
        return self._connection.records(StoredVerdict, body, "verdicts")

    def decision(self, rollout: str, *, max_age_s: float = 3600.0) -> ReleaseDecision:
        """Return whether a rollout may go on, as its newest verdict says, a pass if it is fresh."""
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/decision"
        body = self._connection.get(path, {"max_age_s": str(max_age_s)})
        return self._connection.record(ReleaseDecision, body)

    def newest_verdict(self, rollout: str) -> StoredVerdict | None:
        """Return a rollout's newest verdict; `None` if nobody judged it."""
        return next(iter(self.verdicts(rollout, limit=1)), None)


def _switch_path(rollout: str) -> str:
    return f"/api/v1/rollouts/{quote(rollout, safe='')}/switch"
