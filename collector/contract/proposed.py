"""Names of the counts as proposed to OpenTelemetry's GenAI conventions (docs/otel-proposal.md)."""

from collections.abc import Mapping
from typing import Final

from collector.contract import attributes as a

PROPOSED: Final[Mapping[str, str]] = {
    a.SPEC_DECODE_NUM_STEPS: a.GEN_AI_SPECULATIVE_DECODING_STEP_COUNT,
    a.SPEC_DECODE_NUM_DRAFT_TOKENS: a.GEN_AI_SPECULATIVE_DECODING_DRAFTED_TOKENS,
    a.SPEC_DECODE_NUM_ACCEPTED_TOKENS: a.GEN_AI_SPECULATIVE_DECODING_ACCEPTED_TOKENS,
    a.SPEC_DECODE_NUM_SPECULATIVE_TOKENS: a.GEN_AI_SPECULATIVE_DECODING_MAX_DRAFT_TOKENS,
}
"""The proposed name of each of Draftgate's; both are read."""
