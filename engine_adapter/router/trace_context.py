"""W3C trace context: continue the client's trace through the router to the engine."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

_HEADER: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED: Final = "01"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceContext:
    """The position of a generation's span in a trace."""

    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    flags: str = _SAMPLED

    @classmethod
    def continued(cls, headers: Mapping[str, str]) -> Self:
        """Return a new span in the client's trace, or in a new one without a valid header."""
        found = _HEADER.fullmatch(headers.get("traceparent", ""))
        if found is None or not int(found[1], 16) or not int(found[2], 16):
            return cls.own()
        return cls(trace_id=found[1], span_id=_id(64), parent_span_id=found[2], flags=found[3])

    @classmethod
    def own(cls) -> Self:
        """Return the root span of a new trace."""
        return cls(trace_id=_id(128), span_id=_id(64))

    def beside(self) -> Self:
        """Return a sibling span: a new id with the same parent."""
        return replace(self, span_id=_id(64))

    @property
    def traceparent(self) -> str:
        """The header sent to the engine, whose spans become children of this one."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def _id(bits: int) -> str:
    return f"{random.getrandbits(bits) or 1:0{bits // 4}x}"  # not a secret
