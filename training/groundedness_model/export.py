"""Export the network to ONNX with 8-bit weights."""

import tempfile
import warnings
from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn

from training.groundedness_model.network import WIDTH, Lower, Upper

WHOLE = "whole"
"""The part of the cross-fit that is trained on every answer."""
_OPSET = 17


class _Rows(nn.Module):
    """An embedding with 8-bit values and one scale per row."""

    def __init__(self, words: nn.Embedding) -> None:
        super().__init__()
        scale = words.weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        self.rows = nn.Buffer((words.weight / scale).round().to(torch.int8))
        self.scale = nn.Buffer(scale)

    def forward(self, ids: Tensor) -> Tensor:
        return torch.as_tensor(self.rows[ids].float() * self.scale[ids])


class _Sentences(nn.Module):
    """The upper layers without the outputs that only training needs."""

    def __init__(self, upper: Upper) -> None:
        super().__init__()
        self.upper = upper

    def forward(self, states: Tensor, marks: Tensor, sentences: Tensor, memory: Tensor) -> Tensor:
        found: Tensor = self.upper(states, marks, sentences, memory, None)[1]
        return found


def export_lower(lower: Lower, file: Path) -> None:
    """Write the lower layers."""
    words, lower.words = lower.words, _Rows(lower.words)  # type: ignore[assignment]
    try:
        _write(lower.eval(), (torch.arange(1, 12)[None],), {"ids": {1: "t"}}, "states", file)
    finally:
        lower.words = words


def export_upper(upper: Upper, file: Path) -> None:
    """Write the upper layers."""
    axes = {
        "states": {1: "t"},
        "marks": {1: "t"},
        "sentences": {1: "n", 2: "t"},
        "memory": {1: "s"},
    }
    states, memory = torch.zeros(1, 11, WIDTH), torch.zeros(1, 13, WIDTH)
    marks = torch.zeros(1, 11, upper.marks.in_features)
    example = (states, marks, torch.ones(1, 2, 11), memory)
    _write(_Sentences(upper).eval(), example, axes, "odds", file)


def _write(
    module: nn.Module,
    example: tuple[Tensor, ...],
    axes: dict[str, dict[int, str]],
    output: str,
    file: Path,
) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # This exporter is deprecated, but its successor needs another package.
        warnings.simplefilter("ignore")
        plain = Path(folder) / "plain.onnx"
        torch.onnx.export(
            module,
            example,
            str(plain),
            input_names=list(axes),
            output_names=[output],
            dynamic_axes={**axes, output: {1: "n"}},
            opset_version=_OPSET,
            dynamo=False,
        )
        # Seven bits: without VNNI the sum of two 8-bit products overflows.
        quantize_dynamic(
            plain,
            file,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
