"""Load shapes: arrival times, traces, lateness, and the options of a rollout file."""

import gzip
import itertools
import statistics
from pathlib import Path

import pytest
from recorded_runs import recorded
from scripted_server import Route, chat, running

from collector.contract import Arm, Generation
from engine_adapter.errors import RolloutFileError, WorkloadError
from engine_adapter.routes import HttpRoute
from engine_adapter.run import rollout_file, traces
from engine_adapter.run.load_shape import Load
from engine_adapter.run.schedule import times_s, turns
from engine_adapter.run.trace_prompts import shaped
from engine_adapter.run.traces import Arrival
from engine_adapter.workload import Prompt

TRACES = Path(__file__).parent / "traces"
PROMPTS = [Prompt(id=f"p{i}", cohort="chat", prompt=f"say {i}") for i in range(4)]


def times(count: int, seed: int = 1, **load: object) -> list[float]:
    shape = Load.model_validate(load)
    return list(itertools.islice(times_s(shape, seed), count))


def test_poisson_gaps_are_exponential_and_drawn_from_the_seed() -> None:
    """Mean and standard deviation of the gaps are 1/rate; the same seed draws the same."""
    drawn = times(20_000, mode="poisson", rate=4.0)
    gaps = [later - earlier for earlier, later in itertools.pairwise(drawn)]
    assert statistics.fmean(gaps) == pytest.approx(0.25, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(0.25, rel=0.05)
    assert drawn == times(20_000, mode="poisson", rate=4.0)
    assert drawn != times(20_000, seed=2, mode="poisson", rate=4.0)


def test_constant_and_burst_keep_the_rate() -> None:
    """Evenly spaced, or several at once at intervals as much longer."""
    assert times(4, mode="constant", rate=2) == [0, 0.5, 1, 1.5]
    assert times(6, mode="burst", rate=2, burst_size=3) == [0, 0, 0, 1.5, 1.5, 1.5]


def test_both_arms_meet_the_whole_traffic() -> None:
    """A pair's turns arrive together, the first of them alternating; the warm-up has no times."""
    load = Load(mode="constant", rate=10, warmup=1)
    found = [(t.prompt.id, t.arm.value, t.due_s) for t in turns(PROMPTS[:2], load, seed=1)]
    assert found == [
        ("p0", "baseline", None),
        ("p0", "candidate", None),
        ("p0", "baseline", 0),
        ("p0", "candidate", 0),
        ("p1", "candidate", 0.1),
        ("p1", "baseline", 0.1),
    ]


class TestTraces:
    def test_published_traces_are_read(self) -> None:
        """Times and token counts of Azure's and Mooncake's, the latter with prefix blocks."""
        azure = traces.read(TRACES / "azure_2023_code.jsonl")
        assert len(azure) == 40
        assert azure[0] == Arrival(0.0, 4808, 10)
        mooncake = traces.read(TRACES / "mooncake_conversation.jsonl", max_requests=2)
        assert [(a.input_tokens, a.output_tokens) for a in mooncake] == [(6758, 500), (7322, 490)]
        assert mooncake[1].block_ids[:3] == (0, 14, 15)

    def test_the_original_forms_are_read(self, tmp_path: Path) -> None:
        """Azure's CSV and Mooncake's milliseconds, gzipped too; times begin at 0, in order."""
        azure = tmp_path / "azure.csv"
        azure.write_text(
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.5,10,2\n"
            "2023-11-16 18:17:03.25,4808,10\n"
        )
        assert traces.read(azure) == (Arrival(0, 4808, 10), Arrival(0.25, 10, 2))
        mooncake = tmp_path / "mooncake.jsonl.gz"
        line = '{"timestamp": %d, "input_length": 5, "output_length": 6, "hash_ids": [1]}\n'
        mooncake.write_bytes(gzip.compress((line % 500 + "\n" + line % 3500).encode()))
        assert traces.read(mooncake) == (Arrival(0, 5, 6, (1,)), Arrival(3.0, 5, 6, (1,)))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "holds no request; wanted lines with t, input_tokens and output_tokens"),
            ('{"t": 0}\n{"t": "soon"}', ":2: could not convert"),
            ("{", ":1: is not JSON"),
            ("[1]", ":1: wanted a JSON object, got list"),
            ('{"input_tokens": 1}', ":1: has no time"),
            ('{"t": -1}', ":1: t: -1.0 is not a time"),
            ('{"t": 1, "output_tokens": 1e99}', "output_tokens: .* is no number of tokens"),
            ('{"t": NaN}', ":1: t: nan is not a time"),
        ],
    )
    def test_a_bad_line_is_named(self, tmp_path: Path, text: str, message: str) -> None:
        """The error has file, line and key."""
        path = tmp_path / "trace.jsonl"
        path.write_text(text)
        with pytest.raises(WorkloadError, match=message) as caught:
            traces.read(path)
        assert str(path) in str(caught.value)

    def test_a_truncated_file_is_told(self, tmp_path: Path) -> None:
        """A download that broke off is an error, and not a shorter trace."""
        path = tmp_path / "trace.jsonl.gz"
        path.write_bytes(gzip.compress(b'{"t": 0}\n' * 10_000)[:-20])
        with pytest.raises(WorkloadError, match="cannot be read"):
            traces.read(path)

    def test_a_trace_sets_times_and_lengths(self) -> None:
        """Prompts are taken in turn, each round a repeat, at the trace's times and speed."""
        trace = [Arrival(float(i), 100, 7 + i) for i in range(5)]
        load = Load(mode="trace", file="x", speed=2, warmup=0)
        found = [t for t in turns(PROMPTS[:2], load, seed=1, trace=trace) if t.arm == Arm.BASELINE]
        assert [(t.prompt.id, t.repeat, t.due_s, t.prompt.max_tokens) for t in found] == [
            ("p0", 0, 0.0, 7),
            ("p1", 0, 0.5, 8),
            ("p0", 1, 1.0, 9),
            ("p1", 1, 1.5, 10),
            ("p0", 2, 2.0, 11),
        ]

    def test_prompts_are_filled_up_and_share_what_the_trace_shares(self) -> None:
        """Filled to the trace's length; equal leading blocks are equal text, others are not."""
        one, two = (
            shaped(PROMPTS[0], Arrival(0, 1500, 9, blocks), "both").chat[0].content
            for blocks in ((1, 2, 3), (1, 2, 4))
        )
        assert len(one) == pytest.approx(1500 * 4.5, rel=0.02)
        shared = len(
            [
                1
                for a, b in itertools.takewhile(
                    lambda ab: ab[0] == ab[1], zip(one, two, strict=False)
                )
            ]
        )
        assert shared == pytest.approx(2 * 512 * 4.5, rel=0.05)
        assert one.endswith("say 0")
        assert shaped(PROMPTS[0], Arrival(0, 1500, 9), "none") == PROMPTS[0]


def answered(load: Load, *, ttft_s: float, prompts: list[Prompt]) -> list[Generation]:
    """Return what both arms answer at one server that begins to answer after `ttft_s`."""
    with running(Route(chat(["a", "b"], ttft_s=ttft_s))) as server:
        route = HttpRoute(engine="openai", model="m", url=server.url)
        return recorded(route, turns(prompts, load, seed=1), concurrency=load.concurrency)


def test_an_open_loop_sends_at_the_scheduled_times() -> None:
    """Spans start when requests were due, whatever the engine's pace; the lag is on each."""
    load = Load(mode="constant", rate=20, warmup=2)
    made = answered(load, ttft_s=0.3, prompts=PROMPTS)
    starts = sorted(g.start_unix_ns for g in made)
    assert len(made) == 8
    assert (starts[-1] - starts[0]) / 1e9 == pytest.approx(0.15, abs=0.02)
    assert max(g.concurrency or 0 for g in made) == 4  # of one arm
    assert all(g.client_lag_s is not None and g.ttft_s is not None for g in made)


def test_latency_counts_from_the_scheduled_time() -> None:
    """A request that had to wait for its turn is as slow as it was for its user, and is late."""
    load = Load(mode="burst", rate=100, burst_size=4, concurrency=1, warmup=0)
    made = answered(load, ttft_s=0.4, prompts=PROMPTS[:2])
    waits = sorted((g.arm, g.ttft_s or 0) for g in made)
    least = [0.39, 0.79, 0.39, 0.79]  # by arm
    assert [wait >= bound for (_, wait), bound in zip(waits, least, strict=True)] == [True] * 4
    assert sorted((g.client_lag_s or 0) >= 0.39 for g in made) == [False, False, True, True]
    # A duration is whole nanoseconds, a time to the first token a double.
    assert all(g.e2e_s >= (g.ttft_s or 0) - 1e-6 for g in made)


def test_a_closed_loop_lags_only_as_its_reader_does() -> None:
    """Nothing is due at a time, so nothing is sent late, though it waits for its turn."""
    made = answered(Load(concurrency=1, warmup=0), ttft_s=0.4, prompts=PROMPTS[:2])
    lags = [g.client_lag_s for g in made if g.client_lag_s is not None]
    assert len(lags) == len(made) == 4
    assert statistics.median(lags) < 0.39  # a busy machine reads late


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ("{mode: poisson}", "load: `mode: poisson` needs `rate`"),
        ("{mode: trace}", "load: `mode: trace` needs `file`"),
        (
            "{rate: 3}",
            "load: `rate` goes with mode poisson or constant or burst, and mode is close",
        ),
        ("{mode: poisson, rate: 3, burst_size: 2}", "`burst_size` goes with mode burst, and mode"),
        ("{mode: poisson, rate: .inf}", "load.rate: Input should be a finite number"),
        ("{mode: poison, rate: 3}", "load.mode: Input should be 'closed', 'poisson'"),
        ("{mode: trace, file: a, repeats: 2}", "`repeats` does not go with mode trace"),
        ("{mode: trace, file: a, sped: 2}", "load.sped: unknown key; did you mean `speed`?"),
        ("{history: own, mode: trace, file: a}", "`history: own` does not go with mode trace"),
        ("{history: owned}", "load.history: Input should be 'recorded' or 'own'"),
        (
            "{think_s: 9000}",
            "load.think_s.fixed: Input should be less than or equal to 3600 (got 9000",
        ),
        ("{think_s: {exponental: 3}}", "load.think_s.exponental: unknown key; did you mean `expon"),
        ("{think_s: {}}", "load.think_s: wanted a number of seconds, or {exponential: MEAN}"),
        ("{think_s: long}", "load.think_s: wanted an object"),
    ],
)
def test_a_load_that_makes_no_sense_is_told(tmp_path: Path, load: str, message: str) -> None:
    """Keys that do not go together are an error that says which do."""
    path = tmp_path / "rollout.yaml"
    route = "{engine: transformers, model: m}"
    path.write_text(
        f"rollout: r\nworkload: w\nbaseline: {route}\ncandidate: {route}\nload: {load}\n"
    )
    with pytest.raises(RolloutFileError) as caught:
        rollout_file.read(path)
    assert message in str(caught.value)
