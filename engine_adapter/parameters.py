"""The parameters of a chat-completions request, under the API's names."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

JsonObject = Mapping[str, Any]  # Any: JSON values

_SET_BY_THE_RUN = ("messages", "stream", "stream_options")


class Parameters(BaseModel):
    """Parameters of the API; for absent ones, the engine's default applies."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
    api_names: ClassVar[tuple[str, ...]]

    temperature: Annotated[float, Field(ge=0)] | None = None
    """Sampling temperature; 0 is greedy."""
    max_tokens: Annotated[int, Field(gt=0)] | None = None
    """Maximum number of output tokens."""
    max_completion_tokens: Annotated[int, Field(gt=0)] | None = None
    """The API's newer name of `max_tokens`, for servers that only know this one."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Nucleus sampling: share of the probability that is sampled from."""
    top_k: Annotated[int, Field(gt=0)] | None = None
    """Number of the likeliest tokens that are sampled from."""
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    """Minimum probability of a sampled token, relative to the likeliest one's."""
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    """Penalty for a token, for each time that it has occurred."""
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    """Penalty for a token that has occurred."""
    logit_bias: Mapping[str, float] | None = None
    """Number to add to the logit of a token, by the token's id."""
    seed: int | None = None
    """Seed of the first repeat; each further repeat adds 1."""
    stop: str | tuple[str, ...] | None = None
    """Text, or list of texts, before which the answer ends."""
    n: Annotated[int, Field(gt=0)] | None = None
    """Number of answers, of which the first is recorded."""
    logprobs: bool | None = None
    """Whether to return the log probabilities of output tokens."""
    top_logprobs: Annotated[int, Field(ge=0)] | None = None
    """Number of the likeliest tokens whose log probabilities are returned."""
    tools: tuple[JsonObject, ...] | None = None
    """Tools that the model may call, in the API's format or as bare functions."""
    tool_choice: str | JsonObject | None = None
    """One of `auto`, `required` and `none`, or an object that names a tool."""
    parallel_tool_calls: bool | None = None
    """Whether one answer may call several tools."""
    response_format: JsonObject | None = None
    """Format of the answer: an object of `type` `text`, `json_object`, `json_schema` or
    `structural_tag`."""
    reasoning_effort: str | None = None
    """How much to reason, such as `low`."""
    chat_template_kwargs: JsonObject | None = None
    """Arguments of the chat template, such as `enable_thinking`."""
    extra_body: JsonObject = {}
    """The engine's own parameters, such as a grammar."""

    @property
    def api(self) -> dict[str, Any]:
        """The given parameters, as members of a request's body."""
        given = self.model_dump(mode="json", include=set(Parameters.api_names), exclude_none=True)
        if self.tools is not None:
            given["tools"] = [_wrapped(tool) for tool in self.tools]
        return given | dict(self.extra_body)

    @model_validator(mode="after")
    def _leaves_the_run_its_own(self) -> "Parameters":
        for key in self.extra_body:
            if key in _SET_BY_THE_RUN:
                raise ValueError(f"`extra_body` holds {key!r}, which each request sets itself")
        return self

    @model_validator(mode="after")
    def _describes_its_tools(self) -> "Parameters":
        for number, tool in enumerate(self.tools or ()):
            function = tool.get("function", tool)
            name = function.get("name") if isinstance(function, Mapping) else None
            if not name:
                raise ValueError(
                    f"tools.{number}: has no name; wanted "
                    '{"type": "function", "function": {"name": …, "parameters": …}}'
                )
        return self

    @model_validator(mode="after")
    def _names_a_format(self) -> "Parameters":
        given = self.response_format
        if given is None:
            return self
        kind = given.get("type")
        if kind not in _FORMATS:
            raise ValueError(
                f"response_format.type: wanted one of {', '.join(_FORMATS)} (got {kind!r:.60})"
            )
        if kind == "json_schema" and self.asked_schema is None:
            raise ValueError(
                "response_format: wanted "
                '{"type": "json_schema", "json_schema": {"name": …, "schema": {…}}}'
            )
        return self

    @property
    def asked_schema(self) -> JsonObject | None:
        """The JSON Schema in `response_format`, if any."""
        given = self.response_format or {}
        inner = given.get("json_schema")
        schema = inner.get("schema") if isinstance(inner, Mapping) else None
        return schema if isinstance(schema, Mapping) else None


def _wrapped(tool: JsonObject) -> JsonObject:
    """Return a tool in the API's format, also if it was given as a bare function."""
    return tool if "type" in tool else {"type": "function", "function": tool}


_FORMATS = ("text", "json_object", "json_schema", "structural_tag")
Parameters.api_names = tuple(name for name in Parameters.model_fields if name != "extra_body")
