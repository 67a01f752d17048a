"""Bands of load: requests in flight, by powers of two."""


def load_band(concurrency: int | None) -> tuple[int, int] | None:
    """Return the first and last number of the band; `None` if the concurrency is unknown."""
    if concurrency is None or concurrency < 1:
        return None
    first = 1 << (concurrency.bit_length() - 1)
    return first, 2 * first - 1
