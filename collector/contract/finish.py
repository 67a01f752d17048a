"""Finish reasons of answers that an engine, a filter or a client ended before their end."""

from collections.abc import Iterable
from typing import Final

FINISH_PREFIX: Final = "finish_"
"""`error.type` of such an answer is this prefix with its finish reason."""

_FAILED: Final = frozenset(
    {
        "abort",
        "aborted",
        "blocklist",
        "cancel",
        "canceled",
        "cancelled",
        "content_filter",
        "content_filtered",
        "guardrail_intervened",
        "image_safety",
        "insufficient_system_resource",
        "network_error",
        "prohibited_content",
        "recitation",
        "refusal",
        "repetition",
        "safety",
        "sensitive",
        "spii",
        "timeout",
        "unexpected_tool_call",
        "user_cancel",
    }
)
"""As in the APIs of OpenAI, vLLM, SGLang, Anthropic, Gemini, Bedrock, Cohere and others."""
_USUAL: Final = frozenset({"stop", "length", "tool_calls"})
"""Those of almost all answers, which need no normalizing."""
_FAILED_PREFIXES: Final = ("error", "malformed_")


def failure_of(finish_reasons: Iterable[str]) -> str | None:
    """Return the `error.type` of an answer whose finish reasons name a failure, else None.

    Of several choices, the first that failed counts. Case, and the name of an enumeration before
    the reason, are ignored: `FinishReason.SAFETY` is `safety`.
    """
    for sent in finish_reasons:
        if sent in _USUAL:
            continue
        reason = sent.rpartition(".")[2].lower().removeprefix("finish_reason_").replace("-", "_")
        if reason in _FAILED or reason.startswith(_FAILED_PREFIXES):
            return FINISH_PREFIX + reason[:64]
    return None
