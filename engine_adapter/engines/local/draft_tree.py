"""A tree of draft tokens: a token may have several children, and the target keeps one path.

Draft tokens are deterministic. At every node, the target draws its next token; if a child is that
token, it is kept and the walk continues from it. So every token of the text is drawn by the target
from its own distribution, and the text is distributed as without the tree.

Source: X. Miao et al., SpecInfer (2024), for the pass over all of a tree at once.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine_adapter.engines.local.sampling import Draft, SamplerChain, VerifyResult


class DraftTree:
    """The tree's structure; row 0 is the text's last token, row i + 1 is draft token i."""

    def __init__(self, parents: Sequence[int], device: torch.device) -> None:
        """Take `parents` as in `Draft`; raises `ValueError` if a parent follows its child."""
        wrong = [i for i, parent in enumerate(parents) if not -1 <= parent < i]
        if wrong:
            raise ValueError(
                f"parents: draft token {wrong[0]} follows {parents[wrong[0]]}; wanted an earlier "
                "one's place, or -1 for the text's last token"
            )
        levels = [0]
        sees = torch.eye(len(parents) + 1, dtype=torch.bool)
        for row, parent in enumerate(parents, start=1):
            levels.append(levels[parent + 1] + 1)
            sees[row] |= sees[parent + 1]
        self.depth = max(levels)
        self.level_of = tuple(levels[1:])
        """The level of each draft token, starting at 1."""
        self.levels = torch.tensor(levels, device=device)
        self._parents = torch.tensor(parents, dtype=torch.long, device=device) + 1
        self._sees = sees.to(device)

    def seen(self, behind: Tensor) -> Tensor:
        """Return the attention mask, (batch, rows, slots): true where a row attends to a slot.

        `behind`: each slot's offset from row 0's slot, (batch, slots).
        """
        rows = len(self._sees)
        near = self._sees[:, behind.clamp(0, rows - 1)].transpose(0, 1)
        within = (behind >= 0) & (behind < rows)
        return (behind < 0)[:, None] | (near & within[:, None])

    def verify(
        self, sampling: SamplerChain, logits: Tensor, draft: Draft, noise: Tensor
    ) -> tuple[VerifyResult, Tensor]:
        """Verify the tree by the target's logits, (batch, rows, vocabulary); return the kept path.

        Also return the path's rows, (batch, levels + 1), beginning with row 0; entries after the
        path's end are padding. Uses the last columns of `noise`, one per row. Raises `ValueError`
        for a draft with distributions.
        """
        if draft.distributions is not None:
            raise ValueError(
                "distributions: wanted none, because the tokens of a tree are deterministic"
            )
        distribution = None if sampling.greedy else sampling.distribution(logits)
        own = logits.argmax(-1)
        if distribution is not None:
            own = sampling.draw(distribution, noise[:, noise.shape[1] - distribution.shape[1] :])
        at = torch.zeros_like(draft.lengths)
        walking, accepted, path = at == 0, at, [at]
        for level in range(self.depth):
            said = own.gather(1, at[:, None])
            follows = (self._parents == at[:, None]) & (draft.tokens == said)
            walking = walking & follows.any(1) & (draft.lengths > level)
            at = torch.where(walking, follows.long().argmax(1) + 1, at)
            accepted = accepted + walking
            path.append(at)
        rows = torch.stack(path, 1)
        if distribution is not None:
            distribution = distribution.gather(
                1, rows[:, :, None].expand(-1, -1, distribution.shape[2])
            )
        return VerifyResult(own.gather(1, rows), accepted, distribution), rows
