"""The one decision on text: drop it, or keep it redacted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from collector.content.redaction import Redactor
from collector.content.shipped import shipped
from collector.contract import AttributeValue, Score
from collector.memo import of_short_texts

_SHIPPED: Final = Redactor(shipped())


class ContentPolicy:
    """Says what is stored of text; applied before anything is queued, logged or written."""

    def __init__(self, redactor: Redactor | None) -> None:
        """Keep text as the redactor leaves it, or none at all without one."""
        self._redactor = redactor
        self._shown = of_short_texts((redactor or _SHIPPED).text)

    @property
    def captures(self) -> bool:
        """Whether text is kept."""
        return self._redactor is not None

    def apply(self, text: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
        """Return what to store of a span's text attributes, of whatever type they are."""
        if self._redactor is None:
            return {}
        return {name: self._redactor.value(value) for name, value in text.items()}

    def keeps_as_sent(self, values: Sequence[AttributeValue]) -> bool:
        """Say whether every one of the values is surely kept, and as it is: seen in one pass."""
        if self._redactor is None:
            return False
        texts = [value for value in values if isinstance(value, str)]
        return len(texts) == len(values) and self._redactor.is_clean(texts)

    def apply_name(self, name: str) -> str:
        """Return what to store of a name, such as a span's: redacted even if text is dropped."""
        return self._shown(name)

    def apply_label(self, value: AttributeValue) -> AttributeValue:
        """Return what to store of an attribute that should hold a name, of whatever type it is."""
        return (self._redactor or _SHIPPED).value(value)

    def apply_message(self, message: str | None) -> str | None:
        """Return what to store of a status message: engines quote prompts in theirs."""
        if self._redactor is None or message is None:
            return None
        return self._redactor.text(message)

    def apply_score(self, score: Score) -> Score:
        """Return the score with what to store of its words: judges quote what they judge."""
        label, reason = score.label, score.unscored_reason
        if score.explanation is label is reason is None:
            return score
        return replace(
            score,
            explanation=self.apply_message(score.explanation),
            label=None if label is None else self.apply_name(label),
            unscored_reason=None if reason is None else self.apply_name(reason),
        )


DROP: Final = ContentPolicy(None)
"""Keeps no text."""
