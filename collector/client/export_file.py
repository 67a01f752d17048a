"""Atomic export of a rollout's generations to a file."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from collector.client.client import Client
from collector.contract import Content
from collector.contract.fields import NAMES, SPEC_PREFIX
from collector.errors import ExportError

Progress = Callable[[int], None]
"""Called with the number of generations written so far."""

_SPECULATION = tuple(name for name in NAMES if name.startswith(SPEC_PREFIX))
_FIELDS = tuple(name for name in NAMES if not name.startswith(SPEC_PREFIX))
_CONTENT = tuple(part.name for part in fields(Content))


def write(
    client: Client,
    rollout: str,
    path: Path,
    *,
    content: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> int:
    """Write the rollout's generations with their scores, and return how many.

    The file is Parquet or JSON lines, by its suffix. It appears when it is complete; an existing
    one is kept until then. Raises `ExportError` if it cannot be written, or exists and `force` is
    false; and `ClientError`.
    """
    writer = _WRITERS.get(path.suffix)
    if writer is None:
        raise ExportError(f"{path}: is no file of a known kind; wanted .parquet or .jsonl")
    if path.exists() and not force:
        raise ExportError(f"{path}: exists; name another file, or replace it with --force")
    with (
        client.generation_batches(rollout, content=content, scores=True) as reader,
        _atomic_file(path) as unfinished,
    ):
        return writer(reader, unfinished, progress or (lambda _: None))


@contextmanager
def _atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside `path` that replaces it on success and is deleted on error."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
    except OSError as exc:
        raise ExportError(f"{path}: cannot be written ({exc.strerror}); check the folder") from exc
    unfinished = Path(name)
    try:
        yield unfinished
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        unfinished.chmod(0o666 & ~_umask())
        unfinished.replace(path)
    except OSError as exc:
        raise ExportError(f"{path}: cannot be written ({exc.strerror or exc})") from exc
    finally:
        unfinished.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write_parquet(reader: pa.RecordBatchReader, path: Path, progress: Progress) -> int:
    written = 0
    with parquet.ParquetWriter(path, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            written += batch.num_rows
            progress(written)
    return written


def _write_jsonl(reader: pa.RecordBatchReader, path: Path, progress: Progress) -> int:
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for batch in reader:
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                file.write(json.dumps(_document(row), ensure_ascii=False, allow_nan=False) + "\n")
            written += batch.num_rows
            progress(written)
    return written


def _document(row: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON values
    """Return the generation as the API's JSON, plus its scores."""
    speculation = {name.removeprefix(SPEC_PREFIX): row[name] for name in _SPECULATION}
    content = {name: row[name] for name in _CONTENT if name in row}
    return {
        **{name: row[name] for name in _FIELDS},
        "speculation": _unless_empty(speculation),
        "content": _unless_empty(content),
        "scores": row["scores"],
    }


def _unless_empty(part: dict[str, Any]) -> dict[str, Any] | None:  # Any: JSON values
    return part if any(value is not None for value in part.values()) else None


_WRITERS: Mapping[str, Callable[[pa.RecordBatchReader, Path, Progress], int]] = {
    ".parquet": _write_parquet,
    ".jsonl": _write_jsonl,
}
