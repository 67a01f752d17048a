"""The workload file: a rollout's prompts, one JSON object per line."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError, model_validator

from engine_adapter.errors import WorkloadError
from engine_adapter.messages import Message
from engine_adapter.parameters import Parameters
from engine_adapter.validation import describe

MAX_THINK_S = 3600.0


class Material(Parameters):
    """Messages, and what answers to them are scored against.

    The parameters override those of the rollout file.
    """

    messages: tuple[Message, ...] = ()
    """Chat messages with text, images, audio, tool calls and results; in a session, those before
    the first turn."""
    model: Annotated[str, Field(min_length=1)] | None = None
    """Another model of the same server, such as a LoRA adapter; becomes the dimension `model`
    (default: the route's)."""
    context: tuple[str, ...] | None = None
    """Passages that the answer must rest on, for groundedness."""
    reference: str | Mapping[str, Any] | None = None
    """The correct answer, for task completion; in a session, that of its last answer."""
    output_schema: Annotated[Mapping[str, Any] | None, Field(alias="schema")] = None
    """JSON Schema of the answer, for schema validity; default: the one in `response_format`."""
    dims: Mapping[str, str] = {}
    """Further dimensions, name to text; the number of images becomes the dimension `images`."""

    @property
    def own(self) -> dict[str, Any]:  # Any: JSON values
        """The record's own parameters and model, as members of a request's body."""
        return self.api | ({"model": self.model} if self.model is not None else {})


class Ask(Material):
    """One request; in a session, also when its user sends it."""

    prompt: str | None = None
    """One user message, instead of `messages`."""
    think_s: Annotated[float, Field(ge=0, le=MAX_THINK_S)] | None = None
    """Seconds from the session's previous answer to this request; default: 0."""
    t: Annotated[float, Field(ge=0)] | None = None
    """Recorded time in seconds, instead of `think_s`; later turns keep their distance from the
    first, or follow the answer before them if that is later."""

    @model_validator(mode="after")
    def _has_one_input(self) -> "Ask":
        if bool(self.messages) == (self.prompt is not None):
            raise ValueError("wanted either `messages` or `prompt`")
        if self.think_s is not None and self.t is not None:
            raise ValueError("wanted either `think_s` or `t`")
        return self

    @property
    def chat(self) -> tuple[Message, ...]:
        """The input as chat messages; a bare prompt is one user message."""
        if self.prompt is not None:
            return (Message(role="user", content=self.prompt),)
        return self.messages


class Prompt(Ask):
    """One request for both arms."""

    id: Annotated[str, Field(min_length=1)]
    """Unique in the file; with the repeat, it identifies a pair."""
    cohort: Annotated[str, Field(min_length=1)]
    """Class of the request, such as `chat`."""
    session: Annotated[str, Field(min_length=1)] | None = None
    """Name of the session of which this request, with its whole history, is a turn."""
    turn: Annotated[int, Field(gt=0)] | None = None
    """Place in the session, from 1, in all of its records or in none; default: the order in the
    file."""

    @property
    def dimensions(self) -> Mapping[str, str]:
        """Its dimensions, plus its number of images, if it has any."""
        images = sum(message.images for message in self.chat)
        return ({"images": str(images)} if images else {}) | dict(self.dims)


class RecordedTurn(Ask):
    """One turn of a session record: what the user sends, and the recorded answer to it."""

    model_config = ConfigDict(json_schema_extra={"type": ["object", "string"]})

    answer: str | Message | None = None
    """The recorded answer, as text or as an assistant's message; not of the last turn."""

    @model_validator(mode="before")
    @classmethod
    def _may_be_text(cls, given: object) -> object:
        return {"prompt": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _is_sent_by_somebody(self) -> "RecordedTurn":
        if self.chat[-1].role not in _SENDERS:
            raise ValueError(f"ends with a message of the {self.chat[-1].role}; wanted a user's")
        if isinstance(self.answer, Message) and self.answer.role != "assistant":
            raise ValueError(f"answer: is of the {self.answer.role}; wanted an assistant's")
        return self

    @property
    def answered(self) -> Message:
        """The recorded answer as a message; without text if it is missing."""
        if isinstance(self.answer, Message):
            return self.answer
        return Message(role="assistant", content=self.answer or "")


_SENDERS = ("user", "tool")


class SessionRecord(Material):
    """A whole session in one record; `messages` come before its first turn."""

    id: Annotated[str, Field(min_length=1)]
    """Unique in the file; a turn's id is this, a slash and its number, such as `s1/2`."""
    cohort: Annotated[str, Field(min_length=1)]
    """Class of all of its requests, such as `chat`."""
    turns: tuple[RecordedTurn, ...]
    """The turns of the user, each a text or an object."""

    @model_validator(mode="after")
    def _has_turns(self) -> "SessionRecord":
        if not self.turns:
            raise ValueError("turns: is empty; wanted at least one")
        return self

    def prompts(self, document: Mapping[str, Any]) -> Iterator[Prompt]:  # Any: JSON values
        """Yield each turn as a request that holds the recorded history, from the record's JSON.

        A turn's keys override the record's, whose `reference` is of the last answer.
        """
        shared = {key: value for key, value in document.items() if key not in _OF_THE_SESSION}
        history = self.messages
        for number, (turn, given) in enumerate(
            zip(self.turns, document["turns"], strict=True), start=1
        ):
            history += turn.chat
            last = number == len(self.turns) and "reference" in document
            own = {} if isinstance(given, str) else given
            yield Prompt.model_validate(
                shared
                | ({"reference": document["reference"]} if last else {})
                | {key: value for key, value in own.items() if key not in _OF_THE_TURN}
                | {"id": f"{self.id}/{number}", "cohort": self.cohort}
                | {"session": self.id, "turn": number, "messages": history}
            )
            history += (turn.answered,)


_OF_THE_SESSION = ("id", "cohort", "turns", "messages", "reference")
_OF_THE_TURN = ("prompt", "messages", "answer")


def read(path: Path) -> tuple[Prompt, ...]:
    """Return the file's prompts in order; of a session record, one for each turn.

    Raises `WorkloadError` for a file that cannot be read, a line that is not a JSON object, a
    missing, unknown or mistyped field, a repeated id, or a file without prompts.
    """
    prompts: dict[str, Prompt] = {}
    for number, line in _lines(path):
        for prompt in _parse(line, f"{path}:{number}"):
            if prompt.id in prompts:
                raise WorkloadError(
                    f"{path}:{number}: id: {prompt.id!r} was used by an earlier line"
                )
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


def _parse(line: str, at: str) -> tuple[Prompt, ...]:
    try:
        document = json.loads(line)
    except ValueError as exc:
        raise WorkloadError(f"{at}: is not JSON: {exc}") from exc
    if not isinstance(document, dict):
        raise WorkloadError(f"{at}: wanted a JSON object, got {type(document).__name__}")
    kind = SessionRecord if "turns" in document else Prompt
    try:
        record = kind.model_validate(document)
    except ValidationError as exc:
        raise WorkloadError(f"{at}: {describe(exc, kind)}") from exc
    return tuple(record.prompts(document)) if isinstance(record, SessionRecord) else (record,)
