"""The rollout file: an experiment in YAML, its validation and its digest."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic.json_schema import SkipJsonSchema

from collector.contract import Arm, Change, Family
from engine_adapter import sessions as workload_sessions
from engine_adapter.errors import RolloutFileError, WorkloadError
from engine_adapter.parameters import Parameters
from engine_adapter.prices import Prices
from engine_adapter.routes import HttpRoute, Route, Section
from engine_adapter.run.load_shape import Load
from engine_adapter.sessions import Session
from engine_adapter.validation import describe, read_yaml

_NEWER_KEYS = (
    ("processes", "shared"),
    ("launches", 1),
    ("history", "recorded"),
    ("think_s", None),
    ("sentinels", {"prompts": 2, "every": None}),
)
_LONGEST_NAME: Final = 200
SHIPPED_WORKLOADS: Final = Path(__file__).parents[1] / "workloads"


class Sampling(Parameters):
    """Parameters of each request, the same for both arms; a prompt's own override them."""

    temperature: Annotated[float, Field(ge=0)] = 0.0
    """Sampling temperature; 0 is greedy."""
    max_tokens: Annotated[int, Field(gt=0)] = 256
    """Maximum number of output tokens."""
    seed: int = 0
    """Seed of the first repeat; each further repeat adds 1."""


class CollectorAddress(Section):
    """Address of the collector that receives the spans."""

    url: Annotated[str, Field(pattern=r"^https?://")] = "http://localhost:4318"
    """Address of the collector that receives the spans."""


ArmName = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_.]+$")]


class CandidateArm(Section):
    """One of several candidates: the keys of a route, and these."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    route: SkipJsonSchema[Route]
    """Engine of this candidate."""
    change: Change | None = None
    """The one thing in which it differs from the baseline; default: the file's `change`."""
    combines: tuple[ArmName, ArmName] | None = None
    """The two other arms whose changes it makes together."""

    @model_validator(mode="before")
    @classmethod
    def _holds_its_route(cls, given: object) -> object:
        """Take the keys of the route out of those of the arm."""
        if not isinstance(given, dict) or isinstance(given.get("route"), Section):
            return given
        own = {key: given[key] for key in ("change", "combines") if key in given}
        return own | {"route": {key: value for key, value in given.items() if key not in own}}


class Rollout(Section):
    """One experiment: a workload, a baseline and one or more candidates, and the load on them."""

    rollout: Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME, pattern=r"^[\w.:/-]+$")]
    """Name: up to 200 letters, digits and `_.:/-`."""
    workload: Annotated[str, Field(min_length=1)]
    """Workload file, relative to this file, or the name of a shipped workload (`structured`)."""
    policy: Annotated[str, Field(min_length=1)] | None = None
    """Policy to register before the first pair: a file, or the name of a shipped policy; default:
    the shipped one that fits `change`."""
    change: Change = Change.SPECULATION
    """The one thing in which the arms differ. `speculation`: whether or how they speculate;
    `draft_swap`: draft, method or k, and both speculate; `quantization`: weights and number format;
    `attention_kernel`: the kernel, which engines do not report, so that everything else is
    compared; `other`: anything, and differences other than the model's are warnings."""
    baseline: Route
    """Route of the baseline."""
    candidate: Route | None = None
    """Route of the only candidate."""
    arms: Annotated[dict[ArmName, CandidateArm], Field(default_factory=dict)]
    """Several candidates instead of `candidate`, by names of letters, digits, `_` and `.`; YAML's
    anchors save repeating a route."""
    sampling: Sampling = Sampling()
    """Parameters of all requests."""
    load: Load = Load()
    """How requests arrive at the arms."""
    collector: CollectorAddress = CollectorAddress()
    """The collector that receives the spans."""
    prices: Prices | None = None
    """Prices of the routes; without them, no cost in money is shown."""

    @model_validator(mode="after")
    def _has_candidates(self) -> "Rollout":
        if self.candidate is None and not self.arms:
            raise ValueError(
                "candidate: required key is missing; several candidates go into `arms`"
            )
        if self.candidate is not None and self.arms:
            raise ValueError("arms: go without `candidate`, which is one more name under `arms`")
        if len(self.arms) == 1:
            raise ValueError("arms: wanted two or more; a single one goes into `candidate`")
        for name, arm in self.arms.items():
            self._check_arm(name, arm)
        return self

    def _check_arm(self, name: str, arm: CandidateArm) -> None:
        if name in tuple(Arm):
            raise ValueError(f"arms.{name}: the name is taken; wanted another, such as k4")
        alike = [other for other in self.arms if other.lower() == name.lower()]
        if len(alike) > 1:
            raise ValueError(f"arms: {' and '.join(alike)} differ only in case; wanted other names")
        if len(f"{self.rollout}-{name}") > _LONGEST_NAME:
            raise ValueError(
                f"arms.{name}: with the rollout's name longer than {_LONGEST_NAME} characters"
            )
        others = [other for other in self.arms if other != name]
        if arm.combines and (len({*arm.combines}) < 2 or not {*arm.combines} <= {*others}):
            raise ValueError(
                f"arms.{name}.combines: wanted two other arms, out of {', '.join(others)} "
                f"(got {', '.join(arm.combines)})"
            )

    @property
    def routes(self) -> dict[str, Route]:
        """The arms' routes by name, the baseline's first; a single candidate is `candidate`."""
        arms = {name: arm.route for name, arm in self.arms.items()}
        if self.candidate is not None:
            arms[Arm.CANDIDATE.value] = self.candidate
        return {Arm.BASELINE.value: self.baseline} | arms

    def with_routes(self, routes: Mapping[str, Route]) -> "Rollout":
        """Return the experiment with other routes of the same names."""
        arms = {
            name: arm.model_copy(update={"route": routes[name]}) for name, arm in self.arms.items()
        }
        update: dict[str, Any] = {"baseline": routes[Arm.BASELINE], "arms": arms}
        if self.candidate is not None:
            update["candidate"] = routes[Arm.CANDIDATE]
        return self.model_copy(update=update)

    @property
    def family(self) -> Family | None:
        """The family of rollouts that several candidates make; `None` for one candidate."""
        if not self.arms:
            return None
        combined = {name: arm.combines for name, arm in self.arms.items() if arm.combines}
        return Family(name=self.rollout, arms=tuple(self.arms), combined=combined)

    def rollouts_of(self, arm: str) -> tuple[str, ...]:
        """Return the rollouts in which an arm's answers count: the baseline's in all."""
        if self.family is None:
            return (self.rollout,)
        return self.family.rollouts if arm == Arm.BASELINE else (self.family.rollout_of(arm),)

    def change_of(self, arm: str) -> Change:
        """Return the change that a candidate makes."""
        return (self.arms[arm].change if self.arms else None) or self.change

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical experiment."""
        document = self.model_dump(mode="json", exclude={"policy", "prices"})
        del document["candidate" if self.arms else "arms"]
        for arm in (document, *document.get("arms", {}).values()):
            for key in ("baseline", "candidate", "route"):
                arm.get(key, {}).pop("launch", None)
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
    document = read_yaml(path, "`rollout:` and `workload:`", RolloutFileError)
    try:
        rollout = Rollout.model_validate(document)
    except ValidationError as exc:
        raise RolloutFileError(f"{path}: {describe(exc, Rollout)}") from exc
    _require_commands(path, rollout)
    return _beside(path.parent, rollout)


def _require_commands(path: Path, rollout: Rollout) -> None:
    """Raise `RolloutFileError` if servers shall be relaunched that have no `start` command."""
    launches = rollout.load.launches
    for arm, route in rollout.routes.items():
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
    return rollout.with_routes(
        {
            arm: route.model_copy(update={"launch": launch})
            if isinstance(route, HttpRoute) and route.start is None
            else route
            for arm, route in rollout.routes.items()
        }
    )


def _beside(folder: Path, rollout: Rollout) -> Rollout:
    """Return the experiment with relative paths resolved against the rollout file's folder."""
    found = rollout.model_copy(
        update={
            "workload": str(_workload_file(folder, rollout.workload)),
            "load": _load_beside(folder, rollout.load),
        }
    )
    return found.with_routes(
        {arm: _route_beside(folder, route) for arm, route in rollout.routes.items()}
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
