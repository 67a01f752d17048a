"""Environments of the instrumentations that the tests use as clients.

They patch the same library and pin its neighbours, so each has one of its own under
`.venv-clients/`, made once and made anew where its pins change. Run this file to make all.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "tests" / "collector" / "dialects"
AXE = ROOT / "tests" / "dashboard" / "axe"
ENVIRONMENTS = ROOT / ".venv-clients"
PYTHON = ("litellm", "openinference", "openllmetry", "traceai")


def python_of(name: str) -> Path:
    """Return the interpreter that has the instrumentation."""
    pins = SOURCES / "clients" / f"{name}.txt"
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not _ready(folder, pins):
        shutil.rmtree(folder, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(pins))
        _mark(folder, pins)
    return python


def javascript() -> Path:
    """Return the folder with the JavaScript client and its packages."""
    folder = _packages(SOURCES / "js", "js")
    shutil.copy(SOURCES / "js" / "client.mjs", folder)
    return folder


def axe() -> Path:
    """Return axe-core's script, which finds what keeps people from using a page."""
    return _packages(AXE, "axe") / "node_modules" / "axe-core" / "axe.min.js"


def _packages(source: Path, name: str) -> Path:
    """Return a folder in which npm has installed what a lock file pins."""
    lock, folder = source / "package-lock.json", ENVIRONMENTS / name
    if not _ready(folder, lock):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(source / file, folder)
        _run("npm", "ci", "--no-audit", "--no-fund", cwd=folder)
        _mark(folder, lock)
    return folder


def _ready(folder: Path, pins: Path) -> bool:
    mark = folder / ".pins"
    return mark.exists() and mark.read_text() == _digest(pins)


def _mark(folder: Path, pins: Path) -> None:
    (folder / ".pins").write_text(_digest(pins))


def _digest(pins: Path) -> str:
    return hashlib.sha256(pins.read_bytes()).hexdigest()


def _run(*command: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    for client in PYTHON:
        python_of(client)
    if shutil.which("npm") is not None:
        javascript()
        axe()
