"""The collector as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version

from anyio import CapacityLimiter
from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool

from collector.api import (
    generations,
    health,
    otlp_http,
    pairs,
    problems,
    rollouts,
    samples,
    scores,
    traces,
    verdicts,
)
from collector.api.state import State
from collector.counters import Counters
from collector.export import Exporter
from collector.ingest import Ingest
from collector.settings import Settings
from collector.store import Store

_DECODERS = 4


def create_app(settings: Settings) -> FastAPI:
    """Return the application; its lifespan opens the store, starts the writer, and drains it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        store = await run_in_threadpool(
            Store.open, settings.database_url, busy_timeout_s=settings.busy_timeout_s
        )
        ingest = Ingest(store, max_queue_bytes=settings.max_queue_bytes)
        ingest.start()
        decoders, counters = CapacityLimiter(_DECODERS), Counters()
        exporter = Exporter(ingest, decoders, counters)
        app.state.collector = State(settings, store, ingest, decoders, exporter, counters)
        try:
            yield
        finally:
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
        traces,
        scores,
        samples,
        verdicts,
        health,
    ):
        app.include_router(subject.router)
    problems.install(app)
    return app


def _version() -> str:
    try:
        return version("draftgate")
    except PackageNotFoundError:
        return "0+checkout"
