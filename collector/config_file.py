"""Configuration files in YAML or TOML."""

import tomllib
from pathlib import Path
from typing import Any

import yaml

from collector.errors import SettingsError


def load(path: Path) -> Any:  # Any: what the file holds
    """Return a file's document: TOML by its ending, else YAML; raises `SettingsError`."""
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except OSError as exc:
        raise SettingsError(f"{path}: cannot be read: {exc.strerror}") from exc
    except (UnicodeDecodeError, yaml.YAMLError, tomllib.TOMLDecodeError) as exc:
        kind = "TOML" if path.suffix == ".toml" else "YAML"
        raise SettingsError(f"{path}: is not {kind}: {' '.join(str(exc).split())}") from exc
