"""A tree of draft tokens: several may follow one, and the target keeps the path that it takes.

Each draft token is certain. At every token of the tree the target draws what it would say next; a
draft token that follows there and is that one is kept, and the walk goes on from it. So every token
of the text was drawn by the target from its own distribution, whatever the tree holds: the text is
distributed as without it.

Source: X. Miao et al., SpecInfer (2024), for the pass over all of a tree at once.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine_adapter.engines.local.sampling import Draft, Sampling, Verdict


class DraftTree:
    """Who follows whom; row 0 is the text's last token, row i + 1 draft token i."""

    def __init__(self, parents: Sequence[int], device: torch.device) -> None:
        """`parents` as of `Draft`; raises `ValueError` if one does not come before its child."""
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
        """Of each draft token, from 1 on."""
        self.levels = torch.tensor(levels, device=device)
        self._parents = torch.tensor(parents, dtype=torch.long, device=device) + 1
        self._sees = sees.to(device)

    def seen(self, behind: Tensor) -> Tensor:
        """Return which slots each row sees, (batch, rows, slots).

        `behind` is by how much each slot, (batch, slots), lies behind that of row 0.
        """
        rows = len(self._sees)
        near = self._sees[:, behind.clamp(0, rows - 1)].transpose(0, 1)
        within = (behind >= 0) & (behind < rows)
        return (behind < 0)[:, None] | (near & within[:, None])

    def judge(
        self, sampling: Sampling, logits: Tensor, draft: Draft, noise: Tensor
    ) -> tuple[Verdict, Tensor]:
        """Return the path that the target takes, given its logits, (batch, rows, vocabulary).

        With it its rows, (batch, levels + 1), the text's last token's first; behind the path any.
        Of `noise` the last columns are used, one a row. Raises `ValueError` for a draft with laws.
        """
        if draft.laws is not None:
            raise ValueError("laws: wanted none, for the tokens of a tree are taken as certain")
        law = None if sampling.greedy else sampling.law(logits)
        own = logits.argmax(-1)
        if law is not None:
            own = sampling.draw(law, noise[:, noise.shape[1] - law.shape[1] :])
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
        if law is not None:
            law = law.gather(1, rows[:, :, None].expand(-1, -1, law.shape[2]))
        return Verdict(own.gather(1, rows), accepted, law), rows
