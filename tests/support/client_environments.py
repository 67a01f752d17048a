"""Environments of the packages that the tests use as clients, or take metrics from.

They patch the same library and pin its neighbours, so each has one of its own under
`.venv-clients/`, made once and made anew where its pins change. Run this file to make all but the
large one, or with names to make those.
"""

import hashlib
import shutil
import sys
import sysconfig
from pathlib import Path

from commands import run
from engine_environments import make

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "tests" / "collector" / "dialects"
OPENAI_JS = ROOT / "tests" / "engine_adapter" / "router" / "js"
AXE = ROOT / "tests" / "dashboard" / "axe"
ENVIRONMENTS = ROOT / ".venv-clients"
METRICS = ROOT / "tests" / "evals" / "adapters" / "pins"
PYTHON = ("langfuse", "litellm", "openinference", "openllmetry", "traceai", "deepeval", "phoenix")


def python_of(name: str) -> Path:
    """Return the interpreter that has the instrumentation, or the metrics."""
    pins, folder = _pins(name), ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not _ready(folder, pins):
        shutil.rmtree(folder, ignore_errors=True)
        make(folder, "--no-deps", "-r", str(pins))
        if pins.parent == METRICS:
            _add_draftgate(python)
        _mark(folder, pins)
    return python


def ready_python_of(name: str) -> Path | None:
    """Return the interpreter that has the metrics, if it was made."""
    folder = ENVIRONMENTS / name
    return folder / "bin" / "python" if _ready(folder, _pins(name)) else None


def javascript() -> Path:
    """Return the folder with the JavaScript client and its packages."""
    folder = _packages(SOURCES / "js", "js")
    shutil.copy(SOURCES / "js" / "client.mjs", folder)
    return folder


def openai_javascript() -> Path:
    """Return the folder with the JavaScript program that uses OpenAI's SDK."""
    folder = _packages(OPENAI_JS, "openai-js")
    shutil.copy(OPENAI_JS / "client.mjs", folder)
    return folder


def axe() -> Path:
    """Return axe-core's script, which finds what keeps people from using a page."""
    return _packages(AXE, "axe") / "node_modules" / "axe-core" / "axe.min.js"


def _pins(name: str) -> Path:
    folder = SOURCES / "clients" if (SOURCES / "clients" / f"{name}.txt").exists() else METRICS
    return folder / f"{name}.txt"


def _add_draftgate(python: Path) -> None:
    """Let the interpreter import Draftgate and its dependencies, after its own packages."""
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    (site / "draftgate.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")


def _packages(source: Path, name: str) -> Path:
    """Return a folder in which npm has installed a lock file's packages."""
    lock, folder = source / "package-lock.json", ENVIRONMENTS / name
    if not _ready(folder, lock):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(source / file, folder)
        run("npm", "ci", "--no-audit", "--no-fund", cwd=folder)
        _mark(folder, lock)
    return folder


def _ready(folder: Path, pins: Path) -> bool:
    mark = folder / ".pins"
    return mark.exists() and mark.read_text() == _digest(pins)


def _mark(folder: Path, pins: Path) -> None:
    (folder / ".pins").write_text(_digest(pins))


def _digest(pins: Path) -> str:
    return hashlib.sha256(pins.read_bytes()).hexdigest()


if __name__ == "__main__":
    for client in sys.argv[1:] or PYTHON:
        python_of(client)
    if not sys.argv[1:] and shutil.which("npm") is not None:
        javascript()
        openai_javascript()
        axe()
