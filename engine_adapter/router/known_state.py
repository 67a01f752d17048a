"""What a router knows of its rollout from the collector, kept on disk for when it is away."""

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
class Known:
    """The newest state that the collector told."""

    rollout: str
    switch: SwitchState | None = None
    """None: nobody ever set it, or it was never learnt. Nobody takes that for `on`."""
    ramp: RampStep | None = None
    """None: nobody has begun it, or it was never learnt."""
    told_unix_ns: int | None = None
    """When the collector last answered; None: it never did."""

    @property
    def on(self) -> bool:
        """Say whether the candidate may be asked."""
        return self.switch is not None and self.switch.state is Switch.ON


def read(path: Path, rollout: str) -> Known:
    """Return what the file keeps of the rollout; nothing, with a warning, where it is unusable."""
    unknown = Known(rollout=rollout)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        version = document.pop("version")
        known = from_document(Known, document)
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


def write(path: Path, known: Known) -> None:
    """Replace the file, whole or not at all; warn where that cannot be."""
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
