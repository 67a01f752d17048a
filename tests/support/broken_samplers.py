"""Samplers of the draft–verify loop with a planted bug each."""

from torch import Tensor

from engine_adapter.engines.local.sampling import SamplerChain


class ResidualIsP(SamplerChain):
    """Replaces a rejected token from p."""

    def residual(self, p: Tensor, q: Tensor) -> Tensor:
        del q
        return p


class ArgmaxDrafts(SamplerChain):
    """Drafts the most likely token, and judges as if it had been drawn."""

    def choose(self, logits: Tensor, noise: Tensor) -> tuple[Tensor, Tensor | None]:
        del noise
        return logits.argmax(-1), self.distribution(logits)


class Generous(SamplerChain):
    """Accepts a fifth more."""

    def odds(self, p: Tensor, q: Tensor) -> Tensor:
        return 1.2 * p / q


class Cool(SamplerChain):
    """Samples at nine tenths of the temperature."""

    def distribution(self, logits: Tensor) -> Tensor:
        return super().distribution(logits / 0.9)


class Narrow(SamplerChain):
    """Samples from the most likely 95 % where all was asked for."""

    def distribution(self, logits: Tensor) -> Tensor:
        distribution = super().distribution(logits)
        ranked, order = distribution.sort(dim=-1, descending=True)
        beyond = ranked.cumsum(-1) - ranked >= 0.95
        distribution = distribution.masked_fill(beyond.scatter(-1, order, beyond), 0.0)
        return distribution / distribution.sum(-1, keepdim=True)
