"""Durations in settings and options, such as 12h or 90d."""

import re
from typing import Final

from collector.errors import SettingsError

_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"([1-9][0-9]{0,8})([smhdw])")


def seconds(name: str, text: str) -> int:
    """Return the duration in seconds; raises `SettingsError` naming the option or variable."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise SettingsError(
            f"{name} {text}: wanted a number with s, m, h, d or w, such as 12h or 90d"
        )
    return int(found[1]) * _UNITS_S[found[2]]
