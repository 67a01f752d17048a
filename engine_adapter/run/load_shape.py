"""How requests arrive: the `load` section of a rollout file."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

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

    fixed: Annotated[float, Field(ge=0, le=MAX_THINK_S)] | None = None
    """Seconds."""
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

    prompts: Annotated[int, Field(ge=0, le=100)] = 2
    every: Annotated[int, Field(gt=0)] | None = None
    """Requests of the workload from one sentinel to the next; default 25, or more in a long run."""

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
    concurrency: Annotated[int, Field(gt=0, le=4096)] | None = None
    """Requests in flight at each arm: the constant number in a closed loop (default 1, at which the
    arms take turns), an upper limit in the other modes (default none), where a request that waits
    counts as late."""
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Requests per second to each arm; a session counts as one."""
    burst_size: Annotated[int, Field(gt=0)] | None = None
    """Requests that arrive at once at each arm; there are rate / burst_size bursts per second."""
    file: str | None = None
    """A trace: JSON lines or CSV with times and token counts."""
    speed: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Factor by which the trace is replayed faster (default 1)."""
    lengths: Literal["none", "output", "both"] | None = None
    """Lengths taken from the trace: none, max_tokens, or max_tokens and the prompt's length."""
    max_requests: Annotated[int, Field(gt=0)] | None = None
    """Use only the trace's first requests."""
    history: Literal["recorded", "own"] = "recorded"
    """The earlier answers in a session's requests: the recorded ones, or those of the same arm, in
    which case a session's last answers are its pair."""
    think_s: ThinkTime | None = None
    """Seconds from an answer to the session's next request: fixed, or drawn, the same for both
    arms; default: those of the workload."""
    repeats: Annotated[int, Field(gt=0)] = 1
    order: Literal["abba", "random"] = "abba"
    warmup: Annotated[int, Field(ge=0)] = 4
    """Requests each arm answers before the first that counts; dropped by count, never by value."""
    max_prompts: Annotated[int, Field(gt=0)] | None = None
    """Use only the workload's first prompts."""
    launches: Annotated[int, Field(gt=0, le=1000)] = 1
    """How often both arms' servers are started; each launch answers its share of the prompts."""
    sentinels: SentinelLoad = SentinelLoad()
    """Prompts that both arms are asked again and again, to see whether their answers change."""
    processes: Literal["shared", "per_arm"] = "shared"
    """Whether both arms share this process, or each arm runs in a process of its own."""

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
