"""A class name of the shipped packages stands for one class."""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = "collector dashboard demo draftgate engine_adapter evals listening packages"
CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)


def test_no_class_name_stands_for_two_classes() -> None:
    """A reader who finds a name has found its one meaning."""
    places = defaultdict[str, list[str]](list)
    for file in (file for package in PACKAGES.split() for file in (ROOT / package).rglob("*.py")):
        for name in CLASS.findall(file.read_text()):
            places[name].append(str(file.relative_to(ROOT)))
    assert len(places) > 900
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
