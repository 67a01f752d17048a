"""Environments of the engines that the tests start, each in a virtual environment of its own.

They weigh gigabytes and pin their own torch, so they stand in the user's cache, shared by every
checkout, made once and made anew where their pins change. Run this file to make them.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from commands import run

PINS = Path(__file__).parent / "engine_environments"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "draftgate" / "engines"


def folder_of(engine: str) -> Path:
    """Return the folder of the engine's environment, whether or not it exists."""
    files = sorted(PINS.glob(f"{engine}*.txt"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    return CACHE / f"{engine}-{digest[:12]}"


def python_of(engine: str) -> Path | None:
    """Return the interpreter that has the engine; `None` if it is not installed."""
    folder = folder_of(engine)
    return folder / "bin" / "python" if (folder / ".ready").exists() else None


def install(engine: str) -> None:
    """Install the engine with uv, whose overrides leave out what pip cannot."""
    folder = folder_of(engine)
    if python_of(engine) is not None:
        return
    shutil.rmtree(folder, ignore_errors=True)
    python = str(folder / "bin" / "python")
    run(sys.executable, "-m", "venv", str(folder))
    run(python, "-m", "pip", "install", "--quiet", "uv")
    command = [str(folder / "bin" / "uv"), "pip", "install", "--quiet", "--python", python]
    for links in os.environ.get("PIP_FIND_LINKS", "").split():
        command += ["--find-links", links]
    overrides = PINS / f"{engine}_overrides.txt"
    command += ["--overrides", str(overrides)] if overrides.exists() else []
    run(*command, "-r", str(PINS / f"{engine}.txt"))
    (folder / ".ready").touch()


if __name__ == "__main__":
    install("vllm")
