"""How many independent draws a sequence of requests is worth: the design effect of blocks."""

import numpy as np
from numpy.typing import NDArray


def block_design_effect(exceeds: NDArray[np.bool_], *, size: int, min_blocks: int) -> float | None:
    """Return the variance of blocks' exceedance counts over the binomial's, at least 1.

    `exceeds` says, in order of time, which requests lie above the quantile. They are cut into
    blocks of `size` consecutive requests, or of fewer where there would not be `min_blocks` of
    them; a last block that is not full is left out. deff = s²/(m·p̂(1 − p̂)) over blocks of m. One
    where requests are independent; n/deff is what to count them as. Below 1 it is taken as 1:
    chance or stratification is not more evidence. `None` where blocks would hold fewer than two
    requests; 1 where nothing or everything exceeds (n = 0 and n = 1 give `None`).

    Source: L. Kish, Survey Sampling (1965) section 5.4; batch means as in P. Glynn and W. Whitt,
    Operations Research Letters 10 (1991) 431–435.
    """
    if size < 2 or min_blocks < 2:
        raise ValueError(f"wanted two blocks of two at the least, got {min_blocks} of {size}")
    length = min(size, len(exceeds) // min_blocks)
    if length < 2:
        return None
    blocks = len(exceeds) // length
    counts = exceeds[: blocks * length].reshape(blocks, length).sum(axis=1)
    share = float(counts.sum()) / (blocks * length)
    if share in (0.0, 1.0):
        return 1.0
    return max(1.0, float(np.var(counts, ddof=1)) / (length * share * (1 - share)))
