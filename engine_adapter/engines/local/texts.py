"""The token ids of a batch's texts, on the device."""

from collections.abc import Sequence

import torch
from torch import Tensor

_WINDOW = 128
"""The number of cache slots read is a multiple of this: few graphs, little wasted reading."""


class TokenTexts:
    """Token ids, (batch, capacity); those after a text's length are padding.

    Every tensor is allocated once and written in place, as captured CUDA graphs require.
    """

    def __init__(self, batch: int, capacity: int, k_max: int, device: torch.device) -> None:
        self.tokens = torch.zeros((batch, capacity), dtype=torch.long, device=device)
        self.lengths = torch.ones(batch, dtype=torch.long, device=device)
        self.limits = torch.ones(batch, dtype=torch.long, device=device)
        self.growing = torch.zeros(batch, dtype=torch.long, device=device)
        """1 for an unfinished text, else 0."""
        self.noise = torch.zeros((batch, 2 * k_max + 1), dtype=torch.double, device=device)
        """Uniform on [0, 1): for k draft tokens, k acceptances, and the target's own token."""
        self.window = capacity
        """Number of cache slots that a pass reads now."""
        self.places = torch.arange(capacity, device=device)
        self._longest = 1

    @property
    def batch(self) -> int:
        """The largest number of texts."""
        return self.tokens.shape[0]

    @property
    def capacity(self) -> int:
        """The largest number of tokens of a text."""
        return self.tokens.shape[1]

    @property
    def last(self) -> Tensor:
        """The last token of each text, (batch, 1)."""
        return self.tokens.gather(1, self.lengths[:, None] - 1)

    def begin(self, prompts: Sequence[Sequence[int]], limits: Sequence[int]) -> Tensor:
        """Load prompts, each with its limit; return all but the last column of their tokens.

        Shorter prompts are padded with zeros to the longest. Unused rows are finished texts of one
        token.
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
        """Set the window to the slots that a step of k draft tokens needs."""
        needed = self._longest + k + 1
        self.window = min(-(-needed // _WINDOW) * _WINDOW, self.capacity)

    def extend(self, tokens: Tensor, counts: Tensor) -> None:
        """Append the first `counts` of `tokens`, (batch, n), to unfinished texts."""
        places = self.lengths[:, None] + self.places[: tokens.shape[1]]
        self.tokens.scatter_(1, places, tokens)
        self.lengths += counts * self.growing

    def grew(self, tokens: int) -> None:
        """Add `tokens` to the bound on the longest text."""
        self._longest += tokens

    def stop(self, growing: Sequence[bool]) -> None:
        """Set which texts are still unfinished."""
        self._write(self.growing, [int(one) for one in growing])

    @staticmethod
    def _write(tensor: Tensor, values: list[int]) -> None:
        tensor.copy_(torch.tensor(values, dtype=tensor.dtype))


def among(tokens: Tensor, few: Tensor) -> Tensor:
    """Return which tokens are in `few`; `torch.isin` may sort, which a graph cannot capture."""
    return (tokens[..., None] == few).any(-1)
