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
    max_tokens: Annotated[int, Field(gt=0)] | None = None
    max_completion_tokens: Annotated[int, Field(gt=0)] | None = None
    """The API's newer name of `max_tokens`, for servers that only know this one."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(gt=0)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    logit_bias: Mapping[str, float] | None = None
    seed: int | None = None
    stop: str | tuple[str, ...] | None = None
    n: Annotated[int, Field(gt=0)] | None = None
    """Number of answers, of which the first is recorded."""
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0)] | None = None
    tools: tuple[JsonObject, ...] | None = None
    tool_choice: str | JsonObject | None = None
    parallel_tool_calls: bool | None = None
    response_format: JsonObject | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: JsonObject | None = None
    extra_body: JsonObject = {}
    """Engine-specific members: grammars, guided decoding, penalties."""

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
