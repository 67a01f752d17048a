"""A GGUF file's quantised matrices as 16-bit floats: the same model, at another cost of a step.

A quantised model's step over several tokens is bound by arithmetic on a CPU, so that verifying
drafts costs nearly as much as decoding them. In 16 bits reading the weights is the larger part, as
it is on a GPU, and a step over several tokens costs little more than a step over one.
"""

import tempfile
from pathlib import Path

import gguf

_WRITTEN_ANEW = ("GGUF.", "general.architecture", "general.file_type")


def write(source: Path, target: Path) -> None:
    """Write the source's model to the target, which appears once it is whole.

    Raises `OSError` if it cannot be written, `ValueError` if the source is no whole GGUF file.
    """
    reader = gguf.GGUFReader(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        part = Path(folder) / target.name
        writer = gguf.GGUFWriter(part, str(reader.fields["general.architecture"].contents()))
        writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
        for field in reader.fields.values():
            if not field.name.startswith(_WRITTEN_ANEW):
                _add_field(writer, field)
        for tensor in reader.tensors:
            _add_tensor(writer, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        part.replace(target)


def _add_field(writer: gguf.GGUFWriter, field: gguf.ReaderField) -> None:
    if (kind := field.types[0]) is gguf.GGUFValueType.ARRAY:
        writer.add_array(field.name, field.contents())
    else:
        writer.add_key_value(field.name, field.contents(), kind)


def _add_tensor(writer: gguf.GGUFWriter, tensor: gguf.ReaderTensor) -> None:
    exact = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    writer.add_tensor(tensor.name, exact.astype("float16") if exact.ndim > 1 else exact)
