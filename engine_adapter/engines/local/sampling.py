"""Which token a distribution yields, and which draft tokens a target keeps without being changed.

Rejection sampling: a draft token x, drawn from q, is kept with probability min(1, p(x)/q(x)); the
first that is not is replaced by a token drawn from max(0, p − q), normalised. The text is then
distributed as if every token had been drawn from p, whatever q is.

Source: Y. Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class Draft(NamedTuple):
    """What a step is to verify, (batch, k)."""

    tokens: Tensor
    lengths: Tensor
    """(batch,): how many of the k are proposed; the rest is of no account."""
    laws: Tensor | None = None
    """(batch, k, vocabulary): what each token was drawn from; `None` if each was certain."""
    parents: tuple[int, ...] | None = None
    """Of a tree: the place of the token that each follows, −1 for the text's last; `lengths` are
    then levels. `None`: each follows the one before it."""


class Verdict(NamedTuple):
    """What the target made of a draft."""

    tokens: Tensor
    """(batch, k + 1): the accepted tokens, then the target's own; the rest is of no account."""
    accepted: Tensor
    """(batch,)"""
    laws: Tensor | None = None
    """(batch, k + 1, vocabulary): p at each position; `None` if greedy."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Temperature, then the k most likely, then the smallest set of probability top_p."""

    temperature: float = 0.0
    """0 is greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0 keeps all."""

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always taken."""
        return self.temperature == 0

    def law(self, logits: Tensor) -> Tensor:
        """Return the distribution that tokens are drawn from, in 32 bits."""
        scaled = logits.float() / self.temperature
        if 0 < self.top_k < scaled.shape[-1]:
            least = scaled.topk(self.top_k, dim=-1).values[..., -1:]
            scaled = scaled.masked_fill(scaled < least, -torch.inf)
        law = scaled.softmax(-1)
        if self.top_p < 1:
            ranked, order = law.sort(dim=-1, descending=True)
            beyond = ranked.cumsum(-1) - ranked >= self.top_p  # never the most likely
            law = law.masked_fill(beyond.scatter(-1, order, beyond), 0.0)
            law = law / law.sum(-1, keepdim=True)
        return law

    def draw(self, law: Tensor, noise: Tensor) -> Tensor:
        """Return a token a row, at the quantile `noise`; a law need not be normalised."""
        sums = law.double().cumsum(-1)
        wanted = noise[..., None] * sums[..., -1:]
        # the first whose sum exceeds it: one of probability 0 is never drawn
        return (sums <= wanted).sum(-1).clamp(max=law.shape[-1] - 1)

    def choose(self, logits: Tensor, noise: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return a draft token a row, and the law that it was drawn from."""
        if self.greedy:
            return logits.argmax(-1), None
        law = self.law(logits)
        return self.draw(law, noise), law

    def odds(self, p: Tensor, q: Tensor) -> Tensor:
        """Return the probability with which a draft token is kept; more than 1 is certain."""
        return p / q

    def residual(self, p: Tensor, q: Tensor) -> Tensor:
        """Return what replaces a token that was not kept; not normalised."""
        left = (p - q).clamp(min=0)
        # p = q to the last bit rejects nothing but by rounding
        return torch.where(left.sum(-1, keepdim=True) > 0, left, p)

    def judge(self, logits: Tensor, draft: Draft, noise: Tensor) -> Verdict:
        """Return what is kept of a chain, given the target's logits, (batch, k + 1, vocabulary)."""
        k = draft.tokens.shape[1]
        places = torch.arange(k + 1, device=logits.device)
        proposed = places[:k] < draft.lengths[:, None]
        if self.greedy:
            best = logits.argmax(-1)
            accepted = _leading((best[:, :k] == draft.tokens) & proposed)
            return Verdict(best, accepted)
        p = self.law(logits)
        q = torch.zeros_like(p)
        if draft.laws is None:
            q[:, :k].scatter_(2, draft.tokens[:, :, None], 1.0)
        else:
            q[:, :k] = draft.laws
        q[:, :k] *= proposed[:, :, None]
        at = draft.tokens[:, :, None]
        odds = self.odds(p[:, :k].gather(2, at), q[:, :k].gather(2, at))[:, :, 0]
        accepted = _leading((noise[:, k : 2 * k] < odds) & proposed)
        row = accepted[:, None, None].expand(-1, 1, p.shape[2])
        own = self.draw(self.residual(p.gather(1, row), q.gather(1, row))[:, 0], noise[:, 2 * k])
        tokens = torch.cat([draft.tokens, own[:, None]], 1)
        return Verdict(torch.where(places == accepted[:, None], own[:, None], tokens), accepted, p)


def _leading(kept: Tensor) -> Tensor:
    """Return how many are kept before the first that is not, (batch,)."""
    return kept.long().cumprod(1).sum(1)
