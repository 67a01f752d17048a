"""The rollout file: an experiment in YAML, its validation and its digest."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Final

import yaml
from pydantic import Field, ValidationError

from collector.contract import Change
from engine_adapter import sessions as workload_sessions
from engine_adapter.errors import RolloutFileError, WorkloadError
from engine_adapter.parameters import Parameters
from engine_adapter.prices import Prices
from engine_adapter.routes import HttpRoute, Route, Section
from engine_adapter.run.load_shape import Load
from engine_adapter.sessions import Session
from engine_adapter.validation import describe

_NEWER_KEYS = (("processes", "shared"), ("launches", 1), ("history", "recorded"), ("think_s", None))
SHIPPED_WORKLOADS: Final = Path(__file__).parents[1] / "workloads"


class Sampling(Parameters):
    """Parameters of each request, the same for both arms; a prompt's own override them."""

    temperature: Annotated[float, Field(ge=0)] = 0.0
    max_tokens: Annotated[int, Field(gt=0)] = 256
    seed: int = 0


class CollectorAddress(Section):
    """Address of the collector that receives the spans."""

    url: Annotated[str, Field(pattern=r"^https?://")] = "http://localhost:4318"


class Rollout(Section):
    """One experiment: a workload, two routes, and the load on them."""

    rollout: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\w.:/-]+$")]
    workload: Annotated[str, Field(min_length=1)]
    policy: Annotated[str, Field(min_length=1)] | None = None
    """Policy to register before the first pair: a file, or the name of a shipped policy."""
    change: Change = Change.SPECULATION
    """The one thing in which the arms differ."""
    baseline: Route
    candidate: Route
    sampling: Sampling = Sampling()
    load: Load = Load()
    collector: CollectorAddress = CollectorAddress()
    prices: Prices | None = None
    """What the routes cost; without them, no cost in money is shown."""

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical experiment."""
        unmeasured = {"policy": True, "prices": True}
        document = self.model_dump(
            mode="json", exclude=unmeasured | {"baseline": {"launch"}, "candidate": {"launch"}}
        )
        for key, default in _NEWER_KEYS:
            if document["load"][key] == default:  # so that a journal from before the key goes on
                del document["load"][key]
        if self.change is Change.SPECULATION:
            del document["change"]
        canonical = json.dumps(document, sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


def read(path: Path) -> Rollout:
    """Return the experiment of a YAML file, its paths relative to the file's folder resolved.

    Raises `RolloutFileError` with the file and the key.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise RolloutFileError(f"{path}: cannot be read: {exc.strerror}") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        reason = " ".join(str(exc).split())
        raise RolloutFileError(f"{path}: is not YAML: {reason}") from exc
    if not isinstance(document, dict):
        raise RolloutFileError(f"{path}: wanted keys such as `rollout:` and `workload:`")
    try:
        rollout = Rollout.model_validate(document)
    except ValidationError as exc:
        raise RolloutFileError(f"{path}: {describe(exc, Rollout)}") from exc
    _require_commands(path, rollout)
    return _beside(path.parent, rollout)


def _require_commands(path: Path, rollout: Rollout) -> None:
    """Raise `RolloutFileError` if servers shall be relaunched that have no `start` command."""
    launches = rollout.load.launches
    for arm, route in (("baseline", rollout.baseline), ("candidate", rollout.candidate)):
        if launches > 1 and not (isinstance(route, HttpRoute) and route.start):
            raise RolloutFileError(
                f"{path}: {arm}.start: missing; load.launches is {launches}, so that the server "
                "has to be started anew: give the command, or run once for each launch that you "
                "start yourself, under a rollout name of its own and with --launch"
            )


def sessions(rollout: Rollout) -> list[Session]:
    """Return the sessions of the rollout's workload; a prompt without one is alone.

    Raises `WorkloadError`.
    """
    path, load = Path(rollout.workload), rollout.load
    found = workload_sessions.read(path, own_history=load.history == "own")[: load.max_prompts]
    if load.mode == "trace" and any(len(session) > 1 for session in found):
        raise WorkloadError(
            f"{path}: holds sessions, and the trace of `load.file` has its own; wanted single "
            "prompts, or another `load.mode`"
        )
    return found


def with_launch(rollout: Rollout, launch: str) -> Rollout:
    """Return the rollout with the launch's name on HTTP routes that have no `start` command."""
    return rollout.model_copy(
        update={
            arm: route.model_copy(update={"launch": launch})
            for arm, route in (("baseline", rollout.baseline), ("candidate", rollout.candidate))
            if isinstance(route, HttpRoute) and route.start is None
        }
    )


def _beside(folder: Path, rollout: Rollout) -> Rollout:
    """Return the experiment with relative paths resolved against the rollout file's folder."""
    return rollout.model_copy(
        update={
            "workload": str(_workload_file(folder, rollout.workload)),
            "load": _load_beside(folder, rollout.load),
            "baseline": _route_beside(folder, rollout.baseline),
            "candidate": _route_beside(folder, rollout.candidate),
        }
    )


def _workload_file(folder: Path, name: str) -> Path:
    """Return the file beside the rollout file; without one, the shipped workload of this name."""
    beside, shipped = folder / name, SHIPPED_WORKLOADS / f"{name}.jsonl"
    return shipped if not beside.exists() and shipped.is_file() else beside


def _load_beside(folder: Path, load: Load) -> Load:
    if load.file is None:
        return load
    return load.model_copy(update={"file": str(folder / load.file)})


def _route_beside(folder: Path, route: Route) -> Route:
    if isinstance(route, HttpRoute):
        return route
    update = {
        key: str(folder / value)
        for key, value in (("model", route.model), ("draft_model", route.draft_model))
        if value and (folder / value).is_dir()
    }
    return route.model_copy(update=update)
