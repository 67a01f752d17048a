"""Configuration files in YAML or TOML."""

import tomllib
from pathlib import Path
from typing import Any

import yaml

from collector.errors import SettingsError


class _UniqueKeyLoader(yaml.SafeLoader):
    """The safe loader, but a key that stands twice in a mapping is an error."""

    def __init__(self, stream: str) -> None:
        """Read a YAML text."""
        super().__init__(stream)
        self._checked = set[int]()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace merge keys (`<<`) by what they stand for, after looking for duplicate keys.

        A merge leaves keys in the node twice if they are overridden, so each node is checked once.
        """
        seen = set()
        for key, _ in node.value if id(node) not in self._checked else ():
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key.value!r} stands twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        self._checked.add(id(node))
        super().flatten_mapping(node)


def parse_yaml(text: str) -> Any:  # Any: what the text holds
    """Return a YAML document; raises `yaml.YAMLError`, also for a key that stands twice."""
    return yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506  # derives from the safe one


def load(path: Path) -> Any:  # Any: what the file holds
    """Return a file's document: TOML by its ending, else YAML; raises `SettingsError`."""
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text) if path.suffix == ".toml" else parse_yaml(text)
    except OSError as exc:
        raise SettingsError(f"{path}: cannot be read: {exc.strerror}") from exc
    except (UnicodeDecodeError, yaml.YAMLError, tomllib.TOMLDecodeError) as exc:
        kind = "TOML" if path.suffix == ".toml" else "YAML"
        raise SettingsError(f"{path}: is not {kind}: {' '.join(str(exc).split())}") from exc
