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
    """Install the engine with the pins of the tests."""
    overrides = PINS / f"{engine}_overrides.txt"
    make(
        folder_of(engine),
        "-r",
        str(PINS / f"{engine}.txt"),
        overrides=overrides if overrides.exists() else None,
    )


def make(folder: Path, *wanted: str, overrides: Path | None = None) -> Path:
    """Make an environment once, by uv, whose overrides leave out what pip cannot.

    `wanted` are uv's arguments for the packages. Returns the environment's interpreter.
    """
    python = folder / "bin" / "python"
    if (folder / ".ready").exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", str(folder))
    run(str(python), "-m", "pip", "install", "--quiet", "uv")
    command = [str(folder / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(python)]
    for links in os.environ.get("PIP_FIND_LINKS", "").split():
        command += ["--find-links", links]
    command += [] if overrides is None else ["--overrides", str(overrides)]
    run(*command, *wanted)
    (folder / ".ready").touch()
    return python


if __name__ == "__main__":
    for engine in ("vllm", "llamacpp_older"):
        install(engine)
