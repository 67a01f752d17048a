"""Names of the evaluator inputs (reference, context, schema) that a generation was sent with.

They are recorded before the content policy drops any text, so they are known even if no text is
kept.
"""

from collections.abc import Collection
from typing import Final

from collector.contract import attributes

_NAMES: Final = {
    attributes.DRAFTGATE_REFERENCE: "reference",
    attributes.DRAFTGATE_CONTEXT: "context",
    attributes.DRAFTGATE_OUTPUT_SCHEMA: "schema",
    attributes.GEN_AI_TOOL_DEFINITIONS: "schema",
}


def of(text: Collection[str]) -> str | None:
    """Return the input names, separated by spaces, given the names of a span's text attributes.

    None if the sender sent no text at all: it is then unknown what the prompt contains.
    """
    if not text:
        return None
    if _NAMES.keys().isdisjoint(text):
        return ""
    return " ".join(dict.fromkeys(name for sent, name in _NAMES.items() if sent in text))
