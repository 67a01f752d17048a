"""Text Generation Inference: times in headers, no speculation counts in answers.

In maintenance mode since the beginning of 2026. `details.tokens[].special` marks special tokens,
not draft tokens. Accepted tokens are only in `/metrics` (see `scrape`); proposed tokens are not
reported at all.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from engine_adapter.engines.answer import Answer, AnswerReader, OutputPart, SpeculationSetup
from engine_adapter.engines.base import Probe
from engine_adapter.engines.http_engine import HttpEngine
from engine_adapter.engines.json_fields import JsonObject, count, text, within
from engine_adapter.engines.scrape import SpeculationCounters
from engine_adapter.engines.self_description import SelfDescription, metered


class TgiReader(AnswerReader):
    """Reads TGI's answers, on its OpenAI routes and on `/generate` and `/generate_stream`."""

    provider: ClassVar[str] = "tgi"

    def __init__(self, setup: SpeculationSetup | None = None) -> None:
        super().__init__(setup)
        self._headers: dict[str, str] = {}
        self._details: object = None

    def take_headers(self, headers: Mapping[str, str]) -> None:
        """Keep the headers; answers that are not streamed have times and token counts in them."""
        self._headers = {name.lower(): value for name, value in headers.items()}

    def observe(self, document: JsonObject, piece: OutputPart | None) -> OutputPart | None:
        """Read the native routes' text, token and details."""
        self._details = within(document, "details") or self._details
        self.finish(within(self._details, "finish_reason"))
        if isinstance(token := within(document, "token"), Mapping):
            words = "" if within(token, "special") is True else text(token, "text") or ""
            self.add(words)
            return OutputPart(text=words, tokens=1)
        if (whole := text(document, "generated_text")) is not None:
            self.add(whole)
            return OutputPart(text=whole, tokens=None)
        return piece

    @property
    def output_tokens(self) -> int | None:
        """Output tokens, from the usage, the details, or the headers."""
        said = super().output_tokens
        if said is None:
            said = count(self._details, "generated_tokens")
        return said if said is not None else self._header("x-generated-tokens")

    def answer(self) -> Answer:
        """Return the answer with its times."""
        said = super().answer()
        queued_ms = self._header("x-queue-time")
        prompt = said.input_tokens
        return replace(
            said,
            input_tokens=prompt if prompt is not None else self._header("x-prompt-tokens"),
            queue_s=queued_ms / 1e3 if queued_ms is not None else None,
        )

    def _header(self, name: str) -> int | None:
        value = self._headers.get(name, "")
        return int(value) if value.isascii() and value.isdigit() else None


COUNTERS = SpeculationCounters(
    generated="tgi_request_generated_tokens_sum",
    requests="tgi_request_generated_tokens_count",
    in_flight=("tgi_batch_current_size", "tgi_queue_size"),
    steps="tgi_request_skipped_tokens_count",
    accepted="tgi_request_skipped_tokens_sum",
    steps_include_prefill=True,
)
"""`tgi_request_skipped_tokens` is observed once per generation step, despite its name."""


class TgiEngine(HttpEngine):
    """A route of text-generation-inference."""

    reader = TgiReader
    counters = COUNTERS
    own_routes = ("/info",)

    @classmethod
    def interpret(cls, said: SelfDescription) -> Probe:
        """Read the version; speculation is visible only after a draft token was accepted."""
        advice = (
            "TGI counts accepted tokens in /metrics alone, and proposed tokens nowhere: run with "
            "concurrency 1 to have acceptance lengths; rates cannot be known"
        )
        version = text(said.of("/info"), "version")
        found = metered(said, COUNTERS.accepted or "", advice, version=version)
        context_length = count(said.of("/info"), "max_total_tokens")
        return replace(found, context_length=context_length)
