"""The base install: the distributions that `pip install draftgate` brings, without extras."""

import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent.parent


def distributions() -> list[Distribution]:
    """Return the distributions that the base needs, as this environment has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting, found = list(project["dependencies"]), dict[str, Distribution]()
    while waiting:
        wanted = Requirement(waiting.pop())
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(wanted.name)
        if name not in found:
            found[name] = distribution(name)
            waiting += found[name].requires or ()
    return list(found.values())


def link(folder: Path) -> int:
    """Make a folder of packages with these distributions alone; return their size in bytes."""
    size = 0
    for one in distributions():
        for path in one.files or ():
            there = Path(str(one.locate_file(path)))
            if ".." in path.parts or not there.is_file():
                continue
            size += there.stat().st_size
            if there.suffix != ".pyc":
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).symlink_to(there)
    return size
