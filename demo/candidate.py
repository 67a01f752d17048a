"""One release that the demo judges."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One release under test."""

    name: str
    claim: str
    """Its distinguishing property: a sentence without its subject and its full stop."""
    rollout: Mapping[str, Any]  # Any: YAML
    """The rollout file's content, without its name and its collector."""

    @property
    def rollout_name(self) -> str:
        """The name under which its generations are stored."""
        return f"demo-{self.name}"

    def write(self, folder: Path, collector_url: str) -> Path:
        """Write the rollout file into the folder and return its path."""
        path = folder / f"{self.name}.yaml"
        document = {
            "rollout": self.rollout_name,
            **self.rollout,
            "collector": {"url": collector_url},
        }
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path
