"""A sweep: one rollout, with a name of its own, for each draft length and concurrency."""

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from collector.contract import Arm
from engine_adapter.engines import EngineOpener
from engine_adapter.errors import RolloutFileError
from engine_adapter.routes import HttpRoute, LocalRoute, Route, TransformersRoute
from engine_adapter.run import journal
from engine_adapter.run.replay import RunProgress, replay
from engine_adapter.run.rollout_file import Rollout
from engine_adapter.run.server_process import all_serving, require_no_k, serving
from engine_adapter.run.telemetry import require_collector


class Configuration(NamedTuple):
    """One rollout of a sweep."""

    k: int | None
    """None: the candidate as the rollout file has it."""
    concurrency: int | None
    """None: requests arrive at a rate."""
    rollout: Rollout
    label: str
    """The suffix of the rollout's name."""


class Plan(NamedTuple):
    """The draft lengths and concurrencies of a sweep."""

    ks: Sequence[int | None]
    concurrencies: Sequence[int]
    urls: Mapping[int, str]
    """URLs of candidates that already run, by k."""


Show = Callable[[Configuration, RunProgress], None]
Begin = Callable[[Configuration], None]
"""Called before a configuration's first request."""


def run(
    file: Path, rollout: Rollout, plan: Plan, *, begin: Begin, show: Show
) -> Iterator[Configuration]:
    """Run every configuration, or resume it, and yield it; raises `AdapterError`.

    The baseline's server is started once, the candidate's once for each k. With k = 0 the
    candidate is the baseline's own route: an A/A control; without a k, the file's. If the load has
    several launches, both servers are started for each launch of each configuration instead.
    """
    opener = EngineOpener()
    if rollout.load.is_open:
        raise RolloutFileError(
            f"{file}: load.mode: a sweep varies the concurrency of a closed loop, and mode is "
            f"{rollout.load.mode}"
        )
    if rollout.candidate is None:
        raise RolloutFileError(
            f"{file}: arms: a sweep varies one candidate; give it as `candidate`"
        )
    for k in plan.ks:  # raises before any server is started
        _candidate(rollout, k, plan.urls)
    require_collector(rollout.collector.url)
    with contextlib.closing(_served_configurations(file, rollout, plan)) as configurations:
        for made in configurations:
            begin(made)
            _run_one(file, made, opener, show)
            yield made


def _served_configurations(
    file: Path, rollout: Rollout, plan: Plan
) -> Generator[Configuration, None, None]:
    """Yield each configuration while its servers run, unless each launch starts its own."""
    if rollout.load.launches > 1:
        if plan.urls:
            raise RolloutFileError(
                f"{file}: load.launches: {rollout.load.launches}, and --url names servers that "
                "nothing here starts; give a command with {k} under `start:`"
            )
        for k in plan.ks:
            candidate = _candidate(rollout, k, plan.urls)
            for concurrency in plan.concurrencies:
                yield _configured(rollout, k, concurrency, rollout.baseline, candidate)
        return
    with _served(file, Arm.BASELINE, rollout.baseline, 0) as baseline:
        for k in plan.ks:
            route = baseline if k == 0 else _candidate(rollout, k, plan.urls)
            with _served(file, Arm.CANDIDATE, route, k) as served:
                for concurrency in plan.concurrencies:
                    yield _configured(rollout, k, concurrency, baseline, served)


@contextlib.contextmanager
def at_rates(
    file: Path, rollout: Rollout, begin: Begin
) -> Iterator[Callable[[float], Configuration]]:
    """Start both servers once, and yield a function that runs a rate, or resumes it.

    Requests arrive at both arms at once, as a Poisson process. Raises `AdapterError`.
    """
    _require_searchable(file, rollout)
    candidate = _candidate(rollout, None, {})
    require_collector(rollout.collector.url)
    opener = EngineOpener()
    with (
        _served(file, Arm.BASELINE, rollout.baseline, 0) as baseline,
        _served(file, Arm.CANDIDATE, candidate, None) as served,
    ):

        def run_at(rate: float) -> Configuration:
            arrivals = {"mode": "poisson", "rate": rate, "concurrency": None}
            label = f"r{rate:g}"
            made = Configuration(
                None, None, _varied(rollout, label, arrivals, baseline, served), label
            )
            begin(made)
            _run_one(file, made, opener, lambda _made, _step: None)
            return made

        yield run_at


def _require_searchable(file: Path, rollout: Rollout) -> None:
    load = rollout.load
    if load.mode not in ("closed", "poisson"):
        raise RolloutFileError(
            f"{file}: load.mode: --rates draws arrivals by a Poisson process, and mode is "
            f"{load.mode}"
        )
    if load.launches > 1:
        raise RolloutFileError(f"{file}: load.launches: --rates starts each server once")
    if rollout.candidate is None:
        raise RolloutFileError(f"{file}: arms: --rates compares one candidate; give `candidate`")


def _configured(
    rollout: Rollout, k: int | None, concurrency: int, baseline: Route, candidate: Route
) -> Configuration:
    label = f"c{concurrency}" if k is None else f"k{k}-c{concurrency}"
    load = {"concurrency": concurrency}
    varied = _varied(rollout, label, load, baseline, candidate)
    return Configuration(k, concurrency, varied, label)


def _varied(
    rollout: Rollout, label: str, load: Mapping[str, object], baseline: Route, candidate: Route
) -> Rollout:
    update = {
        "rollout": f"{rollout.rollout}-{label}",
        "baseline": baseline,
        "candidate": candidate,
        "load": rollout.load.model_copy(update=load),
    }
    return rollout.model_copy(update=update)


def _run_one(file: Path, made: Configuration, opener: EngineOpener, show: Show) -> None:
    beside = file.with_name(f"{file.name}.{made.label}")

    def serve(launch: int) -> contextlib.AbstractContextManager[Rollout]:
        return all_serving(beside, made.rollout, launch=launch, k=made.k or 0)

    notes = journal.open_beside(beside, _without_ports(made.rollout), fresh=False)
    with contextlib.closing(notes):
        replay(
            made.rollout,
            opener=opener,
            notes=notes,
            progress=lambda step: show(made, step),
            serve=serve if made.rollout.load.launches > 1 else None,
        )


def _without_ports(rollout: Rollout) -> Rollout:
    """Return the rollout without URLs, which change whenever a server is started again."""

    def plain(route: Route) -> Route:
        if isinstance(route, HttpRoute):
            return route.model_copy(update={"url": "http://started"})
        return route

    return rollout.model_copy(update={arm: plain(route) for arm, route in rollout.routes.items()})


def _candidate(rollout: Rollout, k: int | None, urls: Mapping[int, str]) -> Route:
    """Return the candidate with k draft tokens a step; raises `RolloutFileError`."""
    route = rollout.routes[Arm.CANDIDATE]
    if k is None:
        if isinstance(route, HttpRoute):
            require_no_k("candidate", route.start or "", 0)
        return route
    if k == 0:
        return rollout.baseline
    if isinstance(route, TransformersRoute):
        lookup = route.prompt_lookup_num_tokens is not None
        if not lookup and route.draft_model is None:
            raise RolloutFileError("candidate: a sweep needs a `draft_model`, or prompt lookup")
        key = "prompt_lookup_num_tokens" if lookup else "num_speculative_tokens"
        return route.model_copy(update={key: k})
    if isinstance(route, LocalRoute):
        if route.method is None:
            raise RolloutFileError("candidate: a sweep needs a `method`")
        fixed = {"num_speculative_tokens": k, "adaptive": False, "k_by_batch": None}
        return route.model_copy(update=fixed)
    if k in urls:
        return route.model_copy(update={"url": urls[k], "start": None})
    if route.start is None or "{k}" not in route.start:
        raise RolloutFileError(
            f"candidate: nothing serves k = {k}; give a command with {{k}} and {{port}} under "
            f"`start:`, or --url {k}=http://…"
        )
    return route


@contextlib.contextmanager
def _served(file: Path, arm: Arm, route: Route, k: int | None) -> Iterator[Route]:
    if isinstance(route, HttpRoute):
        log = file.with_name(f"{file.name}.{f'k{k}' if k else arm.value}.log")
        with serving(route, key=f"{file}: {arm.value}.start", k=k or 0, log=log) as served:
            yield served
    else:
        yield route
