"""Read an engine's answer from whole documents, stream events and headers.

Each engine has one reader class; each request gets an instance. A reader has no connection: its
caller (the HTTP client, the router, an SDK callback) passes it decoded JSON. It reports only what
the engine sent; all else is absent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from collector.contract import CountSource, DeviceUse, Speculation
from engine_adapter.engines.json_fields import JsonObject, count, counts, objects, text
from engine_adapter.engines.tool_calls import ToolCall, ToolCallAssembly
from engine_adapter.errors import GenerationError


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationSetup:
    """How a route speculates, as known before its first answer."""

    on: bool | None = None
    """`None` if the engine does not report it; a missing count is zero only if this is true."""
    configured: Speculation = field(default_factory=Speculation)
    """Method, draft model, k and lossless (false if acceptance is relaxed), if known; no counts."""
    fixed_width: int | None = None
    """Draft tokens proposed by every verify step; `None` if steps may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPart:
    """A part of the answer's output."""

    text: str
    tokens: int | None
    """Number of its tokens, if the engine reports it."""
    is_answer: bool = True
    """Whether it belongs to the answer (text or tool calls) rather than to the reasoning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer and its metadata as the engine sent them; the rest is absent."""

    text: str = ""
    reasoning: str = ""
    """The model's reasoning, if the engine sends it apart from the answer."""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    """As in the OpenAI API: stop, length, tool_calls, …; `None` is a partial answer."""
    response_id: str | None = None
    model: str | None = None
    """The model that answered."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    """All generated tokens, including those of the reasoning."""
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None
    server_ttft_s: float | None = None
    """From the request's arrival to the first token."""
    queue_s: float | None = None
    prefill_s: float | None = None
    """From scheduling to the first token."""
    decode_s: float | None = None
    """From the first token to the last."""
    speculation: Speculation | None = None
    """Absent if the route does not speculate."""
    token_ids: tuple[int, ...] | None = None
    """Ids of all output tokens, if the engine sends them."""
    sampler: str | None = None
    """The steps that sampled it, in the contract's notation; `None` if greedy or unknown."""
    seeded_draws: str | None = None
    """How its seed becomes its tokens, in the contract's notation; `None` if that is unknown."""
    device: DeviceUse | None = None
    """Device time and memory, for an engine in this process."""

    @property
    def is_empty(self) -> bool:
        """Whether there is neither output nor a finish reason, as after `{}`."""
        return self.finish_reason is None and not (self.text or self.reasoning or self.tool_calls)


def of_empty_answer(answer: Answer, url: str) -> GenerationError:
    """Return the failure of an empty 200: fields were lost if its usage counts output tokens."""
    if answer.output_tokens:
        return _of_lost_fields(url)
    return GenerationError(
        "empty_answer",
        f"{url}: answered 200 without an answer: no choice, no text, no `finish_reason`",
    )


def _of_lost_fields(url: str) -> GenerationError:
    return GenerationError(
        "missing_fields",
        f"{url}: the answer ended without a `finish_reason`; a proxy between may strip fields",
    )


def require_whole(answer: Answer, url: str) -> None:
    """Raise `GenerationError` if the answer is empty or has no finish reason."""
    if answer.is_empty:
        raise of_empty_answer(answer, url)
    if answer.finish_reason is None:
        raise _of_lost_fields(url)


_FINISHES = {
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "word": "stop",
    "limit": "length",
}
"""Finish reasons of engines' native routes, as `stop` and `length` of the OpenAI API."""


class AnswerReader:
    """Reads an OpenAI-compatible server's answer; subclasses read an engine's additional fields.

    If there are several choices, the first is the answer, and an engine's counts for the whole
    request are absent.
    """

    provider: ClassVar[str] = "openai"
    """`gen_ai.provider.name`."""

    def __init__(self, setup: SpeculationSetup | None = None) -> None:
        """Start an empty answer; `setup` describes how the route speculates."""
        self.setup = setup or SpeculationSetup()
        self.several_choices = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_tokens: list[int | None] = []
        """Tokens of each piece with reasoning; `None` if it also has other output."""
        self._token_ids: list[int] | None = []
        """`None` once the ids of a piece were missing."""
        self._tool_calls = ToolCallAssembly()
        self._thinks = False
        """Whether the newest document contains reasoning."""
        self._finish_reason: str | None = None
        self._named: dict[str, str] = {}
        self._usage: JsonObject = {}

    @classmethod
    def request_fields(cls, *, stream: bool) -> dict[str, Any]:
        """Return the request fields that make the engine send usage and counts."""
        return {"stream_options": {"include_usage": True}} if stream else {}

    def take_headers(self, headers: Mapping[str, str]) -> None:
        """Take the answer's HTTP headers, names in any case; most engines send no counts there."""

    def take(self, document: JsonObject) -> OutputPart | None:
        """Take a whole answer or one stream event; return its output, if any.

        Raises `GenerationError` if the document is an error that the engine reports.
        """
        _raise_reported(document)
        for name in ("id", "model"):
            if isinstance(value := document.get(name), str):
                self._named[name] = value
        usage = document.get("usage")
        if usage is not None and isinstance(usage, Mapping):
            self._usage = usage
        piece, self._thinks = None, False
        for choice in objects(document, "choices"):
            if count(choice, "index"):
                self.several_choices = True
            else:
                piece = self._choice(choice)
        piece = self.observe(document, piece)
        if self._thinks:
            self._reasoning_tokens.append(_tokens_thought(piece))
        return piece

    def observe(self, document: JsonObject, piece: OutputPart | None) -> OutputPart | None:
        """Read the engine's own fields; return the piece, perhaps with its number of tokens."""
        del document
        return piece

    def answer(self) -> Answer:
        """Return the answer as received so far; complete once the stream has ended."""
        return Answer(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            tool_calls=self._tool_calls.whole(),
            finish_reason=self._finish_reason,
            response_id=self._named.get("id"),
            model=self._named.get("model"),
            input_tokens=count(self._usage, "prompt_tokens"),
            output_tokens=self.output_tokens,
            reasoning_tokens=self.reasoning_tokens,
            cached_input_tokens=count(self._usage, "prompt_tokens_details", "cached_tokens"),
            speculation=self.setup.configured if self.setup.on else None,
            token_ids=self._all_ids(),
        )

    @property
    def output_tokens(self) -> int | None:
        """Output tokens, from the usage."""
        return count(self._usage, "completion_tokens")

    @property
    def reasoning_tokens(self) -> int | None:
        """Reasoning tokens: from the usage, else summed over the reasoning's chunks.

        Engines that do not count them send 0 although there is reasoning; that 0 is ignored.
        """
        said = count(self._usage, "completion_tokens_details", "reasoning_tokens")
        if said is None:
            said = count(self._usage, "reasoning_tokens")
        if said or not self._reasoning:
            return said
        known = [tokens for tokens in self._reasoning_tokens if tokens is not None]
        return sum(known) if len(known) == len(self._reasoning_tokens) else None

    def finish(self, reason: object) -> None:
        """Take the finish reason; ignored if it is not a string."""
        if isinstance(reason, str):
            self._finish_reason = _FINISHES.get(reason, reason)

    def add(self, words: str) -> None:
        """Append to the answer's text, from an event that has nothing else."""
        self._text.append(words)
        self._token_ids = None

    def counted(self, source: CountSource, **counts: Any) -> Speculation:  # Any: a field's own type
        """Return the configured speculation with counts and their source."""
        return replace(self.setup.configured, source=source.value, **counts)

    def _all_ids(self) -> tuple[int, ...] | None:
        """Return the tokens' ids if all came: tokens that a parser keeps back have no event."""
        ids = self._token_ids
        return tuple(ids) if ids and len(ids) == self.output_tokens else None

    def _keep_ids(self, ids: Sequence[int] | None) -> None:
        if ids is None or self._token_ids is None:
            self._token_ids = None
        else:
            self._token_ids += ids

    def _choice(self, choice: JsonObject) -> OutputPart | None:
        self.finish(choice.get("finish_reason"))
        part = choice.get("delta") or choice.get("message") or {}
        words = text(part, "content") or text(choice, "text") or ""
        self._text.append(words)
        thought = text(part, "reasoning_content") or text(part, "reasoning") or ""
        self._thinks = bool(thought)
        if thought:
            self._reasoning.append(thought)
        calls = self._tool_calls.take(part)
        ids = counts(choice, "token_ids")
        tokens = None if ids is None else len(ids)
        if words or tokens or thought or calls:
            self._keep_ids(ids)
            return OutputPart(text=words, tokens=tokens, is_answer=bool(words) or calls)
        return None


def _tokens_thought(piece: OutputPart | None) -> int | None:
    """Return the tokens of a piece that is reasoning only, else `None`."""
    return None if piece is None or piece.is_answer else piece.tokens


def _raise_reported(document: JsonObject) -> None:
    """Raise the error that an engine sent in place of an answer, in any of its formats."""
    error = document.get("error")
    if error is None and document.get("object") == "error":
        error = document
    if not error:
        return
    words = error if isinstance(error, str) else text(error, "message")
    raise GenerationError("server_error_in_stream", words or f"the engine reported {error!r:.200}")
