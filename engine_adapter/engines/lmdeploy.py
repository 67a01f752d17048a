"""LMDeploy: usage in the answer, speculation counts only in `/metrics`."""

from typing import ClassVar

from engine_adapter.engines.answer import AnswerReader
from engine_adapter.engines.base import Probe
from engine_adapter.engines.http_engine import HttpEngine
from engine_adapter.engines.scrape import SpeculationCounters
from engine_adapter.engines.self_description import SelfDescription, metered


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
"""Each step counts the configured number of draft tokens."""


class LmdeployEngine(HttpEngine):
    """A route of LMDeploy's server."""

    reader = LmdeployReader
    counters = COUNTERS

    @classmethod
    def interpret(cls, said: SelfDescription) -> Probe:
        """Report speculation once a draft was counted; no route gives the version."""
        advice = (
            "LMDeploy counts draft tokens in /metrics alone: run with concurrency 1 to have each "
            "request's"
            if said.metrics is not None
            else "no Prometheus metrics were found; start LMDeploy without --disable-metrics"
        )
        return metered(said, COUNTERS.steps or "", advice)
