"""SGLang: counts by `return_spec_tokens_details`, or in `meta_info` on its own routes.

Traps: what it calls proposed is computed, not counted (steps × configured width), so it stands here
only where the server's flags make every step propose that many tokens (a chain: top-k 1, no
adaptive steps, no n-gram drafts), and its source says `derived`; what is missing is written as 0.0
or [], so zero steps are no data; `spec_accept_length` counts the token of the prefill, so nothing
is made of it. Names changed: `spec_accept_token_num` (to 0.5.10), `spec_accepted_drafts` (0.5.18),
`spec_num_correct_drafts` (0.5.23).
"""

from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from collector.contract import CountSource, Speculation
from engine_adapter.acceptance_counts import accepted_per_position
from engine_adapter.engines.answer import Answer, AnswerReader, Piece, SpeculationSetup
from engine_adapter.engines.json_fields import JsonObject, count, counts, number, text, within
from engine_adapter.engines.scrape import SpeculationCounters

T = TypeVar("T")

_ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_PROPOSED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")


class SglangReader(AnswerReader):
    """Reads SGLang's answers, on its OpenAI routes and on `/generate`."""

    provider: ClassVar[str] = "sglang"

    def __init__(self, setup: SpeculationSetup | None = None) -> None:
        super().__init__(setup)
        self._meta: dict[str, Any] = {}
        self._native_text: str | None = None

    @classmethod
    def request_fields(cls, *, stream: bool) -> dict[str, Any]:
        """Ask for usage, and for the counts of speculation."""
        return super().request_fields(stream=stream) | {"return_spec_tokens_details": True}

    def observe(self, document: JsonObject, piece: Piece | None) -> Piece | None:
        """Keep what the answer says of itself, wherever this version puts it."""
        for path in (
            ("meta_info",),
            ("choices", 0, "meta_info"),
            ("sglext", "spec_tokens_details"),
        ):
            if isinstance(said := within(document, *path), dict):
                self._meta |= said
        if (native := text(document, "text")) is not None:
            piece = self._native(native)
        return piece

    @property
    def output_tokens(self) -> int | None:
        """Tokens generated: the usage's, or those of `meta_info` on the native route."""
        usage = super().output_tokens
        return usage if usage is not None else count(self._meta, "completion_tokens")

    def answer(self) -> Answer:
        """Return what was said, times and counts included."""
        said = super().answer()
        cached = said.cached_input_tokens
        return replace(
            said,
            text=said.text if self._native_text is None else self._native_text,
            response_id=said.response_id or text(self._meta, "id"),
            input_tokens=_first(said.input_tokens, count(self._meta, "prompt_tokens")),
            cached_input_tokens=_first(cached, count(self._meta, "cached_tokens")),
            server_ttft_s=number(self._meta, "first_token_latency") or None,
            queue_s=number(self._meta, "queue_time"),
            speculation=self._counts() or said.speculation,
        )

    def _native(self, so_far: str) -> Piece | None:
        """Take `/generate`'s text, which each event repeats from the start."""
        before = self._native_text or ""
        self._native_text = so_far
        self.finish(text(self._meta, "finish_reason", "type"))
        new = so_far.removeprefix(before)
        return Piece(text=new, tokens=None) if new else None

    def _counts(self) -> Speculation | None:
        steps = count(self._meta, "spec_verify_ct")
        accepted = _first(*(count(self._meta, name) for name in _ACCEPTED))
        if not steps or accepted is None or self.several_choices:
            return None
        histogram = _first(*(counts(self._meta, name) or None for name in _HISTOGRAM))
        drafted = self._drafted(steps)
        return self.counted(
            CountSource.REQUEST if drafted is None else CountSource.DERIVED,
            steps=steps,
            draft_tokens=drafted,
            accepted_tokens=accepted,
            acceptance_histogram=histogram,
            accepted_tokens_per_pos=accepted_per_position(histogram) if histogram else None,
        )

    def _drafted(self, steps: int) -> int | None:
        """Return the proposed tokens, where the flags say that the engine's product is true."""
        said = _first(*(count(self._meta, name) for name in _PROPOSED))
        width = self.setup.fixed_width
        return said if width is not None and said == steps * width else None


def _first(*said: T | None) -> T | None:
    """Return the first that was said."""
    return next((value for value in said if value is not None), None)


COUNTERS = SpeculationCounters(
    generated="sglang:generation_tokens_total",
    requests="sglang:num_requests_total",
    in_flight=("sglang:num_running_reqs", "sglang:num_queue_reqs"),
    steps="sglang:spec_verify_calls_total",
)
"""`sglang:spec_num_draft_tokens` is a gauge of the configured width, no counter."""
