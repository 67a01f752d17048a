"""The Muon optimiser: momentum that is orthogonalised before each step.

Published by Keller Jordan in 2024 (https://kellerjordan.github.io/posts/muon/), whose constants are
used. PyTorch's own `torch.optim.Muon` works in bfloat16, which is very slow on a CPU without
bfloat16 arithmetic.
"""

from collections.abc import Iterable

import torch

_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5
_MOMENTUM = 0.95
_WEIGHT_DECAY = 0.01


def orthogonalize(matrices: torch.Tensor) -> torch.Tensor:
    """Return matrices with singular values near 1; shape (count, rows, columns)."""
    tall = matrices.shape[1] > matrices.shape[2]
    wide = matrices.mT if tall else matrices
    x: torch.Tensor = wide / (torch.linalg.matrix_norm(wide, keepdim=True) + 1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.mT
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x.mT if tall else x


class Muon:
    """Updates weight matrices; equal shapes are stacked, so each shape is one batched product.

    Set `lr` before each step. A step is about `lr` in spectral norm, larger for tall matrices.
    """

    def __init__(self, weights: Iterable[torch.nn.Parameter], lr: float) -> None:
        self.lr = lr
        shapes: dict[torch.Size, list[torch.nn.Parameter]] = {}
        for weight in weights:
            shapes.setdefault(weight.shape, []).append(weight)
        self._stacks = [(stack, torch.zeros(len(stack), *shape)) for shape, stack in shapes.items()]

    @torch.no_grad()
    def step(self) -> None:
        """Apply the gradients; every weight must have one."""
        for weights, momentum in self._stacks:
            gradients = torch.stack([weight.grad for weight in weights if weight.grad is not None])
            momentum.lerp_(gradients, 1 - _MOMENTUM)
            directions = orthogonalize(gradients.lerp(momentum, _MOMENTUM))
            rows, columns = momentum.shape[1:]
            scale = max(1.0, rows / columns) ** 0.5
            for weight, direction in zip(weights, directions, strict=True):
                weight.mul_(1 - self.lr * _WEIGHT_DECAY).sub_(direction, alpha=self.lr * scale)
