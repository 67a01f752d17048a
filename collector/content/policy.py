"""The content policy: drop text, or keep it redacted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from collector.content.redaction import Redactor
from collector.content.shipped import shipped
from collector.contract import AttributeValue, Score
from collector.contract import attributes as a
from collector.memo import of_short_texts

_TOKEN_IDS: Final = a.DRAFTGATE_OUTPUT_TOKEN_IDS
_SHIPPED: Final = Redactor(shipped())


class ContentPolicy:
    """Decides what text is stored; applied before anything is queued, logged or written."""

    def __init__(self, redactor: Redactor | None) -> None:
        """Keep text redacted by `redactor`; None drops all text."""
        self._redactor = redactor
        # Names are counted and grouped by: a value's token would split them.
        self._names = _SHIPPED if redactor is None else redactor.keyed(None)
        self._redact_name = of_short_texts(self._names.text)

    def keyed(self, key: bytes) -> "ContentPolicy":
        """Return the policy whose redacted texts have tokens made with the key."""
        return self if self._redactor is None else ContentPolicy(self._redactor.keyed(key))

    @property
    def captures(self) -> bool:
        """Whether text is kept."""
        return self._redactor is not None

    def apply(self, text: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
        """Return the stored form of a span's text attributes, of any type; empty if dropped.

        Token ids spell the texts out, so they are dropped if any text is redacted.
        """
        if self._redactor is None:
            return {}
        kept = {name: self._redactor.value(value) for name, value in text.items()}
        if _TOKEN_IDS in kept and kept != text:
            del kept[_TOKEN_IDS]
        return kept

    def keeps_as_sent(self, values: Sequence[AttributeValue]) -> bool:
        """Return whether all values are certainly kept unchanged, in one pass over all of them."""
        if self._redactor is None:
            return False
        texts = [value for value in values if isinstance(value, str)]
        return len(texts) == len(values) and self._redactor.is_clean(texts)

    def apply_name(self, name: str) -> str:
        """Return the stored form of a name, such as a span's: redacted even if text is dropped."""
        return self._redact_name(name)

    def apply_label(self, value: AttributeValue) -> AttributeValue:
        """Return the stored form of an attribute that should be a name, of any type."""
        return self._names.value(value)

    def apply_message(self, message: str | None) -> str | None:
        """Return the stored form of a status message: text, because engines quote prompts there."""
        if self._redactor is None or message is None:
            return None
        return self._redactor.text(message)

    def apply_score(self, score: Score) -> Score:
        """Return the score with its text redacted or dropped: judges quote the answer there."""
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
"""The policy that drops all text."""
