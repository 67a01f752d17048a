"""The parts that a generation carries for evaluators: by name, so that they outlive its text.

They are noted before the content policy drops any text, and stay if no text is kept.
"""

from collections.abc import Container
from typing import Final

from collector.contract import attributes

_NAMES: Final = {
    attributes.DRAFTGATE_REFERENCE: "reference",
    attributes.DRAFTGATE_CONTEXT: "context",
    attributes.DRAFTGATE_OUTPUT_SCHEMA: "schema",
    attributes.GEN_AI_TOOL_DEFINITIONS: "schema",
}


def of(text: Container[str]) -> str | None:
    """Return the names, separated by spaces, from those of a span's text attributes.

    None if the sender sent no text at all: what the prompt has is unknown then.
    """
    if not text:
        return None
    return " ".join(dict.fromkeys(name for sent, name in _NAMES.items() if sent in text))
