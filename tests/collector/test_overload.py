"""A flood: bounded memory, honest refusals, nothing acknowledged lost, and an end to it."""

from pathlib import Path

import pytest

from benchmarks.load.targets import draftgate
from benchmarks.overload import MEMORY_LIMIT_BYTES, overload


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(900)
def test_an_overload_is_refused_within_bounds_and_passes(tmp_path: Path) -> None:
    """Ten times the sustainable rate is refused with Retry-After, and then requests are taken."""
    with draftgate(tmp_path, database="sqlite") as target:
        result = overload(target, seconds=5, batch=512, factor=10, connections=64)
    assert set(result.statuses) <= {200, 429, 503}
    assert (result.refused_without_retry_after, result.unanswered) == (0, 0)
    assert result.statuses.keys() - {200} != set(), "nothing was refused: this was no overload"
    assert result.acknowledged_spans > 0
    assert result.acknowledged_spans_lost == 0
    assert result.peak_memory_mib * 2**20 < MEMORY_LIMIT_BYTES
