"""A quantised GGUF file's weights in 16 bits."""

from pathlib import Path

import gguf
import gguf_model
import numpy as np
import pytest

from demo.real import float16
from demo.real.model import ModelFetchError, in_16_bits

MODEL = Path(__file__).parents[2] / "demo" / "models" / "target"


@pytest.fixture
def quantised(tmp_path: Path) -> Path:
    """Return a model whose matrices are in 8 bits."""
    gguf_model.write(MODEL, tmp_path / "q8.gguf", quantised=True)
    return tmp_path / "q8.gguf"


def test_weights_and_metadata_stay(quantised: Path, tmp_path: Path) -> None:
    """Each matrix has the weights that the quantised one stands for; all else is as it was."""
    float16.write(quantised, tmp_path / "out" / "f16.gguf")
    before, after = gguf.GGUFReader(quantised), gguf.GGUFReader(tmp_path / "out" / "f16.gguf")
    assert [t.name for t in after.tensors] == [t.name for t in before.tensors]
    for old, new in zip(before.tensors, after.tensors, strict=True):
        assert list(new.shape) == list(old.shape)
        wanted = gguf.GGMLQuantizationType.F16 if len(old.shape) > 1 else old.tensor_type
        assert new.tensor_type == wanted
        exact = gguf.quants.dequantize(old.data, old.tensor_type)
        np.testing.assert_array_equal(new.data, exact.astype(new.data.dtype))
    changed = {"general.file_type", "GGUF.kv_count"}
    assert {
        name: field.contents() for name, field in after.fields.items() if name not in changed
    } == {name: field.contents() for name, field in before.fields.items() if name not in changed}
    assert after.fields["general.file_type"].contents() == gguf.LlamaFileType.MOSTLY_F16


def test_it_is_written_once(
    quantised: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time the kept file is returned as it is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kept = in_16_bits(quantised)
    written = kept.stat().st_mtime_ns
    assert (in_16_bits(quantised), kept.stat().st_mtime_ns) == (kept, written)
    assert list(kept.parent.iterdir()) == [kept]


@pytest.mark.parametrize("length", [0, 100, 100_000])
def test_a_truncated_file(
    quantised: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """A file cut short is named, and nothing is kept of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    quantised.write_bytes(quantised.read_bytes()[:length])
    with pytest.raises(ModelFetchError, match=r"q8\.gguf could not be written"):
        in_16_bits(quantised)
    assert not list((tmp_path / "cache").rglob("*.gguf"))
