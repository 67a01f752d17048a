"""What a dialect must offer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collector.contract import AttributeValue, Content, Decoded, Span
from collector.dialects.translation import contract_content


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One way to write a generation as a span."""

    name: str
    """Stored with each generation, so never renamed."""
    recognise: Callable[[Span], Decoded | None]
    """Read a span, or say that it is not of this dialect; messages are left to `content`."""
    is_text: Callable[[str], bool] = frozenset[str]().__contains__
    """Say whether an attribute holds prompts, answers or passages, by its name."""
    content: Callable[[Mapping[str, AttributeValue]], Content | None] = contract_content
    """Read the text out of text attributes alone."""
    server_side: bool = False
    """Its spans are the engine's side of a request, which may have a client's span too."""
