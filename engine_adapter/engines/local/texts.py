"""The texts of a batch while they grow: token ids on the device, with room to their end."""

from collections.abc import Sequence

import torch
from torch import Tensor

_WINDOW = 128
"""Cache slots read are a multiple of this: few graphs, and little read in vain."""


class Texts:
    """Token ids, (batch, capacity); what lies behind a text's length is of no account.

    Every tensor is made once and written in place, so that a captured graph finds it again.
    """

    def __init__(self, batch: int, capacity: int, k_max: int, device: torch.device) -> None:
        self.tokens = torch.zeros((batch, capacity), dtype=torch.long, device=device)
        self.lengths = torch.ones(batch, dtype=torch.long, device=device)
        self.limits = torch.ones(batch, dtype=torch.long, device=device)
        self.growing = torch.zeros(batch, dtype=torch.long, device=device)
        """1 where a text still grows, else 0."""
        self.noise = torch.zeros((batch, 2 * k_max + 1), dtype=torch.double, device=device)
        """Uniform on [0, 1): for k draft tokens, k acceptances, and the target's own token."""
        self.window = capacity
        """Cache slots that a pass now reads."""
        self.places = torch.arange(capacity, device=device)
        self._longest = 1

    @property
    def batch(self) -> int:
        """How many texts there is room for."""
        return self.tokens.shape[0]

    @property
    def capacity(self) -> int:
        """How many tokens a text has room for."""
        return self.tokens.shape[1]

    @property
    def last(self) -> Tensor:
        """The last token of each text, (batch, 1)."""
        return self.tokens.gather(1, self.lengths[:, None] - 1)

    def begin(self, prompts: Sequence[Sequence[int]], limits: Sequence[int]) -> Tensor:
        """Hold these prompts, each to grow to its limit; return all their tokens but the last.

        Shorter prompts are followed by zeros up to the longest. Places without a prompt are texts
        of one token that do not grow.
        """
        idle = self.batch - len(prompts)
        rows = [*prompts, *[(0,)] * idle]
        self._longest = max(map(len, rows))
        filled = torch.zeros((self.batch, self._longest), dtype=torch.long)
        for i, row in enumerate(rows):
            filled[i, : len(row)] = torch.tensor(row)
        self.tokens[:, : self._longest] = filled.to(self.tokens.device)
        self._write(self.lengths, [len(row) for row in rows])
        self._write(self.limits, [*limits, *[1] * idle])
        self._write(self.growing, [1] * len(prompts) + [0] * idle)
        self.widen(0)
        return self.tokens[:, : self._longest - 1]

    def widen(self, k: int) -> None:
        """Have passes read as many slots as a step of k draft tokens needs."""
        needed = self._longest + k + 1
        self.window = min(-(-needed // _WINDOW) * _WINDOW, self.capacity)

    def extend(self, tokens: Tensor, counts: Tensor) -> None:
        """Append the first `counts` of these tokens, (batch, n), to texts that still grow."""
        places = self.lengths[:, None] + self.places[: tokens.shape[1]]
        self.tokens.scatter_(1, places, tokens)
        self.lengths += counts * self.growing

    def grew(self, tokens: int) -> None:
        """Note by how many tokens the longest may have grown."""
        self._longest += tokens

    def stop(self, growing: Sequence[bool]) -> None:
        """Let only these texts grow from here on."""
        self._write(self.growing, [int(one) for one in growing])

    @staticmethod
    def _write(tensor: Tensor, values: list[int]) -> None:
        tensor.copy_(torch.tensor(values, dtype=tensor.dtype))


def among(tokens: Tensor, few: Tensor) -> Tensor:
    """Return which tokens are one of a few; `torch.isin` may sort, which no graph can capture."""
    return (tokens[..., None] == few).any(-1)
