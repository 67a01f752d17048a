"""Laws that a generation's counts and times must obey.

A span that breaks one is stored as sent and flagged; a `counts` flag keeps its speculation counts
out of every ratio.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from operator import gt
from typing import Any, Final, NamedTuple

from collector.contract.fields import WIRE, flatten
from collector.contract.records import Generation
from collector.contract.wire_field import NotNegative

try:
    from collector.contract._laws import Laws
except ImportError:  # there was no compiler when this was installed
    Laws = None  # type: ignore[assignment,misc]  # checked below


COUNTS = "counts"
"""Flags with this prefix keep a generation's speculation counts out of every ratio."""

_ROUNDING_S: Final = 1e-6
"""Tolerance for comparing a double in seconds with a difference of nanoseconds."""


class LawForm(StrEnum):
    """The form of a law; a law holds if one of its fields is absent."""

    NOT_NEGATIVE = "not_negative"
    """Every present field, and every count of a list, is at least 0."""
    ASCENDS = "ascends"
    """The first field is at most the second."""
    WITHIN = "within"
    """The first field, in seconds, is at most the difference of the others, in nanoseconds."""
    SUMS_TO = "sums_to"
    """The sum of a list of counts equals the second field."""
    SUMS_BY_PLACE_TO = "sums_by_place_to"
    """The sum of a list's counts, each times its index from 0, equals the second field."""
    DESCENDS = "descends"
    """No count of a list is larger than the one before."""


class Law(NamedTuple):
    """One law, and the flag, `group:law`, of a generation that breaks it."""

    flag: str
    form: LawForm
    fields: tuple[str, ...]


_STEPS: Final = "spec_steps"
_DRAFTED: Final = "spec_draft_tokens"
_ACCEPTED: Final = "spec_accepted_tokens"
_DRAFTED_PER_POS: Final = "spec_draft_tokens_per_pos"
_ACCEPTED_PER_POS: Final = "spec_accepted_tokens_per_pos"
_HISTOGRAM: Final = "spec_acceptance_histogram"


def _never_negative(group: NotNegative) -> tuple[str, ...]:
    return tuple(name for name, wire in WIRE.items() if wire.not_negative is group)


LAWS: Final = (
    Law("times:end_before_start", LawForm.ASCENDS, ("start_unix_ns", "end_unix_ns")),
    Law("times:ttft_exceeds_duration", LawForm.WITHIN, ("ttft_s", "start_unix_ns", "end_unix_ns")),
    *(
        Law(f"{group.value}:negative_{name}", LawForm.NOT_NEGATIVE, (name,))
        for group in (NotNegative.TIME, NotNegative.TOKENS)
        for name in _never_negative(group)
    ),
    Law(f"{COUNTS}:negative", LawForm.NOT_NEGATIVE, _never_negative(NotNegative.COUNTS)),
    Law(f"{COUNTS}:accepted_exceeds_draft", LawForm.ASCENDS, (_ACCEPTED, _DRAFTED)),
    Law(f"{COUNTS}:histogram_sum", LawForm.SUMS_TO, (_HISTOGRAM, _STEPS)),
    Law(f"{COUNTS}:histogram_accepted", LawForm.SUMS_BY_PLACE_TO, (_HISTOGRAM, _ACCEPTED)),
    Law(f"{COUNTS}:draft_per_pos_increases", LawForm.DESCENDS, (_DRAFTED_PER_POS,)),
    Law(f"{COUNTS}:draft_per_pos_sum", LawForm.SUMS_TO, (_DRAFTED_PER_POS, _DRAFTED)),
    Law(f"{COUNTS}:accepted_per_pos_increases", LawForm.DESCENDS, (_ACCEPTED_PER_POS,)),
    Law(f"{COUNTS}:accepted_per_pos_sum", LawForm.SUMS_TO, (_ACCEPTED_PER_POS, _ACCEPTED)),
)
"""All laws, in the order of their flags."""


class LawChecker:
    """Checks generations against a table of laws, first with a fast compiled check of all."""

    def __init__(self, laws: tuple[Law, ...]) -> None:
        self._laws = laws
        self._compiled = None if Laws is None else Laws(laws, _ROUNDING_S)

    # Any: each value has its field's own type, ensured by the codec.
    def broken(self, fields: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the flags of the laws that a generation's flat fields break."""
        if self.surely_hold(fields):
            return ()  # almost every span
        return tuple(law.flag for law in self._laws if _is_broken(law, fields))

    def surely_hold(self, fields: Mapping[str, Any]) -> bool:
        """Return whether the compiled check finds that every law holds; False if there is none."""
        compiled = self._compiled
        if compiled is None or not isinstance(fields, dict):
            return False
        return compiled.surely_hold(fields)

    def is_compiled(self) -> bool:
        """Return whether there is a compiled check that knows every law's form."""
        return self._compiled is not None and self._compiled.known


def violations(generation: Generation) -> tuple[str, ...]:
    """Return the broken laws as flags, `group:law`, in a fixed order; empty if all hold."""
    return broken_laws(flatten(generation))


def counts_usable(generation: Generation) -> bool:
    """Return whether the generation's speculation counts may enter a ratio."""
    return usable_counts(flatten(generation))


def broken_laws(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the same as `violations`, for a generation's flat fields."""
    return _CHECKER.broken(fields)


def usable_counts(fields: Mapping[str, Any]) -> bool:
    """Return the same as `counts_usable`, for a generation's flat fields."""
    if "spec_draft_tokens" not in fields or "spec_accepted_tokens" not in fields:
        return False
    return not any(flag.startswith(COUNTS) for flag in fields.get("quality", ()))


def _is_broken(law: Law, fields: Mapping[str, Any]) -> bool:
    values = [fields[name] for name in law.fields if name in fields]
    if law.form is not LawForm.NOT_NEGATIVE and len(values) < len(law.fields):
        return False
    return _BREAKS[law.form](*values)


def _is_any_negative(*values: Any) -> bool:
    return any((min(v, default=0) if isinstance(v, tuple | list) else v) < 0 for v in values)


def _exceeds_duration(seconds: float, start_ns: int, end_ns: int) -> bool:
    return seconds > max((end_ns - start_ns) / 1e9, 0) + _ROUNDING_S


def _sums_to_another(counts: tuple[int, ...], total: int) -> bool:
    return sum(counts) != total


def _sums_by_place_to_another(counts: tuple[int, ...], total: int) -> bool:
    return sum(place * count for place, count in enumerate(counts)) != total


def _increases(counts: tuple[int, ...]) -> bool:
    return list(counts) != sorted(counts, reverse=True)


_BREAKS: Final[Mapping[LawForm, Callable[..., bool]]] = {
    LawForm.NOT_NEGATIVE: _is_any_negative,
    LawForm.ASCENDS: gt,
    LawForm.WITHIN: _exceeds_duration,
    LawForm.SUMS_TO: _sums_to_another,
    LawForm.SUMS_BY_PLACE_TO: _sums_by_place_to_another,
    LawForm.DESCENDS: _increases,
}
_CHECKER: Final = LawChecker(LAWS)
