"""What tests of the store write: generations with counts that obey every law, spans, scores."""

from typing import Any

from collector.contract import Arm, Generation, Score, Span, Speculation


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


def pair_side(number: int, **fields: Any) -> Generation:
    """Make a generation of which each even number's pairs with the next number's."""
    return generation_of(
        number, **({"arm": list(Arm)[number % 2], "prompt_id": f"p{number // 2}"} | fields)
    )


def span_of(number: int = 1, **fields: Any) -> Span:
    """Make a span without attributes; the number sets its ids, `fields` replace its own."""
    own = {
        "trace_id": f"{number:032x}",
        "span_id": f"{number:016x}",
        "name": "chat m",
        "start_unix_ns": 10**18,
        "end_unix_ns": 10**18 + 10**9,
    }
    return Span(**(own | fields))


def engine_span_of(client: Generation | Span, **fields: Any) -> Span:
    """Make vLLM's own span of the client's request, without attributes."""
    own = {
        "trace_id": client.trace_id,
        "span_id": "e" * 16,
        "parent_span_id": client.span_id,
        "name": "llm_request",
        "kind": "server",
        "start_unix_ns": client.start_unix_ns,
        "end_unix_ns": client.end_unix_ns,
    }
    return Span(**(own | fields))


def score_of(judged: Generation | Span, value: float | None = 1.0, **fields: Any) -> Score:
    """Make a score of a generation; `fields` replace its own."""
    own = {"trace_id": judged.trace_id, "span_id": judged.span_id}
    own |= {"metric": "m", "evaluator": "e", "version": "1"}
    return Score(value=value, **(own | fields))
