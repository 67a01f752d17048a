"""A generation that tests store, with counts that obey every law."""

from typing import Any

from collector.contract import Arm, Generation, Speculation


def generation_of(number: int = 1, **fields: Any) -> Generation:
    """Make a generation with counts that obey every law; `fields` replace its own."""
    values: dict[str, Any] = {
        "trace_id": f"{number:032x}",
        "span_id": f"{number:016x}",
        "start_unix_ns": 1_700_000_000_000_000_000 + number,
        "end_unix_ns": 1_700_000_002_000_000_000 + number,
        "provider": "vllm",
        "request_model": "target",
        "response_model": "target",
        "max_tokens": 64,
        "temperature": 0.0,
        "finish_reasons": ("stop",),
        "input_tokens": 12,
        "output_tokens": 11,
        "ttft_s": 0.5,
        "tpot_s": 0.15,
        "rollout": "k4",
        "arm": Arm.CANDIDATE,
        "cohort": "chat",
        "prompt_id": f"p{number}",
        "repeat": 0,
        "fallback": False,
        "dims": {"language": "en"},
        "speculation": Speculation(
            method="draft_model",
            draft_model="draft",
            num_speculative_tokens=2,
            source="request",
            steps=5,
            draft_tokens=10,
            accepted_tokens=6,
            draft_tokens_per_pos=(5, 5),
            accepted_tokens_per_pos=(4, 2),
            acceptance_histogram=(1, 2, 2),
        ),
        "service_name": "tests",
    }
    return Generation(**(values | fields))
