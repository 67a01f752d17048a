"""LMDeploy: usage in the answer, speculation in `/metrics` alone."""

from typing import ClassVar

from engine_adapter.engines.answer import AnswerReader
from engine_adapter.engines.scrape import SpeculationCounters


class LmdeployReader(AnswerReader):
    """Reads LMDeploy's answers."""

    provider: ClassVar[str] = "lmdeploy"


COUNTERS = SpeculationCounters(
    generated="lmdeploy:generation_tokens_total",
    requests="lmdeploy:e2e_request_latency_seconds_count",
    in_flight=("lmdeploy:num_requests_running", "lmdeploy:num_requests_waiting"),
    steps="lmdeploy:spec_decode_num_drafts_total",
    drafted="lmdeploy:spec_decode_num_draft_tokens_total",
    accepted="lmdeploy:spec_decode_num_accepted_tokens_total",
    accepted_per_position=("lmdeploy:spec_decode_num_accepted_tokens_per_pos_total", "position"),
)
"""The drafts of a step are counted as the configured number."""
