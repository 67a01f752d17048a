"""An answer as read, as the completion that ends a generation."""

from collector.contract import Speculation
from engine_adapter.engines.answer import Answer
from engine_adapter.engines.base import Completion


def completion_of(answer: Answer) -> Completion:
    """Return the answer as every engine ends one."""
    return Completion(
        text=answer.text,
        finish_reason=answer.finish_reason or "",
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        speculation=_without_nothing(answer.speculation),
        response_id=answer.response_id,
        response_model=answer.model,
        cached_input_tokens=answer.cached_input_tokens,
        queue_s=answer.queue_s,
        server_ttft_s=answer.server_ttft_s,
        prefill_s=answer.prefill_s,
        decode_s=answer.decode_s,
    )


def _without_nothing(said: Speculation | None) -> Speculation | None:
    """Return what is known of the speculation; `None` if that is nothing."""
    return said if said != Speculation() else None
