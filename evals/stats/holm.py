"""Holm's step-down correction."""

from collections.abc import Hashable, Sequence


def adjusted(
    p_values: Sequence[float | None], chains: Sequence[Hashable] | None = None
) -> list[float | None]:
    """Return the p values adjusted for the whole family, in the order given.

    p̃₍ᵢ₎ = max over j ≤ i of m₍ⱼ₎·p₍ⱼ₎, at most 1; rejecting where p̃ ≤ α keeps the chance of any
    false rejection below α under any dependence. m₍ⱼ₎ counts the chains with a hypothesis at j or
    later, and without `chains` every hypothesis is one. A chain's hypotheses are nested, as several
    margins of one statistic are: where the tightest true one is not rejected, no true one is, so
    that a chain spends its level once. `None` is a hypothesis without evidence: it counts as p = 1
    and stays `None`. An empty family is an empty list; with m = 1 nothing changes.

    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979) 65–70; for hypotheses that imply
    each other, J. Shaffer, Journal of the American Statistical Association 81 (1986) 826–831.
    """
    names = list(range(len(p_values))) if chains is None else list(chains)
    order = sorted(
        (i for i, p in enumerate(p_values) if p is not None), key=lambda i: p_values[i] or 0.0
    )
    open_chains = {names[i] for i, p in enumerate(p_values) if p is None}
    multipliers = dict[int, int]()
    for i in reversed(order):
        open_chains.add(names[i])
        multipliers[i] = len(open_chains)
    result: list[float | None] = [None] * len(p_values)
    running = 0.0
    for i in order:
        running = max(running, min(1.0, multipliers[i] * (p_values[i] or 0.0)))
        result[i] = running
    return result
