"""TensorRT-LLM (`trtllm-serve`): usage in the answer, acceptance only in `/prometheus/metrics`.

`choices[].avg_decoded_tokens_per_iter` is not used: it is a mean over an unreported number of
iterations, and it is not documented whether the prefill is one of them.
"""

from typing import ClassVar

from engine_adapter.engines.answer import AnswerReader
from engine_adapter.engines.base import Probe
from engine_adapter.engines.http_engine import HttpEngine
from engine_adapter.engines.json_fields import text
from engine_adapter.engines.scrape import SpeculationCounters
from engine_adapter.engines.self_description import SelfDescription, metered


class TensorRtLlmReader(AnswerReader):
    """Reads TensorRT-LLM's answers."""

    provider: ClassVar[str] = "tensorrt_llm"


COUNTERS = SpeculationCounters(
    generated="trtllm_generation_tokens_total",
    requests="trtllm_e2e_request_latency_seconds_count",
    in_flight=("trtllm_num_requests_running", "trtllm_num_requests_waiting"),
    drafted="trtllm_spec_decode_num_draft_tokens_total",
    accepted="trtllm_spec_decode_num_accepted_tokens_total",
    drafted_per_position=("trtllm_spec_decode_drafted_tokens_total", "token_position"),
    accepted_per_position=("trtllm_spec_decode_accepted_tokens_total", "token_position"),
)


class TensorRtLlmEngine(HttpEngine):
    """A route of `trtllm-serve`."""

    reader = TensorRtLlmReader
    counters = COUNTERS
    metrics_route = "/prometheus/metrics"
    own_routes = ("/version",)

    @classmethod
    def interpret(cls, said: SelfDescription) -> Probe:
        """Read the version; speculation is visible only after a draft was counted."""
        advice = (
            "TensorRT-LLM counts draft tokens in /prometheus/metrics alone: run with concurrency 1 "
            "to have each request's"
            if said.metrics is not None
            else "no Prometheus metrics were found; set return_perf_metrics: true in the server's "
            "configuration"
        )
        version = text(said.of("/version"), "version")
        return metered(said, COUNTERS.drafted or "", advice, version=version)
