"""A sweep: one rollout, with a name of its own, for each draft length and concurrency."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from collector.contract import Arm
from engine_adapter.engines import EngineOpener
from engine_adapter.errors import RolloutFileError
from engine_adapter.routes import HttpRoute, LocalRoute, Route, TransformersRoute
from engine_adapter.run import journal
from engine_adapter.run.launches import Serve
from engine_adapter.run.replay import RunCounts, RunProgress, replay
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


def _label(k: int | None, concurrency: int) -> str:
    """Return a suffix such as `k4-c8`, or `c8` without a k."""
    return f"c{concurrency}" if k is None else f"k{k}-c{concurrency}"


class Plan(NamedTuple):
    """The draft lengths and concurrencies of a sweep."""

    ks: Sequence[int | None]
    concurrencies: Sequence[int]
    urls: Mapping[int, str]
    """URLs of candidates that already run, by k."""


Show = Callable[[Configuration, RunProgress], None]
Done = Callable[[Configuration, RunCounts], None]
Begin = Callable[[Configuration], None]
"""Called before a configuration's first request."""


def run(file: Path, rollout: Rollout, plan: Plan, *, begin: Begin, show: Show, done: Done) -> None:
    """Run every configuration, or resume it; raises `AdapterError`.

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
    if rollout.load.launches > 1:
        _run_by_launch(file, rollout, plan, begin=begin, show=show, done=done)
        return
    with _served(file, Arm.BASELINE, rollout.baseline, 0) as baseline:
        for k in plan.ks:
            route = baseline if k == 0 else _candidate(rollout, k, plan.urls)
            with _served(file, Arm.CANDIDATE, route, k) as candidate:
                for concurrency in plan.concurrencies:
                    made = _configured(rollout, k, concurrency, baseline, candidate)
                    begin(made)
                    _run_one(file, made, opener, show, done)


def run_rates(  # one argument a step of the search
    file: Path,
    rollout: Rollout,
    following: Callable[[], float | None],
    *,
    begin: Begin,
    show: Show,
    done: Callable[[float, Configuration], None],
) -> None:
    """Run the rates of `following` until it returns `None`, or resume them; raises `AdapterError`.

    Requests arrive at both arms at once, as a Poisson process. Both servers are started once.
    """
    _require_searchable(file, rollout)
    candidate = _candidate(rollout, None, {})
    require_collector(rollout.collector.url)
    opener = EngineOpener()
    with (
        _served(file, Arm.BASELINE, rollout.baseline, 0) as baseline,
        _served(file, Arm.CANDIDATE, candidate, None) as served,
    ):
        while (rate := following()) is not None:
            made = _at_rate(rollout, rate, baseline, served)
            begin(made)
            _run_one(file, made, opener, show, lambda _made, _counts: None)
            done(rate, made)


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


def _at_rate(rollout: Rollout, rate: float, baseline: Route, candidate: Route) -> Configuration:
    arrivals = {"mode": "poisson", "rate": rate, "concurrency": None}
    label = f"r{rate:g}"
    update = {
        "rollout": f"{rollout.rollout}-{label}",
        "baseline": baseline,
        "candidate": candidate,
        "load": rollout.load.model_copy(update=arrivals),
    }
    return Configuration(None, None, rollout.model_copy(update=update), label)


def _run_by_launch(
    file: Path, rollout: Rollout, plan: Plan, *, begin: Begin, show: Show, done: Done
) -> None:
    """Start both servers for every launch of every configuration."""
    if plan.urls:
        raise RolloutFileError(
            f"{file}: load.launches: {rollout.load.launches}, and --url names servers that nothing "
            "here starts; give a command with {k} under `start:`"
        )
    opener = EngineOpener()
    for k in plan.ks:
        for concurrency in plan.concurrencies:
            candidate = _candidate(rollout, k, plan.urls)
            made = _configured(rollout, k, concurrency, rollout.baseline, candidate)
            beside = file.with_name(f"{file.name}.{made.label}")
            begin(made)
            serve = partial(_launched, beside, made.rollout, k)
            _run_one(file, made, opener, show, done, serve=serve)


def _launched(
    file: Path, rollout: Rollout, k: int | None, launch: int
) -> contextlib.AbstractContextManager[Rollout]:
    return all_serving(file, rollout, launch=launch, k=k or 0)


def _configured(
    rollout: Rollout, k: int | None, concurrency: int, baseline: Route, candidate: Route
) -> Configuration:
    update = {
        "rollout": f"{rollout.rollout}-{_label(k, concurrency)}",
        "baseline": baseline,
        "candidate": candidate,
        "load": rollout.load.model_copy(update={"concurrency": concurrency}),
    }
    return Configuration(k, concurrency, rollout.model_copy(update=update), _label(k, concurrency))


def _run_one(
    file: Path,
    made: Configuration,
    opener: EngineOpener,
    show: Show,
    done: Done,
    serve: Serve | None = None,
) -> None:
    beside = file.with_name(f"{file.name}.{made.label}")
    notes = journal.open_beside(beside, _without_ports(made.rollout), fresh=False)
    with contextlib.closing(notes):
        counts = replay(
            made.rollout,
            opener=opener,
            notes=notes,
            progress=lambda step: show(made, step),
            serve=serve,
        )
    done(made, counts)


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
