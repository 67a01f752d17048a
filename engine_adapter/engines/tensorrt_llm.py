"""TensorRT-LLM (`trtllm-serve`): usage in the answer, acceptance in `/prometheus/metrics` alone.

`choices[].avg_decoded_tokens_per_iter` is a mean over iterations of which the answer gives no
number, and whether the prefill is one of them is not documented: no count is made of it.
"""

from typing import ClassVar

from engine_adapter.engines.answer import AnswerReader
from engine_adapter.engines.scrape import SpeculationCounters


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
