"""How one arm is served: the two routes of a rollout file, told apart by their engine."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Section(BaseModel):
    """A part of the rollout file: an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TransformersRoute(Section):
    """transformers in this process."""

    engine: Literal["transformers"] = "transformers"
    model: Annotated[str, Field(min_length=1)]
    """A folder, absolute or relative to the rollout file, or a name on a model hub."""
    draft_model: str | None = None
    num_speculative_tokens: Annotated[int, Field(gt=0, le=64)] | None = None
    prompt_lookup_num_tokens: Annotated[int, Field(gt=0, le=64)] | None = None
    relaxed_top_k: Annotated[int, Field(gt=1)] | None = None
    """LOSSY: accept a draft token that is among the target's k most likely."""
    identity_layers: Annotated[int, Field(ge=0)] = 0
    """Layers that change no output, appended to the target at load time: more compute a token."""
    device: str = "cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    threads: Annotated[int, Field(gt=0)] = 1
    """CPU threads; spinning threads on a busy machine can be five times slower than one."""

    @model_validator(mode="after")
    def _speculates_one_way(self) -> "TransformersRoute":
        if self.draft_model is not None and self.prompt_lookup_num_tokens is not None:
            raise ValueError("give `draft_model` or `prompt_lookup_num_tokens`, not both")
        if self.num_speculative_tokens is not None and self.draft_model is None:
            raise ValueError("`num_speculative_tokens` needs a `draft_model`")
        speculates = self.draft_model is not None or self.prompt_lookup_num_tokens is not None
        if self.relaxed_top_k is not None and not speculates:
            raise ValueError("`relaxed_top_k` needs a `draft_model` or `prompt_lookup_num_tokens`")
        return self


HttpEngineName = Literal["llamacpp", "lmdeploy", "openai", "sglang", "tensorrt_llm", "tgi", "vllm"]

_RESERVED = ("authorization",)


class HttpRoute(Section):
    """An engine that answers over HTTP."""

    engine: HttpEngineName
    url: Annotated[str, Field(pattern=r"^https?://[^/\s]+")]
    """The base of its OpenAI-compatible API, such as http://localhost:8000/v1."""
    model: Annotated[str, Field(min_length=1)]
    """The name that the server knows the model by."""
    metrics_url: Annotated[str, Field(pattern=r"^https?://[^/\s]+")] | None = None
    """Its Prometheus metrics; absent, where the engine usually serves them."""
    gpu_metrics_url: Annotated[str, Field(pattern=r"^https?://[^/\s]+")] | None = None
    """A DCGM exporter on the machine that serves it."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    """The environment variable that holds the key; the key itself never stands in the file."""
    headers: dict[str, str] = {}
    extra_body: dict[str, Any] = {}  # Any: JSON that the engine understands
    """Keys added to every request's body."""
    start: Annotated[str, Field(min_length=1)] | None = None
    """The command that serves it: {port} is filled in, and {k} by `draftgate sweep`."""
    start_timeout_s: Annotated[float, Field(gt=0)] = 300.0
    timeout_s: Annotated[float, Field(gt=0)] = 600.0
    """For a whole answer."""
    first_byte_timeout_s: Annotated[float, Field(gt=0)] = 120.0
    idle_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """Between two chunks."""

    @model_validator(mode="after")
    def _keeps_keys_out(self) -> "HttpRoute":
        for name in self.headers:
            if name.lower() in _RESERVED:
                raise ValueError(
                    f"`headers` holds {name!r}; put the key into an environment variable and its "
                    "name into `api_key_env`"
                )
        if self.start is not None and ("{port}" in self.start) != ("{port}" in self.url):
            raise ValueError("`start` and `url` hold {port} both, or neither")
        for key in ("messages", "stream"):
            if key in self.extra_body:
                raise ValueError(f"`extra_body` holds {key!r}, which each request sets itself")
        return self


Route = Annotated[TransformersRoute | HttpRoute, Field(discriminator="engine")]
