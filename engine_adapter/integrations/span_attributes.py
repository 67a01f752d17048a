"""An engine's counts and times as attributes of the wire contract, for a span made elsewhere."""

from collections.abc import Mapping

from collector.contract import AttributeValue, Generation
from engine_adapter.engines.answer import Answer
from engine_adapter.recording.span import span_of

_SAID_BY_THE_SDK = ("gen_ai.operation.name", "gen_ai.provider.name")


def acceptance_attributes(answer: Answer) -> Mapping[str, AttributeValue]:
    """Return counts and times that an SDK's instrumentation does not record; often none.

    Tokens, model and finish reason are left to the instrumentation, which owns the span.
    """
    known = Generation(
        trace_id="",
        span_id="",
        start_unix_ns=0,
        end_unix_ns=0,
        cached_input_tokens=answer.cached_input_tokens,
        server_ttft_s=answer.server_ttft_s,
        queue_s=answer.queue_s,
        prefill_s=answer.prefill_s,
        decode_s=answer.decode_s,
        speculation=answer.speculation,
    )
    attributes = span_of(known).attributes
    return {name: value for name, value in attributes.items() if name not in _SAID_BY_THE_SDK}
