"""On-disk cache of a judge's replies."""

import json
import os
import tempfile
from pathlib import Path

Entry = dict[str, str | int | None]


class Cache:
    """A folder of replies by digest; several processes may use it at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, digest: str) -> Entry | None:
        """Return the cached reply; `None` if there is none or it cannot be read."""
        try:
            entry = json.loads(self._path(digest).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return entry if isinstance(entry, dict) else None

    def put(self, digest: str, entry: Entry) -> None:
        """Store a reply atomically."""
        path = self._path(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(entry, file)
        Path(name).replace(path)

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / f"{digest}.json"
