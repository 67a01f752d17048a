"""Draftgate's wheel, without torch, on the other Pythons of this machine.

Each has an environment in the user's cache, with the newest packages, or those of a file of pins
named by its version; the wheel in it is made anew if the checkout has changed. Run this file to
make them.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from commands import run

ROOT = Path(__file__).parents[2]
PINS = Path(__file__).parent / "python_environments"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "draftgate" / "pythons"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def interpreter_of(version: str) -> Path | None:
    """Return a Python of the version, on the PATH or from pyenv; `None` if there is none."""
    folders = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*"))
    named = [str(folder / "bin" / "python") for folder in reversed(folders)]
    for name in (f"python{version}", *named):
        found = shutil.which(name)
        if found is not None and _version(found) == version:
            return Path(found)
    return None


def others() -> dict[str, Path]:
    """Return the interpreters of every version but this one's."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {version: interpreter_of(version) for version in VERSIONS if version != own}
    return {version: path for version, path in found.items() if path is not None}


def with_draftgate(version: str, interpreter: Path) -> Path:
    """Return a Python of the version with the checkout's wheel and its dependencies installed."""
    pins = PINS / f"{version}.txt"
    sources = _digest(_files())
    wanted = (ROOT / "pyproject.toml").read_bytes() + (pins.read_bytes() if pins.exists() else b"")
    folder = CACHE / f"{version}-{hashlib.sha256(wanted).hexdigest()[:12]}"
    python, ready = folder / "bin" / "python", folder / ".ready"
    if ready.exists() and ready.read_text() == sources:
        return python
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        run(str(interpreter), "-m", "venv", str(folder))
    pip = (str(python), "-m", "pip", "install", "--quiet")
    with tempfile.TemporaryDirectory() as source:
        _copy(Path(source))
        if not ready.exists():
            run(*pip, source, *(("-r", str(pins)) if pins.exists() else ()))
        else:
            run(*pip, "--no-deps", "--force-reinstall", source)
    ready.write_text(sources)
    return python


def _files() -> list[str]:
    """Return the names of the files that git knows: a build leaves its extension beside them."""
    listed = subprocess.check_output(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True
    ).splitlines()
    return [name for name in listed if (ROOT / name).is_file()]


def _digest(names: list[str]) -> str:
    found = hashlib.sha256()
    for name in names:
        found.update(f"{name}\0".encode() + hashlib.sha256((ROOT / name).read_bytes()).digest())
    return found.hexdigest()


def _copy(target: Path) -> None:
    for name in _files():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)


def _version(python: str) -> str | None:
    """Return what an interpreter says it is; a shim of pyenv may say nothing."""
    words = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


if __name__ == "__main__":
    for found, where in others().items():
        sys.stdout.write(f"{with_draftgate(found, where)}\n")
