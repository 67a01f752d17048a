"""The collector as an ASGI application."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from anyio import CapacityLimiter
from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool

from collector.access import Authority, LastUsed
from collector.api import (
    about,
    decisions,
    feedback,
    generations,
    health,
    leases,
    metrics,
    otlp_http,
    pairs,
    policies,
    problems,
    ramps,
    regressions,
    rollouts,
    samples,
    scores,
    switches,
    traces,
    unpaired,
    verdicts,
    watches,
)
from collector.api.access import AccessMiddleware
from collector.api.langfuse_path import LangfusePathMiddleware
from collector.api.request_log import RequestLogMiddleware
from collector.api.rollout_metrics import RolloutMetrics
from collector.api.state import State
from collector.api.switch_watch import SwitchWatch
from collector.api_key import ApiKey
from collector.ingest.counters import Counters
from collector.ingest.export import Exporter
from collector.ingest.queue import Ingest
from collector.notify import notifier, targets
from collector.notify.notifier import Notifier
from collector.serving.silence import Silence
from collector.serving.upkeep import Upkeep
from collector.settings import Settings, policy_of
from collector.store import Keep, Store, keys

# Separate from the decoders, because decompression needs neither the GIL nor the turn.
_INFLATERS = 2  # so that one long decompression does not block all others
_DECODERS = 1  # decoding is bound by the GIL: a second thread would only contend for it


def create_app(settings: Settings) -> FastAPI:
    """Return the application; its lifespan opens the store and starts and drains the writer."""
    policy = policy_of(settings)
    notify_targets = () if settings.notify is None else targets.read(settings.notify)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        store = await run_in_threadpool(
            Store.open,
            settings.database_url,
            analytics_url=settings.analytics_url,
            busy_timeout_s=settings.busy_timeout_s,
        )
        own_key = await run_in_threadpool(store.redaction_key)
        content = policy.keyed(settings.redaction_key or own_key)
        counters = Counters()
        ingest = Ingest(store, max_queue_bytes=settings.max_queue_bytes, counters=counters)
        authority = Authority(
            lambda id_: _stored_key(store, id_),
            required=settings.require_keys,
            default_rate_per_s=settings.key_rate_per_s,
            take=store.take_token if store.is_shared else None,
        )
        last_used = LastUsed(authority, store)
        upkeep = Upkeep(
            store,
            Keep(settings.retention_spans_s, settings.retention_content_s),
            silence=Silence(store, settings.silence_s) if notify_targets else None,
        )
        await run_in_threadpool(notifier.follow, store, notify_targets)
        sender = Notifier(store, notify_targets, counters.notified)
        ingest.start()
        last_used.start()
        upkeep.start()
        sender.start()
        switch_watch = SwitchWatch(store)
        rollout_metrics = RolloutMetrics(store)
        stop_metrics = _metrics_sent(settings, rollout_metrics)
        exporter = Exporter(ingest, CapacityLimiter(_DECODERS), counters, content)
        app.state.collector = State(
            settings,
            store,
            ingest,
            CapacityLimiter(_INFLATERS),
            exporter,
            content,
            authority,
            counters,
            switch_watch,
            rollout_metrics,
        )
        try:
            yield
        finally:
            await switch_watch.end()
            await run_in_threadpool(stop_metrics)
            await run_in_threadpool(sender.stop)
            await run_in_threadpool(upkeep.stop)
            await run_in_threadpool(last_used.stop)
            await run_in_threadpool(ingest.stop)
            await run_in_threadpool(store.close)

    app = FastAPI(
        title="Draftgate collector",
        version=_version(),
        lifespan=lifespan,
        separate_input_output_schemas=False,
    )
    for subject in (
        otlp_http,
        rollouts,
        generations,
        pairs,
        regressions,
        unpaired,
        traces,
        scores,
        feedback,
        leases,
        samples,
        switches,
        ramps,
        decisions,
        verdicts,
        watches,
        health,
        about,
        metrics,
        policies,
    ):
        # `include_router` would analyse each route again in every application.
        app.router.routes.extend(subject.router.routes)
    problems.install(app)
    app.add_middleware(AccessMiddleware)
    app.add_middleware(RequestLogMiddleware)
    app.add_middleware(LangfusePathMiddleware)  # the last one added is the outermost
    return app


def _stored_key(store: Store, id_: str) -> ApiKey | None:
    with store.read() as connection:
        return keys.by_id(connection, id_)


@cache
def _version() -> str:
    try:
        return version("draftgate")
    except PackageNotFoundError:
        return "0+checkout"


def _metrics_sent(settings: Settings, metrics: RolloutMetrics) -> Callable[[], None]:
    """Begin to send metrics, if there is an endpoint; return what ends it."""
    if settings.metrics_endpoint is None:
        return lambda: None
    # Here, because the SDK's exporter would make the start of every local command slower.
    from collector.serving.metrics_export import MetricsExport  # noqa: PLC0415

    export = MetricsExport(
        settings.metrics_endpoint, metrics.collect, every_s=settings.metrics_every_s
    )
    export.start()
    return export.stop
