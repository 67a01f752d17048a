"""What a dialect must offer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collector.contract import AttributeValue, Content, Decoded, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One way to write a generation as a span."""

    name: str
    """Stored with each generation, so never renamed."""
    recognise: Callable[[Span], Decoded | None]
    """Read a span, or say that it is not of this dialect."""
    is_text: Callable[[str], bool]
    """Say whether an attribute holds prompts, answers or passages, by its name."""
    content: Callable[[Mapping[str, AttributeValue]], Content | None]
    """Read the text out of text attributes alone."""
