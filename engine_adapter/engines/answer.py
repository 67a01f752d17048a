"""What an engine's answer says of itself, read from whole documents, stream events, and headers.

One reader class an engine, one instance a request. A reader keeps no connection: whoever holds the
bytes (the streaming core, a router, an SDK's callback) hands it the decoded JSON. It reports what
the engine said and nothing else; what the engine did not say is absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from collector.contract import CountSource, DeviceUse, Speculation
from engine_adapter.engines.json_fields import JsonObject, count, objects, text
from engine_adapter.engines.tool_calls import ToolCall, ToolCallAssembly
from engine_adapter.errors import GenerationError


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationSetup:
    """What is known of how a route speculates, before its first answer."""

    on: bool | None = None
    """Absent if the engine does not say; only where it is true is a missing count zero."""
    configured: Speculation = field(default_factory=Speculation)
    """Method, draft model, k, lossless: as far as known, without counts."""
    fixed_width: int | None = None
    """Draft tokens that each verify step proposes; absent if steps may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPart:
    """A part of the answer's output."""

    text: str
    tokens: int | None
    """Tokens in it, where the engine says so."""
    is_answer: bool = True
    """Whether it is of the answer itself, text or tool calls, and not of the reasoning before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that an engine said of one answer; what it did not say is absent."""

    text: str = ""
    reasoning: str = ""
    """What a model thought before it answered, where the engine keeps that apart."""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    """As in the OpenAI API: stop, length, tool_calls, …; `None` is a partial answer."""
    response_id: str | None = None
    model: str | None = None
    """The model that answered."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    """All that were generated, those of the reasoning included."""
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
    device: DeviceUse | None = None
    """Of an engine in this process."""

    @property
    def is_empty(self) -> bool:
        """Whether the engine said nothing at all: `{}`, or a stream of such."""
        return self.finish_reason is None and not (self.text or self.reasoning or self.tool_calls)


def of_empty_answer(answer: Answer, url: str) -> GenerationError:
    """Return the failure of a 200 that says nothing; by its usage, something may be lost."""
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
    """Raise `GenerationError` for an answer of which nothing, or not its end, was said."""
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
"""What engines' native routes call the ends that the OpenAI API calls `stop` and `length`."""


class AnswerReader:
    """Reads an OpenAI-compatible server's answer; engines that say more extend it.

    Of several choices the first is the answer, and counts that an engine gives for the whole
    request are then absent.
    """

    provider: ClassVar[str] = "openai"
    """`gen_ai.provider.name`."""

    def __init__(self, setup: SpeculationSetup | None = None) -> None:
        """Read an answer of a route that is known to speculate so."""
        self.setup = setup or SpeculationSetup()
        self.several_choices = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_tokens: list[int | None] = []
        """Of each piece that was reasoning alone, or `None` of one that was both."""
        self._tool_calls = ToolCallAssembly()
        self._thinks = False
        """Whether the newest document has reasoning in it."""
        self._finish_reason: str | None = None
        self._named: dict[str, str] = {}
        self._usage: JsonObject = {}

    @classmethod
    def request_fields(cls, *, stream: bool) -> dict[str, Any]:
        """Return the request's fields that make the engine say what can be read."""
        return {"stream_options": {"include_usage": True}} if stream else {}

    def take_headers(self, headers: Mapping[str, str]) -> None:
        """Take the answer's HTTP headers, names in any case; most engines say nothing there."""

    def take(self, document: JsonObject) -> OutputPart | None:
        """Take a whole answer or one event of a stream; return the output in it, if any.

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
        """Read what this engine says besides the OpenAI API's fields; may say a piece's tokens."""
        del document
        return piece

    def answer(self) -> Answer:
        """Return what was said so far; the last word once the stream has ended."""
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
        )

    @property
    def output_tokens(self) -> int | None:
        """Tokens generated, as the usage says."""
        return count(self._usage, "completion_tokens")

    @property
    def reasoning_tokens(self) -> int | None:
        """Tokens of the reasoning: as the usage says, else summed over chunks of it alone.

        Engines that count none write 0 beside a reasoning, which is no count.
        """
        said = count(self._usage, "completion_tokens_details", "reasoning_tokens")
        if said is None:
            said = count(self._usage, "reasoning_tokens")
        if said or not self._reasoning:
            return said
        known = [tokens for tokens in self._reasoning_tokens if tokens is not None]
        return sum(known) if len(known) == len(self._reasoning_tokens) else None

    def finish(self, reason: object) -> None:
        """Take the reason why the answer ended."""
        if isinstance(reason, str):
            self._finish_reason = _FINISHES.get(reason, reason)

    def add(self, words: str) -> None:
        """Take a part of the answer's text."""
        self._text.append(words)

    def counted(self, source: CountSource, **counts: Any) -> Speculation:  # Any: a field's own type
        """Return the configured speculation with counts and where they come from."""
        return replace(self.setup.configured, source=source.value, **counts)

    def _choice(self, choice: JsonObject) -> OutputPart | None:
        self.finish(choice.get("finish_reason"))
        part = choice.get("delta") or choice.get("message") or {}
        words = text(part, "content") or text(choice, "text") or ""
        self.add(words)
        thought = text(part, "reasoning_content") or text(part, "reasoning") or ""
        self._thinks = bool(thought)
        if thought:
            self._reasoning.append(thought)
        calls = self._tool_calls.take(part)
        ids = choice.get("token_ids")
        tokens = len(ids) if isinstance(ids, list) else None
        if words or tokens or thought or calls:
            return OutputPart(text=words, tokens=tokens, is_answer=bool(words) or calls)
        return None


def _tokens_thought(piece: OutputPart | None) -> int | None:
    """Return the tokens of a piece of reasoning, if it is nothing else besides."""
    return None if piece is None or piece.is_answer else piece.tokens


def _raise_reported(document: JsonObject) -> None:
    """Raise the error that an engine sent in place of an answer, whichever shape it has."""
    error = document.get("error")
    if error is None and document.get("object") == "error":
        error = document
    if not error:
        return
    words = error if isinstance(error, str) else text(error, "message")
    raise GenerationError("server_error_in_stream", words or f"the engine reported {error!r:.200}")
