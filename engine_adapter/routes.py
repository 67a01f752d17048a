"""The routes of a rollout file, one per arm, discriminated by their engine."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Section(BaseModel):
    """A part of the rollout file: an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class _InProcess(Section):
    """The settings that every engine in this process shares."""

    model: Annotated[str, Field(min_length=1)]
    """A folder, absolute or relative to the rollout file, or a name on a model hub."""
    draft_model: str | None = None
    """Draft model, likewise; it must share the target's tokenizer."""
    identity_layers: Annotated[int, Field(ge=0)] = 0
    """Layers appended to the target that do not change its output: more compute per token."""
    device: str = "cpu"
    """Where the models run: `cpu`, `cuda`, `cuda:1` and so on."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Number format of the weights."""
    threads: Annotated[int, Field(gt=0)] = 1
    """CPU threads; on a busy machine, several can be five times slower than one, as they spin."""


class TransformersRoute(_InProcess):
    """transformers in this process, one request at a time; the wait is queue time."""

    engine: Literal["transformers"] = "transformers"
    """The engine: Hugging Face transformers."""
    num_speculative_tokens: Annotated[int, Field(gt=0, le=64)] | None = None
    """Draft tokens per verify step (k); default: the draft model's own."""
    prompt_lookup_num_tokens: Annotated[int, Field(gt=0, le=64)] | None = None
    """Draft this many tokens by looking up the last ones in the prompt."""
    relaxed_top_k: Annotated[int, Field(gt=1)] | None = None
    """LOSSY: accept a draft token that is among the target's k most likely."""

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


class LocalRoute(_InProcess):
    """Draftgate's own loop in this process, one batch at a time; the wait is queue time."""

    engine: Literal["local"]
    """The engine: Draftgate's own loop."""
    method: Literal["draft_model", "prompt_lookup", "early_exit", "head"] | None = None
    """How to draft; without a method, there is no speculation (the baseline)."""
    early_exit_layers: Annotated[int, Field(gt=0)] | None = None
    """For `early_exit`: number of the target's first layers that draft."""
    head: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] | None = None
    """For `head`: your own `module:function`, called with the target's model; it returns a
    `Drafter`."""
    num_speculative_tokens: Annotated[int, Field(gt=0, le=64)] = 4
    """Draft tokens per verify step (k); the largest k if `adaptive`."""
    adaptive: bool = False
    """Choose k, from 1 up, by recent acceptance."""
    k_by_batch: dict[Annotated[int, Field(gt=0)], Annotated[int, Field(ge=0, le=64)]] | None = None
    """Draft tokens per verify step by batch size, such as `{1: 6, 8: 3, 32: 0}`; needs an entry for
    1."""
    batch: Annotated[int, Field(gt=0, le=64)] = 1
    """Largest number of waiting requests answered together."""
    stop: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Strings that end an answer; they are not part of it."""

    @model_validator(mode="after")
    def _drafts_one_way(self) -> "LocalRoute":
        for method, key in (
            ("draft_model", "draft_model"),
            ("early_exit", "early_exit_layers"),
            ("head", "head"),
        ):
            if (self.method == method) != (getattr(self, key) is not None):
                raise ValueError(f"`method: {method}` and `{key}` go together: give both, or none")
        if self.k_by_batch is not None and (1 not in self.k_by_batch or self.adaptive):
            raise ValueError("`k_by_batch` needs a k for 1, and is no `adaptive` one")
        return self


LAUNCH_NAME: Final = r"^[\w.:/-]{1,100}$"
LaunchName = Annotated[str, Field(pattern=LAUNCH_NAME)]
"""The name of one launch of a server."""
HttpEngineName = Literal["llamacpp", "lmdeploy", "openai", "sglang", "tensorrt_llm", "tgi", "vllm"]

_RESERVED = ("authorization",)


class HttpRoute(Section):
    """An engine that answers over HTTP."""

    engine: HttpEngineName
    """The engine; `openai` is any other server with this API."""
    url: Annotated[str, Field(pattern=r"^https?://[^/\s]+")]
    """Base of its OpenAI-compatible API, such as `http://localhost:8000/v1`."""
    model: Annotated[str, Field(min_length=1)]
    """The model's name at the server."""
    metrics_url: Annotated[str, Field(pattern=r"^https?://[^/\s]+")] | None = None
    """URL of its Prometheus metrics; default: the engine's usual path, if it has one."""
    gpu_metrics_url: Annotated[str, Field(pattern=r"^https?://[^/\s]+")] | None = None
    """URL of a DCGM exporter on the server's machine."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    """Environment variable that holds the key; the file never holds the key itself."""
    headers: dict[str, str] = {}
    """HTTP headers of every request."""
    extra_body: dict[str, Any] = {}  # Any: JSON that the engine understands
    """Keys added to every request's body."""
    start: Annotated[str, Field(min_length=1)] | None = None
    """Command that starts the server for `run`, `check` and `sweep`; `{port}` is filled in, and
    `{k}` by `sweep`. It logs to `FILE.ARM.log`, a second launch to `FILE.ARM.2.log`."""
    launch: LaunchName | None = None
    """Name of the launch of a server that you started; with `start`, each launch gets a new one."""
    start_timeout_s: Annotated[float, Field(gt=0)] = 300.0
    """Seconds until a started server must answer."""
    timeout_s: Annotated[float, Field(gt=0)] = 600.0
    """Maximum seconds for the whole answer."""
    first_byte_timeout_s: Annotated[float, Field(gt=0)] = 120.0
    """Maximum seconds until the answer's first bytes."""
    idle_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """Maximum seconds between two chunks."""

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
        if self.start is not None and self.launch is not None:
            raise ValueError("`launch` names a server that you started, and `start` starts one")
        for key in ("messages", "stream"):
            if key in self.extra_body:
                raise ValueError(f"`extra_body` holds {key!r}, which each request sets itself")
        return self


InProcessRoute = TransformersRoute | LocalRoute
"""The routes with models in this process."""

Route = Annotated[TransformersRoute | LocalRoute | HttpRoute, Field(discriminator="engine")]
