"""The workload file: a rollout's prompts, one JSON object per line."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from engine_adapter.errors import WorkloadError
from engine_adapter.messages import Message
from engine_adapter.parameters import Parameters
from engine_adapter.validation import describe


class Prompt(Parameters):
    """One request for both arms, and the material that its answers are scored against.

    Its parameters override those of the rollout file.
    """

    id: Annotated[str, Field(min_length=1)]
    cohort: Annotated[str, Field(min_length=1)]
    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    """Another model of the same server, such as a LoRA adapter, in place of the route's."""
    context: tuple[str, ...] | None = None
    reference: str | Mapping[str, Any] | None = None
    output_schema: Annotated[Mapping[str, Any] | None, Field(alias="schema")] = None
    """The JSON Schema that answers are scored against; default: the one in `response_format`."""
    dims: Mapping[str, str] = {}

    @model_validator(mode="after")
    def _has_one_input(self) -> "Prompt":
        if bool(self.messages) == (self.prompt is not None):
            raise ValueError("wanted either `messages` or `prompt`")
        return self

    @property
    def chat(self) -> tuple[Message, ...]:
        """The input as chat messages; a bare prompt is one user message."""
        if self.prompt is not None:
            return (Message(role="user", content=self.prompt),)
        return self.messages

    @property
    def own(self) -> dict[str, Any]:  # Any: JSON values
        """The record's own parameters and model, as members of a request's body."""
        return self.api | ({"model": self.model} if self.model is not None else {})

    @property
    def dimensions(self) -> Mapping[str, str]:
        """Its dimensions, plus its model and its number of images, if it has them."""
        found = {} if self.model is None else {"model": self.model}
        images = sum(message.images for message in self.chat)
        if images:
            found["images"] = str(images)
        return {**found, **self.dims}


def read(path: Path) -> tuple[Prompt, ...]:
    """Return the file's prompts in order.

    Raises `WorkloadError` for a file that cannot be read, a line that is not a JSON object, a
    missing, unknown or mistyped field, a repeated id, or a file without prompts.
    """
    prompts: dict[str, Prompt] = {}
    for number, line in _lines(path):
        prompt = _parse(line, f"{path}:{number}")
        if prompt.id in prompts:
            raise WorkloadError(f"{path}:{number}: id: {prompt.id!r} was used by an earlier line")
        prompts[prompt.id] = prompt
    if not prompts:
        raise WorkloadError(f"{path}: holds no prompt; wanted one JSON object a line")
    return tuple(prompts.values())


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except OSError as exc:
        raise WorkloadError(f"{path}: cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise WorkloadError(f"{path}: is not UTF-8 text (byte {exc.start})") from exc


def _parse(line: str, at: str) -> Prompt:
    try:
        document = json.loads(line)
    except ValueError as exc:
        raise WorkloadError(f"{at}: is not JSON: {exc}") from exc
    if not isinstance(document, dict):
        raise WorkloadError(f"{at}: wanted a JSON object, got {type(document).__name__}")
    try:
        return Prompt.model_validate(document)
    except ValidationError as exc:
        raise WorkloadError(f"{at}: {describe(exc, Prompt)}") from exc
