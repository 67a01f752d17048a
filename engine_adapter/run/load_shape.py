"""How requests arrive: the `load` section of a rollout file."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from engine_adapter.routes import Section
from engine_adapter.workload import MAX_THINK_S

_NEEDS = {"poisson": "rate", "constant": "rate", "burst": "rate", "trace": "file"}
_FITS = {
    "rate": ("poisson", "constant", "burst"),
    "burst_size": ("burst",),
    "file": ("trace",),
    "speed": ("trace",),
    "lengths": ("trace",),
    "max_requests": ("trace",),
}
_EVERY = 25
_MOST_SENTINELS = 200
"""Sentinels asked at most in a launch, if the file does not say how often."""


class ThinkTime(Section):
    """How long users think: as long each time, or drawn; a number is a fixed time."""

    model_config = ConfigDict(json_schema_extra={"type": ["object", "number"]})

    fixed: Annotated[float, Field(ge=0, le=MAX_THINK_S)] | None = None
    """Seconds, the same each time."""
    exponential: Annotated[float, Field(gt=0, le=MAX_THINK_S)] | None = None
    """Mean in seconds of an exponential distribution."""

    @model_validator(mode="before")
    @classmethod
    def _may_be_a_number(cls, given: object) -> object:
        return {"fixed": given} if isinstance(given, int | float) else given

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "ThinkTime":
        if (self.fixed is None) == (self.exponential is None):
            raise ValueError("wanted a number of seconds, or {exponential: MEAN}")
        return self


class SentinelLoad(Section):
    """The prompts that are asked again and again; `false` stands for none."""

    model_config = ConfigDict(json_schema_extra={"type": ["object", "boolean"]})

    prompts: Annotated[int, Field(ge=0, le=100)] = 2
    """Number of prompts that are asked again and again."""
    every: Annotated[int, Field(gt=0)] | None = None
    """Requests of the workload from one sentinel to the next; default: 25, or more so that a launch
    has at most 200 sentinels. A launch with no more requests gets none."""

    @model_validator(mode="before")
    @classmethod
    def _may_be_switched(cls, given: object) -> object:
        if isinstance(given, bool):
            return {} if given else {"prompts": 0}
        return given

    def spacing(self, visits: int) -> int | None:
        """Return how many visits lie between two sentinels; `None` if there are too few visits."""
        every = self.every or max(_EVERY, -(-visits // _MOST_SENTINELS))
        return every if self.prompts and visits > every else None


class Load(Section):
    """How requests arrive at the two arms."""

    mode: Literal["closed", "poisson", "constant", "burst", "trace"] = "closed"
    """How requests arrive: in a closed loop, or in an open one at a `rate` or by a `trace`."""
    concurrency: Annotated[int, Field(gt=0, le=4096)] | None = None
    """Closed loop: requests (or sessions) in flight at each arm; default: 1, at which the arms take
    turns. Open loop: a limit, by default none, and a request that waits for it counts as late."""
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Requests, or sessions, per second to each arm; required by `poisson`, `constant` and
    `burst`."""
    burst_size: Annotated[int, Field(gt=0)] | None = None
    """Requests that arrive at once at each arm; default: 8."""
    file: str | None = None
    """Trace, required by `trace`, also gzipped: JSON lines with `t` (seconds), `input_tokens` and
    `output_tokens`; Azure's CSV; or Mooncake's JSON lines, with `session_id` and `delay` (ms) if
    known."""
    speed: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Factor by which the trace is replayed faster; default: 1."""
    lengths: Literal["none", "output", "both"] | None = None
    """Lengths taken from the trace: `none`; `output` (default), as `max_tokens`; `both`: prompts
    are filled to its input lengths, too, and share prefixes as in Mooncake's trace."""
    max_requests: Annotated[int, Field(gt=0)] | None = None
    """Number of the trace's first requests to use; default: all."""
    history: Literal["recorded", "own"] = "recorded"
    """The earlier answers in a session's requests: the recorded ones, or the arm's own, in which
    case a session's last answers are its pair."""
    think_s: ThinkTime | None = None
    """Seconds from an answer to the session's next request, or `{exponential: MEAN}`; default:
    those of the workload."""
    repeats: Annotated[int, Field(gt=0)] = 1
    """Answers per prompt; 1 in mode `trace`."""
    order: Literal["abba", "random"] = "abba"
    """Which arm comes first: `abba` swaps them from pair to pair in each cohort, so that drift
    cancels, and lets several candidates take turns; `random` draws."""
    warmup: Annotated[int, Field(ge=0)] = 4
    """Closed loop: number of each arm's first requests, which do not count."""
    max_prompts: Annotated[int, Field(gt=0)] | None = None
    """Number of the workload's first prompts or sessions to use; default: all."""
    launches: Annotated[int, Field(gt=0, le=1000)] = 1
    """Number of launches of all servers, each of which answers its share of the prompts; needs
    `start`."""
    sentinels: SentinelLoad = SentinelLoad()
    """Prompts that both arms are asked again and again, to see whether their answers change;
    `false` for none."""
    processes: Literal["shared", "per_arm"] = "shared"
    """Whether both arms share a process, or each has its own, so that their streams do not delay
    each other; `per_arm` loads models in process twice."""

    @model_validator(mode="after")
    def _fits_its_mode(self) -> "Load":
        needed = _NEEDS.get(self.mode)
        if needed is not None and getattr(self, needed) is None:
            raise ValueError(f"`mode: {self.mode}` needs `{needed}`")
        for key, modes in _FITS.items():
            if getattr(self, key) is not None and self.mode not in modes:
                raise ValueError(
                    f"`{key}` goes with mode {' or '.join(modes)}, and mode is {self.mode}"
                )
        if self.mode == "trace" and self.repeats != 1:
            raise ValueError("`repeats` does not go with mode trace, which is as long as its file")
        if self.mode == "trace" and self.history == "own":
            raise ValueError("`history: own` does not go with mode trace, which records no answers")
        return self

    @property
    def is_open(self) -> bool:
        """Whether requests arrive on a schedule, however fast the engine answers."""
        return self.mode != "closed"
