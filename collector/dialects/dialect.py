"""The interface of a dialect."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collector.contract import AttributeValue, Content, Decoded, Span
from collector.dialects.translation import contract_content


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One convention for writing a generation as a span."""

    name: str
    """Stored with each generation; never rename it."""
    recognise: Callable[[Span], Decoded | None]
    """Decode a span, without its messages; None if it is not of this dialect."""
    is_text: Callable[[str], bool] = frozenset[str]().__contains__
    """Return whether an attribute of this name contains prompts, answers or passages."""
    content: Callable[[Mapping[str, AttributeValue]], Content | None] = contract_content
    """Decode the content, given only the text attributes."""
    server_side: bool = False
    """Whether the engine sends these spans, so that a client span of the request may exist too."""
