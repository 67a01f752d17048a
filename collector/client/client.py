"""The one door to stored data: a synchronous client of the collector's HTTP API."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import quote

import httpx
import pyarrow as pa
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.client.connection import PROTOBUF, Connection, Query
from collector.contract import (
    Arm,
    ArmSummary,
    EngineSample,
    Feedback,
    Generation,
    Lease,
    LeaseRequest,
    Pair,
    RampChange,
    RampStep,
    Regression,
    RolloutOverview,
    Score,
    Span,
    StoredVerdict,
    StoredWatch,
    Switch,
    SwitchChange,
    SwitchState,
    TimeBucket,
    Verdict,
    WatchUpdate,
    to_document,
)
from collector.contract.span_json import span_from_document
from collector.errors import ClientError, StoreError

__all__ = ["About", "Client", "ClientError", "PairChanges", "PairPage", "RegressionPage"]

_SCORES_A_POST = 1000
Instant = datetime | float
"""A time with its zone, or seconds since 1970."""


class PairPage(NamedTuple):
    """Pairs by prompt id and repeat."""

    pairs: tuple[Pair, ...]
    next: str | None
    """What to pass as `after` for the next page; None on the last."""


class RegressionPage(NamedTuple):
    """Pairs whose candidate scored lower, the greatest loss first."""

    regressions: tuple[Regression, ...]
    next: str | None
    """What to pass as `after` for the next page; None on the last."""
    metrics: tuple[str, ...]
    """All that a pair of the rollout lost in."""
    counted: int
    """All that were asked for, up to `counted_at_most`."""
    counted_at_most: int
    waiting_scores: int
    """Posts of scores, of any rollout, that are not in this order yet."""


class PairChanges(NamedTuple):
    """What is new of a rollout's pairs, and where to ask on."""

    table: pa.Table
    arrived_up_to: int
    scored_up_to: int
    more: bool
    """Whether anything stands after it already."""


class About(NamedTuple):
    """How a collector is deployed."""

    captures_content: bool
    """Whether prompts and answers are kept."""
    requires_keys: bool


class Client:
    """Reads and writes what a collector stores; a context manager.

    Every method raises `ClientError` where the collector cannot be reached, refuses, or answers
    with something else.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        ca_file: str | Path | None = None,
        timeout_s: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Ask the collector at `url` with an API key; trust `ca_file` instead of the system."""
        self._connection = Connection(
            url, key=key, ca_file=ca_file, timeout_s=timeout_s, transport=transport
        )

    @classmethod
    def from_environment(cls, url: str, *, timeout_s: float = 30.0) -> "Client":
        """Ask with the key of DRAFTGATE_API_KEY and the certificates of DRAFTGATE_CA_FILE."""
        key, ca_file = os.environ.get("DRAFTGATE_API_KEY"), os.environ.get("DRAFTGATE_CA_FILE")
        return cls(url, key=key or None, ca_file=ca_file or None, timeout_s=timeout_s)

    @classmethod
    def local(cls, database_url: str, *, capture_content: bool = False) -> "Client":
        """Serve a database in this process, creating it or bringing it to the newest schema.

        The same application, without a server and without keys. `capture_content` says whether
        text that is posted is kept. Raises `ClientError` where the database cannot be opened.
        """
        # Not at the top: a client of a running collector needs neither FastAPI nor SQLAlchemy.
        from collector.client.asgi_transport import InProcessTransport  # noqa: PLC0415
        from collector.serving.app import create_app  # noqa: PLC0415
        from collector.settings import Settings, analytics_url  # noqa: PLC0415

        settings = Settings(
            database_url=database_url,
            analytics_url=analytics_url(),
            capture_content=capture_content,
        )
        app = create_app(settings)
        try:
            transport = InProcessTransport(app, app.router.lifespan_context(app))
        except StoreError as exc:
            raise ClientError(str(exc)) from exc
        return cls("http://draftgate.local", transport=transport)

    def close(self) -> None:
        """Close connections; a local database is closed with what was posted in it."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def health(self) -> bool:
        """Say whether a collector answers."""
        try:
            return bool(self._connection.get("/healthz") == {"status": "ok"})
        except ClientError:
            return False

    def about(self) -> About:
        """Say how the collector is deployed."""
        body = self._connection.get("/api/v1/collector")
        try:
            return About(bool(body["captures_content"]), bool(body["requires_keys"]))
        except (KeyError, TypeError) as exc:
            raise self._connection.alien(exc) from exc

    def post_traces(
        self, body: bytes, *, content_type: str = PROTOBUF, gzipped: bool = False
    ) -> None:
        """Store the spans of an OTLP body; on return they are durable.

        `gzipped` says that the body is. Raises `ClientError` where any span was rejected.
        """
        headers = {"Content-Type": content_type}
        if gzipped:
            headers["Content-Encoding"] = "gzip"
        response = self._connection.send("POST", "/v1/traces", content=body, headers=headers)
        rejected, reason = self._partial_success(response)
        if rejected:
            raise ClientError(f"{response.url}: {rejected} spans were rejected: {reason}")

    def rollouts(self) -> tuple[RolloutOverview, ...]:
        """Return every rollout that has a generation, by name."""
        return self._connection.records(
            RolloutOverview, self._connection.get("/api/v1/rollouts"), "rollouts"
        )

    def summary(
        self, rollout: str, *, start: Instant | None = None, end: Instant | None = None
    ) -> tuple[ArmSummary, ...]:
        """Return counts, sums and percentiles, one row for each cohort and arm.

        Of all generations, or of those that began in [start, end), each a datetime with its zone or
        Unix seconds; the window is widened to whole minutes.
        """
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/summary"
        return self._connection.records(
            ArmSummary, self._connection.get(path, _window(start, end)), "summary"
        )

    def timeseries(
        self,
        rollout: str,
        *,
        step: str,
        start: Instant | None = None,
        end: Instant | None = None,
        cohort: str | None = None,
        counts_only: bool = False,
    ) -> tuple[TimeBucket, ...]:
        """Return the summary step by step: a `minute`, an `hour` or a `day` (UTC) each.

        The window is widened to whole steps. A step in which nothing began has no row. With
        `counts_only` there is nothing of what was measured, which is most of the work.
        """
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/timeseries"
        query = {
            "step": step,
            "cohort": cohort,
            "counts_only": counts_only or None,
            **_window(start, end),
        }
        return self._connection.records(TimeBucket, self._connection.get(path, query), "timeseries")

    def generations(
        self,
        rollout: str,
        *,
        arm: Arm | None = None,
        cohort: str | None = None,
        content: bool = False,
    ) -> Iterator[Generation]:
        """Yield a rollout's generations in the order of arrival, page by page."""
        query = {
            "rollout": rollout,
            "arm": arm.value if arm is not None else None,
            "cohort": cohort,
            "content": content,
        }
        return self._connection.pages(Generation, "/api/v1/generations", query, "generations")

    def newest(
        self,
        limit: int = 50,
        rollout: str | None = None,
        *,
        arm: Arm | None = None,
        cohort: str | None = None,
        content: bool = False,
    ) -> tuple[Generation, ...]:
        """Return the `limit` (1 to 1000) generations that arrived last, the newest first.

        Of all, or of one rollout, which must be named for an arm or a cohort.
        """
        query = {
            "rollout": rollout,
            "arm": arm.value if arm is not None else None,
            "cohort": cohort,
            "content": content,
            "order": "newest",
            "limit": limit,
        }
        return self._connection.records(
            Generation, self._connection.get("/api/v1/generations", query), "generations"
        )

    def generation_batches(  # noqa: PLR0913  # one argument a query's parameter
        self,
        rollout: str | None = None,
        *,
        arm: Arm | None = None,
        cohort: str | None = None,
        arrived_since: date | None = None,
        arrived_until: date | None = None,
        content: bool = False,
        scores: bool = False,
        newest: bool = False,
        fields: Sequence[str] = (),
    ) -> AbstractContextManager[pa.RecordBatchReader]:
        """Open a stream of generations as Arrow columns, in the order of arrival or newest first.

        Its `schema` is known at once; iterating gives batches, of which few are held at a time.
        Columns are the fields of `Generation`, those of its speculation after `spec_`; with
        `content` also the text, with `scores` a list of scores a row. `arrived_since` and
        `arrived_until` are days (UTC), the latter not in the window itself. `fields` names the
        columns that are wanted, where not all of them are.
        """
        query = {
            "rollout": rollout,
            "arm": arm.value if arm is not None else None,
            "cohort": cohort,
            "arrived_since": arrived_since.isoformat() if arrived_since is not None else None,
            "arrived_until": arrived_until.isoformat() if arrived_until is not None else None,
            "content": content,
            "scores": scores,
            "order": "newest" if newest else None,
            "field": tuple(fields),
        }
        return self._connection.arrow("/api/v1/generations", query)

    def pairs(
        self,
        rollout: str,
        *,
        cohort: str | None = None,
        content: bool = False,
        limit: int = 100,
        after: str | None = None,
    ) -> PairPage:
        """Return a page of at most `limit` (1 to 1000) pairs with their scores."""
        query = {
            "rollout": rollout,
            "cohort": cohort,
            "content": content,
            "limit": limit,
            "after": after,
        }
        body = self._connection.get("/api/v1/pairs", query)
        return PairPage(self._connection.records(Pair, body, "pairs"), body["next"])

    def pair(
        self, rollout: str, prompt_id: str, repeat: int, *, content: bool = False
    ) -> Pair | None:
        """Return one pair with its scores; None where neither side is stored."""
        query: Query = {
            "rollout": rollout,
            "prompt_id": prompt_id,
            "repeat": repeat,
            "content": content,
        }
        found = self._connection.records(
            Pair, self._connection.get("/api/v1/pairs", query), "pairs"
        )
        return next(iter(found), None)

    def regressions(
        self,
        rollout: str,
        *,
        cohort: str | None = None,
        metric: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> RegressionPage:
        """Return a page of at most `limit` (1 to 1000) pairs whose candidate scored lower.

        The greatest loss stands first: in the metric, or in the one that a pair lost most in.
        """
        query: Query = {
            "rollout": rollout,
            "cohort": cohort,
            "metric": metric,
            "limit": limit,
            "after": after,
        }
        body = self._connection.get("/api/v1/regressions", query)
        found = self._connection.records(Regression, body, "regressions")
        try:
            counts = [int(body[name]) for name in ("counted", "counted_at_most", "waiting_scores")]
            return RegressionPage(found, body["next"], tuple(body["metrics"]), *counts)
        except (KeyError, TypeError, ValueError) as exc:
            raise self._connection.alien(exc) from exc

    def pairs_table(self, rollout: str) -> pa.Table:
        """Return all pairs of a rollout as Arrow columns, one row a pair, numbers only."""
        with self._connection.arrow("/api/v1/pairs", {"rollout": rollout}) as reader:
            return reader.read_all()

    def pair_changes(self, rollout: str, *, arrived_after: int, scored_after: int) -> PairChanges:
        """Return the pairs of which anything arrived, or was first scored, since a place.

        Columns as of `pairs_table`, and for each side `arrival` and `scored_{metric}`: the numbers
        of its first generation and first score, null where there is none. A window holds at most
        20,000 of either; ask on from where it ends.
        """
        query: Query = {
            "rollout": rollout,
            "arrived_after": arrived_after,
            "scored_after": scored_after,
        }
        with self._connection.arrow("/api/v1/pairs", query) as reader:
            end, table = reader.schema.metadata or {}, reader.read_all()
        try:
            arrived, scored = (int(end[name]) for name in (b"arrived_up_to", b"scored_up_to"))
            return PairChanges(table, arrived, scored, end[b"more"] == b"1")
        except (KeyError, ValueError) as exc:
            raise self._connection.alien(exc) from exc

    def trace(self, trace_id: str) -> tuple[Span, ...]:
        """Return every stored span of a trace, by start."""
        body = self._connection.get(f"/api/v1/traces/{quote(trace_id, safe='')}")
        try:
            return tuple(span_from_document(document) for document in body["spans"])
        except (KeyError, TypeError, ValueError) as exc:
            raise self._connection.alien(exc) from exc

    def post_scores(self, scores: Iterable[Score]) -> None:
        """Store scores; each replaces the same evaluator version's earlier one of that span."""
        left = iter(scores)
        while batch := [to_document(score) for score in islice(left, _SCORES_A_POST)]:
            self._connection.post("/api/v1/scores", batch)

    def scores(self, rollout: str, *, metric: str | None = None) -> Iterator[Score]:
        """Yield the scores of a rollout's generations, page by page."""
        query = {"rollout": rollout, "metric": metric}
        return self._connection.pages(Score, "/api/v1/scores", query, "scores")

    def lease(self, wanted: LeaseRequest, *, content: bool = True) -> Lease | None:
        """Lease generations that no other worker has, or has had, in hand; None where none are.

        What it judged is posted with `post_scores`; then `finish_lease`.
        """
        path = f"/api/v1/leases?content={str(content).lower()}"
        body = self._connection.json(self._connection.post(path, to_document(wanted)))
        try:
            found = body["lease"]
        except (KeyError, TypeError) as exc:
            raise self._connection.alien(exc) from exc
        return None if found is None else self._connection.record(Lease, found)

    def renew_lease(self, id_: str, *, ttl_s: float) -> bool:
        """Let a lease last so long from now on, 0 gives it back; False where it is lost."""
        return self._unless_lost(
            lambda: self._connection.post(f"{_lease_path(id_)}/renewal", {"ttl_s": ttl_s})
        )

    def finish_lease(self, id_: str) -> bool:
        """Say that all of a lease is scored; False where it is somebody else's by now."""
        return self._unless_lost(lambda: self._connection.send("DELETE", _lease_path(id_)))

    def post_feedback(self, feedback: Iterable[Feedback]) -> None:
        """Store feedback; each replaces the same source's earlier one of that span and kind."""
        left = iter(feedback)
        while batch := [to_document(given) for given in islice(left, _SCORES_A_POST)]:
            self._connection.post("/api/v1/feedback", batch)

    def feedback(
        self, rollout: str, *, content: bool = False, newest: int | None = None
    ) -> Iterator[Feedback]:
        """Yield the feedback on a rollout's generations, page by page; comments with `content`.

        Of all, or of so many that arrived last.
        """
        query: Query = {"rollout": rollout, "content": content, "newest": newest}
        return self._connection.pages(Feedback, "/api/v1/feedback", query, "feedback")

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

        Raises `ClientError` with the status 409 where somebody else took one first, and where a
        larger share does not name the newest verdict, a pass posted after the step before.
        """
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/ramp"
        response = self._connection.post(path, to_document(change))
        return self._connection.record(RampStep, self._connection.json(response))

    def watches(self, rollout: str) -> tuple[StoredWatch, ...]:
        """Return how far each watch of a rollout has got, the last updated first."""
        path = f"/api/v1/rollouts/{quote(rollout, safe='')}/watches"
        return self._connection.records(StoredWatch, self._connection.get(path), "watches")

    def update_watch(self, update: WatchUpdate) -> StoredWatch | None:
        """Store a watch's next state, and set the switch with it, which needs the scope admin.

        None where somebody else went on from the state that this continues: nothing is stored, nor
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

    def samples(
        self,
        metric: str,
        *,
        service_name: str | None = None,
        since_unix_ns: int = 0,
        until_unix_ns: int | None = None,
    ) -> Iterator[EngineSample]:
        """Yield a metric's engine samples from `since` to before `until`, by time, page by page."""
        query = {
            "metric": metric,
            "service_name": service_name,
            "since_unix_ns": since_unix_ns,
            "until_unix_ns": until_unix_ns,
        }
        return self._connection.pages(EngineSample, "/api/v1/samples", query, "samples")

    def post_verdict(self, verdict: Verdict) -> StoredVerdict:
        """Store a verdict, once, and return it as stored."""
        response = self._connection.post("/api/v1/verdicts", to_document(verdict))
        return self._connection.record(StoredVerdict, self._connection.json(response))

    def verdicts(self, rollout: str | None = None, *, limit: int = 20) -> tuple[StoredVerdict, ...]:
        """Return the newest verdicts, of one rollout or of all, newest first."""
        body = self._connection.get("/api/v1/verdicts", {"rollout": rollout, "limit": limit})
        return self._connection.records(StoredVerdict, body, "verdicts")

    @staticmethod
    def _unless_lost(ask: Callable[[], object]) -> bool:
        try:
            ask()
        except ClientError as exc:
            if exc.status == HTTPStatus.CONFLICT:
                return False
            raise
        return True

    def _partial_success(self, response: httpx.Response) -> tuple[int, str]:
        if response.headers.get("content-type", "").startswith("application/json"):
            partial = self._connection.json(response).get("partialSuccess", {})
            return int(partial.get("rejectedSpans", 0)), partial.get("errorMessage", "")
        message = ExportTraceServiceResponse()
        try:
            message.ParseFromString(response.content)
        except DecodeError as exc:
            raise self._connection.alien(exc) from exc
        return message.partial_success.rejected_spans, message.partial_success.error_message


def _window(start: Instant | None, end: Instant | None) -> Query:
    return {"start": _instant("start", start), "end": _instant("end", end)}


def _instant(name: str, given: Instant | None) -> str | None:
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise ClientError(f"{name}={given}: has no time zone; wanted one, such as UTC")
        return given.isoformat()
    return None if given is None else repr(given)


def _lease_path(id_: str) -> str:
    return f"/api/v1/leases/{quote(id_, safe='')}"


def _switch_path(rollout: str) -> str:
    return f"/api/v1/rollouts/{quote(rollout, safe='')}/switch"
