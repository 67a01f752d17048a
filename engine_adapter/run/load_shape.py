"""How requests arrive: the `load` section of a rollout file."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from engine_adapter.routes import Section

_NEEDS = {"poisson": "rate", "constant": "rate", "burst": "rate", "trace": "file"}
_FITS = {
    "rate": ("poisson", "constant", "burst"),
    "burst_size": ("burst",),
    "file": ("trace",),
    "speed": ("trace",),
    "lengths": ("trace",),
    "max_requests": ("trace",),
}


class Load(Section):
    """How requests arrive at the two arms."""

    mode: Literal["closed", "poisson", "constant", "burst", "trace"] = "closed"
    concurrency: Annotated[int, Field(gt=0, le=4096)] | None = None
    """Requests in flight, both arms together: the constant number in a closed loop (default 1), an
    upper limit in the other modes (default none), where a request that waits counts as late."""
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Requests per second to each arm."""
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
    repeats: Annotated[int, Field(gt=0)] = 1
    order: Literal["abba", "random"] = "abba"
    warmup: Annotated[int, Field(ge=0)] = 4
    """Requests each arm answers before the first that counts; dropped by count, never by value."""
    max_prompts: Annotated[int, Field(gt=0)] | None = None
    """Use only the workload's first prompts."""
    launches: Annotated[int, Field(gt=0, le=1000)] = 1
    """How often both arms' servers are started; each launch answers its share of the prompts."""
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
        return self

    @property
    def is_open(self) -> bool:
        """Whether requests arrive on a schedule, however fast the engine answers."""
        return self.mode != "closed"
