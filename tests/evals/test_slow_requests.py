"""Slow requests against the rest: planted differences are found, and chance is not."""

from functools import cache
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from otlp_bodies import export_request

from collector.client import Client
from collector.contract import Arm, Generation, Speculation, encode
from evals.profiles.request_dimensions import ValueBand, dimensions
from evals.profiles.slow_requests import FIELDS, ShareDifference, SlowComparison, compare

SECOND = 1_000_000_000


def request(number: int, e2e_s: float, **fields: object) -> Generation:
    """Return a request; all start at once unless told otherwise."""
    return Generation(
        trace_id=f"{number + 1:032x}",
        span_id=f"{number + 1:016x}",
        start_unix_ns=SECOND,
        end_unix_ns=SECOND + round(e2e_s * SECOND),
        rollout="r",
        **({"arm": Arm.BASELINE, "cohort": "chat"} | fields),  # type: ignore[arg-type]
    )


def table(requests: list[Generation]) -> pa.Table:
    """Return the requests as a collector gives them."""
    with TemporaryDirectory() as folder, Client.local(f"sqlite:///{folder}/r.db") as client:
        client.post_traces(export_request(list(map(encode, requests))).SerializeToString())
        with client.generation_batches("r", newest=True, fields=FIELDS) as reader:
            return reader.read_all()


@cache
def blank(n: int) -> pa.Table:
    """Return requests that differ in nothing."""
    return table([request(i, 1.0) for i in range(n)])


def put(requests: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Return the requests with other values in a column."""
    place = requests.schema.get_field_index(name)
    return requests.set_column(place, requests.schema.field(name), values)


def compared(requests: list[Generation], metric: str = "e2e_s") -> SlowComparison:
    found = compare(table(requests), metric)
    assert found is not None
    return found


def counts(one: ShareDifference) -> tuple[str, object, int, int]:
    return one.dimension, one.value, one.slow, one.rest


def test_what_is_planted_is_found_the_surest_difference_first() -> None:
    """Slow ones are of one route and have long prompts; the cohort has nothing to do with it."""
    requests = [
        request(
            n,
            10.0 if n % 10 == 0 else 1.0 + n / 1_000,
            route="new" if n % 10 == 0 or n % 20 == 7 else "old",
            cohort="chat" if n % 3 == 0 else "code",
            input_tokens=4_000 if n % 10 == 0 and n % 40 else 100 + n % 7,
            dims={"tier": "gold" if n % 4 < 2 else "free"},
        )
        for n in range(400)
    ]
    found = compared(requests)
    assert 1.4 < found.threshold_s <= 10.0  # between the 360th and the 361st
    assert (found.slow, found.rest, found.unmeasured) == (40, 360, 0)
    assert [counts(one) for one in found.differ] == [
        ("route", "new", 40, 20),
        ("input_tokens", ValueBand(106, 4_000), 31, 51),
    ]
    assert found.alike == ("cohort", "draftgate.dim.tier")
    assert found.too_few == ()


def test_a_chosen_duration_replaces_the_slowest_tenth() -> None:
    """Requests that take exactly so long are slow."""
    found = compare(table([request(n, 1.0 + n) for n in range(4)]), "e2e_s", at_least_s=3.0)
    assert found is not None
    assert (found.threshold_s, found.slow, found.rest) == (3.0, 2, 2)


def test_too_few_requests_are_no_evidence() -> None:
    """Nine of ten slow ones may share a value: five are expected of neither."""
    requests = [request(n, 10.0 if n < 4 else 1.0, route="ab"[n < 4]) for n in range(40)]
    found = compared(requests)
    assert (found.differ, found.alike, found.too_few) == ((), (), ("route",))


def test_requests_without_the_time_are_in_neither_group() -> None:
    """A failed request has no time to its first token."""
    requests = [request(n, 1.0, ttft_s=None if n % 5 == 0 else n / 100) for n in range(100)]
    found = compared(requests, "ttft_s")
    assert (found.slow + found.rest, found.unmeasured) == (80, 20)
    assert compare(table(requests), "tpot_s") is None


def test_absent_values_are_a_value_and_contradictory_counts_are_absent() -> None:
    """Acceptance is of each request's counts; a request without them says so."""
    requests = [
        request(
            n,
            1.0,
            speculation=None
            if n < 2
            else Speculation(steps=10, draft_tokens=10, accepted_tokens=30 if n == 2 else 5),
        )
        for n in range(5)
    ]
    (acceptance,) = (one for one in dimensions(table(requests)) if one.name == "acceptance")
    assert acceptance.values == (ValueBand(0.5, 0.5), None)
    assert sorted(acceptance.codes) == [0, 0, 1, 1, 1]


@settings(deadline=None)
@given(st.lists(st.integers(0, 9) | st.none(), min_size=1, max_size=60))
def test_bands_hold_every_number_once(numbers: list[int | None]) -> None:
    """Each number is within its band, at most four are made, and two numbers are in two."""
    of = put(blank(60).slice(0, len(numbers)), "concurrency", pa.array(numbers, pa.int64()))
    found = [one for one in dimensions(of) if one.name == "concurrency"]
    assert len(found) == (len(set(numbers)) > 1)
    for one in found:
        bands = [value for value in one.values if value is not None]
        assert min(len(set(numbers) - {None}), 2) <= len(bands) <= 4
        for number, code in zip(numbers, one.codes, strict=True):
            band = one.values[code]
            assert isinstance(band, ValueBand) == (number is not None)
            assert number is None or band.low <= number <= band.high


@pytest.mark.slow
def test_chance_names_a_dimension_in_one_of_twenty() -> None:
    """Of 200 data sets in which slowness is drawn, about ten or fewer name any dimension."""
    draw = np.random.default_rng(7)
    named = 0
    for _ in range(200):
        drawn = blank(300)
        for name in ("route", "launch", "service_version", "engine_version", "sampler"):
            drawn = put(drawn, name, pa.array(draw.choice(["a", "b", "c"], size=300)))
        drawn = put(drawn, "end_unix_ns", pa.array(SECOND + draw.integers(1, SECOND, size=300)))
        found = compare(drawn, "e2e_s")
        assert found is not None
        assert len(found.alike) + len(found.differ) == 5
        named += bool(found.differ)
    assert 0 < named <= 16  # 5 % of 200, and two standard deviations


@pytest.mark.parametrize("finish", [("stop",), ("stop", "length")])
def test_lists_and_switches_are_dimensions(finish: tuple[str, ...]) -> None:
    """Finish reasons are joined; greedy requests are told from sampled ones."""
    requests = [
        request(n, 1.0, finish_reasons=finish if n else None, temperature=0.7 * n, streamed=n > 0)
        for n in range(2)
    ]
    found = {one.name: set(one.values) for one in dimensions(table(requests))}
    assert found == {
        "finish_reasons": {None, ", ".join(finish)},
        "sampling": {"greedy", "sampled"},
        "streamed": {"false", "true"},
    }
