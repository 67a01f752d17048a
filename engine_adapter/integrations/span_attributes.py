"""An engine's counts and times as attributes of the wire contract, for a span made elsewhere."""

from collections.abc import Mapping

from collector.contract import AttributeValue, Generation
from engine_adapter.engines.answer import Answer
from engine_adapter.recording import fields_of_engine
from engine_adapter.recording.span import span_of

_SAID_BY_THE_SDK = ("gen_ai.operation.name", "gen_ai.provider.name")


def acceptance_attributes(answer: Answer) -> Mapping[str, AttributeValue]:
    """Return counts and times that an SDK's instrumentation does not record; often none.

    Tokens, model and finish reason are left to the instrumentation, which owns the span.
    """
    fields = fields_of_engine(answer)
    known = Generation(trace_id="", span_id="", start_unix_ns=0, end_unix_ns=0, **fields)
    attributes = span_of(known).attributes
    return {name: value for name, value in attributes.items() if name not in _SAID_BY_THE_SDK}
