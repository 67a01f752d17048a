"""Access control: API keys, scopes and rates."""

from collector.access.authority import Authority, Grant
from collector.access.last_used import LastUsed

__all__ = ["Authority", "Grant", "LastUsed"]
