"""Sample tokens, and verify draft tokens without changing the target's distribution.

Rejection sampling: a draft token x, drawn from q, is kept with probability min(1, p(x)/q(x)); the
first rejected one is replaced by a token drawn from max(0, p − q), normalised. The text is then
distributed as if every token had been drawn from p, whatever q is.

Source: Y. Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class Draft(NamedTuple):
    """The draft tokens of a step, (batch, k)."""

    tokens: Tensor
    lengths: Tensor
    """(batch,): number of the k tokens that are proposed; the rest is padding."""
    distributions: Tensor | None = None
    """(batch, k, vocabulary): the distribution that each token was drawn from; `None` if they are
    deterministic."""
    parents: tuple[int, ...] | None = None
    """For a tree: the index of each token's parent, −1 for the text's last token; `lengths` then
    counts levels. `None`: a chain, each token follows the one before it."""


class VerifyResult(NamedTuple):
    """The target's verification of a draft."""

    tokens: Tensor
    """(batch, k + 1): the accepted tokens, then the target's own token; the rest is padding."""
    accepted: Tensor
    """(batch,): the number of accepted draft tokens."""
    distributions: Tensor | None = None
    """(batch, k + 1, vocabulary): p at each position; `None` if greedy."""


@dataclass(frozen=True, slots=True)
class SamplerChain:
    """Temperature, then top-k, then top-p (the smallest set with at least that probability)."""

    temperature: float = 0.0
    """0 is greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0 keeps all."""

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always chosen."""
        return self.temperature == 0

    def distribution(self, logits: Tensor) -> Tensor:
        """Return the distribution that tokens are drawn from, as float32."""
        scaled = logits.float() / self.temperature
        if 0 < self.top_k < scaled.shape[-1]:
            least = scaled.topk(self.top_k, dim=-1).values[..., -1:]
            scaled = scaled.masked_fill(scaled < least, -torch.inf)
        distribution = scaled.softmax(-1)
        if self.top_p < 1:
            ranked, order = distribution.sort(dim=-1, descending=True)
            beyond = ranked.cumsum(-1) - ranked >= self.top_p  # never true for the most likely
            distribution = distribution.masked_fill(beyond.scatter(-1, order, beyond), 0.0)
            distribution = distribution / distribution.sum(-1, keepdim=True)
        return distribution

    def draw(self, distribution: Tensor, noise: Tensor) -> Tensor:
        """Return a token per row at the quantile `noise`; the distribution may be unnormalised."""
        sums = distribution.double().cumsum(-1)
        wanted = noise[..., None] * sums[..., -1:]
        # the first token whose sum exceeds it; a token of probability 0 is never drawn
        return (sums <= wanted).sum(-1).clamp(max=distribution.shape[-1] - 1)

    def choose(self, logits: Tensor, noise: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return a draft token per row, and the distribution that it was drawn from.

        The distribution is `None` if greedy.
        """
        if self.greedy:
            return logits.argmax(-1), None
        distribution = self.distribution(logits)
        return self.draw(distribution, noise), distribution

    def odds(self, p: Tensor, q: Tensor) -> Tensor:
        """Return the probability of accepting a draft token; above 1 means always."""
        return p / q

    def residual(self, p: Tensor, q: Tensor) -> Tensor:
        """Return the distribution that replaces a rejected token, not normalised."""
        left = (p - q).clamp(min=0)
        # if p equals q exactly, only rounding can reject; fall back to p
        return torch.where(left.sum(-1, keepdim=True) > 0, left, p)

    def verify(self, logits: Tensor, draft: Draft, noise: Tensor) -> VerifyResult:
        """Verify a chain by the target's logits, (batch, k + 1, vocabulary)."""
        k = draft.tokens.shape[1]
        places = torch.arange(k + 1, device=logits.device)
        proposed = places[:k] < draft.lengths[:, None]
        if self.greedy:
            best = logits.argmax(-1)
            accepted = _leading((best[:, :k] == draft.tokens) & proposed)
            return VerifyResult(best, accepted)
        p = self.distribution(logits)
        q = torch.zeros_like(p)
        if draft.distributions is None:
            q[:, :k].scatter_(2, draft.tokens[:, :, None], 1.0)
        else:
            q[:, :k] = draft.distributions
        q[:, :k] *= proposed[:, :, None]
        at = draft.tokens[:, :, None]
        odds = self.odds(p[:, :k].gather(2, at), q[:, :k].gather(2, at))[:, :, 0]
        accepted = _leading((noise[:, k : 2 * k] < odds) & proposed)
        row = accepted[:, None, None].expand(-1, 1, p.shape[2])
        own = self.draw(self.residual(p.gather(1, row), q.gather(1, row))[:, 0], noise[:, 2 * k])
        tokens = torch.cat([draft.tokens, own[:, None]], 1)
        return VerifyResult(
            torch.where(places == accepted[:, None], own[:, None], tokens), accepted, p
        )


def _leading(kept: Tensor) -> Tensor:
    """Return the number of leading true values per row, (batch,)."""
    return kept.long().cumprod(1).sum(1)
