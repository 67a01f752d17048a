"""The shipped network: 8-bit weights, run by ONNX Runtime on one core."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evals.errors import EvaluatorError
from evals.evaluators.groundedness.features import Rarity, SentenceReading
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness_model.blend import from_json

LOWER, UPPER, VOCABULARY, BLEND = "lower.onnx", "upper.onnx", "tokenizer.json", "blend.json"
FILES = (LOWER, UPPER, VOCABULARY, BLEND)
_MAX_KEPT = 64
"""Chunks of a context whose states are cached: 16 MB."""

Floats = NDArray[np.float32]


@dataclass(slots=True)
class Context:
    """Passages in chunks, with a cache of the chunks' states."""

    passages: Passages
    chunks: Sequence[Any]  # Any: `Chunk`, whose module needs the extra
    states: dict[int, Floats] = field(default_factory=dict)


class Network:
    """Gives the log-odds that each sentence is unsupported by the passages."""

    def __init__(self, rarity: Rarity, folder: Path | None = None) -> None:
        """Load the weights from a folder, by default the extra's own.

        Raises `EvaluatorError` if the extra or a file is missing.
        """
        try:
            # Optional: the other evaluators do not need these.
            import onnxruntime  # noqa: PLC0415
            from tokenizers import Tokenizer  # noqa: PLC0415

            from draftgate_groundedness_model import FOLDER  # noqa: PLC0415
            from evals.evaluators.groundedness_model import encoding  # noqa: PLC0415
        except ImportError as exc:
            raise EvaluatorError(
                f"groundedness-model: {exc}; run `pip install 'draftgate[groundedness-model]'`"
            ) from exc
        files = {name: _read((folder or FOLDER) / name) for name in FILES}
        self._encoding: Any = encoding  # Any: a module that exists only with the extra
        tokenizer = Tokenizer.from_str(files[VOCABULARY].decode())
        self._encoder: Any = encoding.Encoder(tokenizer, rarity)  # Any: as above
        self._lower = session(onnxruntime, files[LOWER])
        self._upper = session(onnxruntime, files[UPPER])
        self.blend = from_json(json.loads(files[BLEND]))
        digest = hashlib.sha256()
        for name in FILES:
            digest.update(files[name])
        self.hash = digest.hexdigest()[:12]

    def context(self, passages: Passages) -> Context:
        """Cut passages into chunks; the chunks' states are computed when they are needed."""
        return Context(passages, self._encoder.chunks(passages))

    def log_odds(
        self, text: str, readings: Sequence[SentenceReading], context: Context
    ) -> NDArray[np.float64]:
        """Return the log-odds of each sentence being unsupported."""
        found = []
        for part in self._encoder.parts(text, readings, context.passages):
            own = readings[part.first : part.first + part.count]
            sentences = np.zeros((1, part.count, len(part.ids)), dtype=np.float32)
            inside = np.flatnonzero(part.sentence >= 0)
            sentences[0, part.sentence[inside], inside] = 1
            inputs = {
                "states": self._states(part.ids),
                "marks": part.marks[None],
                "sentences": sentences,
                "memory": self._memory(context, own),
            }
            found.append(self._upper.run(None, inputs)[0][0])
        return np.asarray(np.concatenate(found), dtype=np.float64)

    def _memory(self, context: Context, readings: Sequence[SentenceReading]) -> Floats:
        chosen = self._encoding.memory(context.chunks, readings, context.passages)
        return np.concatenate([self._chunk_states(context, at) for at in chosen], axis=1)

    def _chunk_states(self, context: Context, at: int) -> Floats:
        states = context.states.get(at)
        if states is None:
            if len(context.states) >= _MAX_KEPT:
                context.states.clear()
            states = context.states[at] = self._states(context.chunks[at].ids)
        return states

    def _states(self, ids: NDArray[np.int64]) -> Floats:
        return np.asarray(self._lower.run(None, {"ids": ids[None]})[0])


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as exc:
        raise EvaluatorError(
            f"groundedness-model: {file}: {exc.strerror}; wanted the network's weights: install "
            "draftgate again, or train them (packages/groundedness_model)"
        ) from exc


def session(onnxruntime: Any, model: bytes) -> Any:  # Any: an optional package
    """Return an inference session for one part of the network."""
    options = onnxruntime.SessionOptions()
    # One core: `evaluate` runs one process per worker, and the order of sums stays fixed.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
