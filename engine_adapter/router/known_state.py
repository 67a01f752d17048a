"""The rollout's switch and ramp as last read from the collector, kept on disk for outages."""

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collector.contract import RampStep, Switch, SwitchState, from_document, to_document

_VERSION: Final = 1
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownState:
    """The newest state read from the collector."""

    rollout: str
    switch: SwitchState | None = None
    """`None` if it was never set or never read; that counts as off."""
    ramp: RampStep | None = None
    """`None` if it has not begun or was never read."""
    told_unix_ns: int | None = None
    """When the state was last read; `None` if never."""

    @property
    def on(self) -> bool:
        """Whether the switch lets the candidate answer."""
        return self.switch is not None and self.switch.state is Switch.ON


def read(path: Path, rollout: str) -> KnownState:
    """Return the rollout's state from the file; an empty one, with a warning, if unusable.

    A missing file gives an empty state without a warning.
    """
    unknown = KnownState(rollout=rollout)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        version = document.pop("version")
        known = from_document(KnownState, document)
    except FileNotFoundError:
        return unknown
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as exc:
        _log.warning("%s: cannot be read (%s); the router starts as baseline", path, exc)
        return unknown
    if version != _VERSION or known.rollout != rollout:
        _log.warning(
            "%s: keeps version %s of %r, not version %s of %r; the router starts as baseline",
            path, version, known.rollout, _VERSION, rollout,
        )  # fmt: skip
        return unknown
    return known


def write(path: Path, known: KnownState) -> None:
    """Replace the file atomically; log a warning if that fails."""
    text = json.dumps({"version": _VERSION, **to_document(known)}, ensure_ascii=False)
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as exc:
        _log.warning("%s: cannot be written (%s); a restart will not know it", path, exc)
