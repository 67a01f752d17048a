"""The content policy: whether text in spans is stored, and its redaction."""

from collector.content.policy import DROP, ContentPolicy
from collector.content.redaction import Pattern, Redactor
from collector.content.shipped import SHIPPED, shipped

__all__ = ["DROP", "SHIPPED", "ContentPolicy", "Pattern", "Redactor", "shipped"]
