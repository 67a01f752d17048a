"""What tests of the engine adapter share: a collector, and the demo's pair for llama.cpp."""

from collections.abc import Iterator
from pathlib import Path

import gguf_model
import pytest
from twenty_prompts import MODELS

from demo import collector_process


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Start a collector with a database of its own; yield its address."""
    with collector_process.running(tmp_path / "d.db", tmp_path / "log") as address:
        yield address


@pytest.fixture(scope="session")
def gguf_pair(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the demo's target and draft as GGUF files, and the target quantised."""
    folder = tmp_path_factory.mktemp("gguf")
    files = {name: folder / f"{name}.gguf" for name in ("target", "draft", "target-q8")}
    for name, file in files.items():
        model = MODELS / name.removesuffix("-q8")
        gguf_model.write(model, file, quantised=name.endswith("-q8"))
    return files
