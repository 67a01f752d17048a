"""The network: MiniLM's lower layers, frozen, and upper layers that attend to the passages."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from evals.evaluators.groundedness_model.word_features import COLUMNS

WIDTH, HEADS, INNER = 384, 12, 1536
LOWER, UPPER = 2, 2
"""Numbers of frozen layers, which are run once per text, and of trained layers."""
_NORM = 1e-12
_LARGE = 10.0


class Layer(nn.Module):
    """A BERT layer that can also attend to the states of another text."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.mixed, self.mixed_norm = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH, eps=_NORM)
        self.inner, self.outer = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.outer_norm = nn.LayerNorm(WIDTH, eps=_NORM)
        self.dropout = dropout

    def forward(self, states: Tensor, memory: Tensor | None, mask: Tensor | None) -> Tensor:
        """Return the next states; `mask` is the attention mask, own states first."""
        seen = states if memory is None else torch.cat([states, memory], dim=1)
        query, key, value = (
            part.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)
            for part in (self.query(states), self.key(seen), self.value(seen))
        )
        found = F.scaled_dot_product_attention(query, key, value, mask)
        mixed = self.mixed(found.transpose(1, 2).flatten(2))
        states = self.mixed_norm(states + self._dropped(mixed))
        outer = self.outer(F.gelu(self.inner(states)))
        result: Tensor = self.outer_norm(states + self._dropped(outer))
        return result

    def _dropped(self, states: Tensor) -> Tensor:
        return F.dropout(states, self.dropout, training=self.training and self.dropout > 0)


class Lower(nn.Module):
    """Maps wordpieces to states: the embeddings and the frozen layers."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, WIDTH)
        self.places = nn.Embedding(512, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=_NORM)
        self.layers = nn.ModuleList(Layer() for _ in range(LOWER))

    def forward(self, ids: Tensor) -> Tensor:
        """Return the states of one text, given as a row of wordpiece ids."""
        states: Tensor = self.norm(self.words(ids) + self.places.weight[: ids.shape[1]])
        for layer in self.layers:
            states = layer(states, None, None)
        return states


class Upper(nn.Module):
    """Maps states to the log-odds that each wordpiece and each sentence is unsupported."""

    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.mean = nn.Buffer(torch.zeros(len(COLUMNS)))
        self.scale = nn.Buffer(torch.ones(len(COLUMNS)))
        self.marks = nn.Linear(len(COLUMNS), WIDTH)
        self.of_passages = nn.Parameter(torch.zeros(WIDTH))
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(UPPER))
        self.piece = nn.Linear(WIDTH, 1)
        self.weight = nn.Linear(WIDTH, 1)
        self.pooled = nn.Linear(2 * WIDTH, 128)
        self.sentence = nn.Linear(128, 1)
        nn.init.normal_(self.marks.weight, std=0.02)
        nn.init.zeros_(self.marks.bias)

    def forward(
        self, states: Tensor, marks: Tensor, sentences: Tensor, memory: Tensor, seen: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the log-odds of wordpieces and of sentences."""
        marks = ((marks - self.mean) * self.scale).clamp(-4, 4)
        states = states + self.marks(marks)
        memory = memory + self.of_passages
        for layer in self.layers:
            states = layer(states, memory, seen)
        weight = self.weight(states).clamp(-_LARGE, _LARGE).exp()
        chosen = sentences @ (states * weight) / (sentences @ weight).clamp(min=1e-6)
        mean = sentences @ states / sentences.sum(-1, keepdim=True).clamp(min=1)
        pooled = F.gelu(self.pooled(torch.cat([chosen, mean], dim=-1)))
        return self.piece(states).squeeze(-1), self.sentence(pooled).squeeze(-1)


def from_minilm(weights: Mapping[str, Tensor]) -> tuple[Lower, Upper]:
    """Return a network with MiniLM's weights; weights that MiniLM lacks are random."""
    lower, upper = Lower(weights["embeddings.word_embeddings.weight"].shape[0]), Upper()
    with torch.no_grad():
        lower.words.weight.copy_(weights["embeddings.word_embeddings.weight"])
        kind = weights["embeddings.token_type_embeddings.weight"][0]
        lower.places.weight.copy_(weights["embeddings.position_embeddings.weight"] + kind)
        _copy(lower.norm, weights, "embeddings.LayerNorm")
        for at, layer in enumerate([*lower.layers, *upper.layers]):
            for own, theirs in _PARTS.items():
                _copy(getattr(layer, own), weights, f"encoder.layer.{at}.{theirs}")
    return lower.eval().requires_grad_(requires_grad=False), upper


_PARTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixed": "attention.output.dense",
    "mixed_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "outer_norm": "output.LayerNorm",
}


def _copy(module: nn.Linear | nn.LayerNorm, weights: Mapping[str, Tensor], name: str) -> None:
    module.weight.copy_(weights[f"{name}.weight"])
    module.bias.copy_(weights[f"{name}.bias"])
