"""What is kept of the text that spans carry."""

from collector.content.policy import DROP, ContentPolicy
from collector.content.redaction import Pattern, Redactor
from collector.content.shipped import SHIPPED, shipped

__all__ = ["DROP", "SHIPPED", "ContentPolicy", "Pattern", "Redactor", "shipped"]
