"""vLLM: counts and times in the body's `metrics`, tokens a chunk by `return_token_ids`.

Read from 0.29 on with `--per-request-spec-decode-metrics summary` (or `detailed`) on the route that
speculates, and `--enable-per-request-metrics` on both. In a stream they ride on the usage chunk.

Traps: the counts are the verifier's, so draft tokens that were accepted and then cut by max_tokens
or a stop string are among them (`1 + steps + accepted − output tokens` tokens at most); the body's
time to first token runs from scheduling, not from arrival, so it is `prefill_s` here; several
choices have no counts; a request that drafted nothing has a rate of 0.0 and no data.
"""

from dataclasses import replace
from typing import Any, ClassVar

from collector.contract import CountSource, Speculation
from engine_adapter import acceptance_counts
from engine_adapter.acceptance_counts import VerifyStep, accepted_per_position
from engine_adapter.engines.answer import Answer, AnswerReader, Piece, SpeculationSetup
from engine_adapter.engines.json_fields import JsonObject, count, counts, seconds, within
from engine_adapter.engines.scrape import SpeculationCounters


class VllmReader(AnswerReader):
    """Reads vLLM's answers."""

    provider: ClassVar[str] = "vllm"

    def __init__(self, setup: SpeculationSetup | None = None) -> None:
        super().__init__(setup)
        self._metrics: object = None

    @classmethod
    def request_fields(cls, *, stream: bool) -> dict[str, Any]:
        """Ask for usage, and for token ids so that each chunk says how many tokens it has."""
        return super().request_fields(stream=stream) | (
            {"return_token_ids": True} if stream else {}
        )

    def observe(self, document: JsonObject, piece: Piece | None) -> Piece | None:
        """Keep the per-request metrics, which are on the last document alone."""
        self._metrics = within(document, "metrics") or self._metrics
        return piece

    def answer(self) -> Answer:
        """Return what was said, times and counts included."""
        said = super().answer()
        return replace(
            said,
            queue_s=seconds(self._metrics, "queue_time_ms"),
            prefill_s=seconds(self._metrics, "time_to_first_token_ms"),
            decode_s=seconds(self._metrics, "generation_time_ms"),
            speculation=self._counts() or said.speculation,
        )

    def _counts(self) -> Speculation | None:
        said = within(self._metrics, "speculative_decoding")
        drafted = count(said, "num_draft_tokens")
        if not drafted:
            return None
        histogram = counts(said, "acceptance_histogram")
        known: dict[str, Any] = {
            "steps": count(said, "num_spec_steps"),
            "draft_tokens": drafted,
            "accepted_tokens": count(said, "num_accepted_draft_tokens"),
            "draft_tokens_per_pos": _drafted_per_position(said),
            "accepted_tokens_per_pos": accepted_per_position(histogram) if histogram else None,
            "acceptance_histogram": histogram,
            "num_speculative_tokens": count(said, "num_spec_tokens")
            or self.setup.configured.num_speculative_tokens,
        }
        return self.counted(CountSource.REQUEST, **known)


def _drafted_per_position(said: object) -> tuple[int, ...] | None:
    """Return the sums of the detailed list of steps, which `summary` does not have."""
    drafted, accepted = counts(said, "per_step_drafted"), counts(said, "per_step_accepted")
    if drafted is None or accepted is None or len(drafted) != len(accepted):
        return None
    steps = [VerifyStep(*step) for step in zip(drafted, accepted, strict=True)]
    return acceptance_counts.count(steps).draft_tokens_per_pos


COUNTERS = SpeculationCounters(
    generated="vllm:generation_tokens_total",
    requests="vllm:request_success_total",
    in_flight=("vllm:num_requests_running", "vllm:num_requests_waiting"),
    steps="vllm:spec_decode_num_drafts_total",
    drafted="vllm:spec_decode_num_draft_tokens_total",
    accepted="vllm:spec_decode_num_accepted_tokens_total",
    accepted_per_position=("vllm:spec_decode_num_accepted_tokens_per_pos_total", "position"),
)
