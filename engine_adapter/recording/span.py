"""A generation as a span to send, by the names that the environment asks for."""

import os
from dataclasses import replace

from collector.contract import Generation, Span, encode
from collector.contract.proposed import PROPOSED

_SWITCH = "DRAFTGATE_PROPOSED_CONVENTIONS"


def span_of(generation: Generation) -> Span:
    """Return the generation as a span.

    With `DRAFTGATE_PROPOSED_CONVENTIONS=true`, the counts of speculation are on it a second time,
    by the names that are proposed to OpenTelemetry.
    """
    span = encode(generation)
    if os.environ.get(_SWITCH, "").lower() not in ("1", "true"):
        return span
    proposed = {
        name: span.attributes[ours] for ours, name in PROPOSED.items() if ours in span.attributes
    }
    return replace(span, attributes={**span.attributes, **proposed})
