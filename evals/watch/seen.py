"""Details of earlier windows by which copies and unlike arms show: a sample of times, and mixes."""

import math
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from zlib import crc32

from collector.contract import Watch
from evals.evidence.columns import Evidence, Objects
from evals.gate.likeness import LENGTH, ArmDifference, asked_values, mixed, unlike_mixes
from evals.gate.measured_times import again_words, timed_rows
from evals.policy import Policy
from evals.stats.sample_ratio import mix_p

_SAMPLE = 512
"""Rows of times in the sample; more than a hundredth of them may not be copies."""
_BINS = 64
"""Bins of a column's values, which may be many."""

Mixes = Mapping[str, Mapping[str, tuple[int, ...]]]


def with_times(
    was: Mapping[str, tuple[int, ...]], evidence: Evidence, *, paired: bool
) -> dict[str, tuple[int, ...]]:
    """Add times to the sample: the rows with the smallest hashes, those seen again included.

    A row and its copies have one hash, so the sample has the share of copies that all rows have.
    """
    found = dict(was)
    for what, times in timed_rows(evidence, paired=paired):
        hashes = [_hash(row.tobytes()) for row in times]
        found[what] = tuple(sorted([*was.get(what, ()), *hashes])[:_SAMPLE])
    return found


def copied(times: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Yield a sentence if times in the sample were seen before."""
    for what, hashes in times.items():
        words = again_words(what, len(hashes), len(hashes) - len(set(hashes)))
        if words is not None:
            yield words if len(hashes) < _SAMPLE else f"of a sample, {words}"


def with_mixes(was: Mixes, evidence: Evidence) -> dict[str, dict[str, tuple[int, ...]]]:
    """Add the arms' answers to the counts: by column, bin, and arm (baseline, candidate)."""
    found = {name: dict(bins) for name, bins in was.items()}
    for name in (*mixed(evidence.change), LENGTH):
        bins = found.setdefault(name, {})
        for arm, side in enumerate((evidence.baseline, evidence.candidate)):
            for one in _bins(name, asked_values(side, name)):
                counts = bins.get(one, (0, 0))
                bins[one] = (counts[0] + (arm == 0), counts[1] + (arm == 1))
    return found


def unlike(watch: Watch, policy: Policy) -> Iterator[ArmDifference]:
    """Yield the columns in which the arms of split traffic were asked for other mixes."""
    ps = [
        mix_p([c for _, c in bins.values()], [b for b, _ in bins.values()])
        for bins in watch.mixes.values()
    ]
    yield from unlike_mixes(tuple(watch.mixes), ps, policy)


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=6).digest(), "big")


def _bins(name: str, values: Objects) -> Iterator[str]:
    """Yield each value's bin; lengths are binned by half octaves."""
    for value in values:
        if name == LENGTH:
            yield f"{int(2 * math.log2(max(int(value), 0) + 1))}"
        else:
            yield f"{crc32(str(value).encode()) % _BINS}"
