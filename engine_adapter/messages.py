"""Chat messages in the format of the chat-completions API."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_LEAVES = ConfigDict(frozen=True, extra="forbid")
_NEEDS = {"text": ("text",), "image_url": ("image_url",), "input_audio": ("input_audio",)}
"""Required keys of each kind of part; engines may have other kinds."""


class Function(BaseModel):
    """The function of a tool call."""

    model_config = _LEAVES

    name: Annotated[str, Field(min_length=1)]
    """Name of the tool."""
    arguments: str = "{}"
    """Arguments as JSON in a text, as in the API."""


class AssistantCall(BaseModel):
    """One tool call of an earlier answer."""

    model_config = _LEAVES

    id: str
    """Identifies the call to its result."""
    type: str = "function"
    """Kind of the call, as in the API."""
    function: Function
    """The called function and its arguments."""


class Message(BaseModel):
    """One message: text or parts, tool calls, or a tool's result."""

    model_config = _LEAVES

    role: Annotated[str, Field(min_length=1)]
    """Its author: `system`, `user`, `assistant`, `tool`, or another that the chat template
    knows."""
    content: str | tuple[Mapping[str, Any], ...] | None = None  # Any: JSON values
    """Text, or the API's list of parts: text, images, audio; of an image, only its kind is stored.
    Models in this process take text alone."""
    name: str | None = None
    """Name of the author, for chat templates that show it."""
    tool_calls: tuple[AssistantCall, ...] | None = None
    """The calls of tools that an assistant's message makes."""
    tool_call_id: str | None = None
    """For the role `tool`: the id of the call whose result this is."""
    reasoning_content: str | None = None
    """An assistant's reasoning, under the name that most servers use."""
    reasoning: str | None = None
    """An assistant's reasoning, under its other name."""
    refusal: str | None = None
    """An assistant's refusal to answer."""

    @field_validator("content")
    @classmethod
    def _holds_parts(cls, given: object) -> object:
        for number, part in enumerate(given if isinstance(given, tuple) else ()):
            kind = part.get("type")
            if kind is None:
                raise ValueError(f"part {number} has no `type`, such as text or image_url")
            for key in _NEEDS.get(str(kind), ()):
                if key not in part:
                    raise ValueError(f"part {number} is {kind} and has no `{key}`")
        return given

    @model_validator(mode="after")
    def _says_something(self) -> "Message":
        if self.content is None and not (self.tool_calls or self.refusal):
            raise ValueError("wanted `content`, or `tool_calls` of an assistant")
        if self.role == "tool" and self.tool_call_id is None:
            raise ValueError("a tool's result needs the `tool_call_id` of its call")
        return self

    @property
    def text(self) -> str:
        """The text of the content."""
        if isinstance(self.content, str):
            return self.content
        texts = (part.get("text") for part in self.content or ())
        return "".join(text for text in texts if isinstance(text, str))

    @property
    def is_text(self) -> bool:
        """Whether the content is only text."""
        return not isinstance(self.content, tuple) or all(
            part.get("type") == "text" for part in self.content
        )

    @property
    def images(self) -> int:
        """The number of parts that are images."""
        parts = self.content if isinstance(self.content, tuple) else ()
        return sum("image" in str(part.get("type")) for part in parts)

    def api(self) -> dict[str, Any]:  # Any: JSON values
        """Return the message as it was given, for a request's body."""
        return self.model_dump(mode="json", exclude_unset=True)
