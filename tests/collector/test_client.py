"""The client, against a real server and against the same application in this process."""

import contextlib
import gzip
import hashlib
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from commands import run_to_end
from made_generations import generation_of, score_of
from made_verdicts import made_verdict, resting_on
from otlp_bodies import body_of
from pyarrow import parquet

from collector.client import Client, ClientError, PairPage, export_file
from collector.contract import (
    Arm,
    ArmSummary,
    Content,
    Generation,
    Pair,
    RolloutOverview,
    Score,
    ScoredSpan,
    Span,
    Speculation,
    Verdict,
    encode,
    flatten,
    to_document,
)
from collector.errors import ExportError
from collector.store import Store

TEXTS = (
    "input_messages",
    "output_messages",
    "output_token_ids",
    "tool_definitions",
    "tool_choice",
    "context",
    "reference",
    "output_schema",
)
IDS = ("trace_id", "span_id")

ODD_NAME = "a/b c%2F ü?#"
START = 1_700_000_000_000_000_000
CONTENT = Content(
    input_messages='[{"role":"user","parts":[]}]',
    output_messages="[]",
    output_token_ids="5,7,2",
    tool_definitions="[]",
    tool_choice="required",
    context=("one", "two ☃"),
    reference="r",
    output_schema="{}",
)
CARRIED = "reference context schema"
BROKEN = Speculation(method="eagle", steps=2, draft_tokens=4, accepted_tokens=5)


@pytest.fixture(scope="module")
def generations() -> dict[str, Generation]:
    """Two prompts of one rollout with everything that can be odd, and some strangers."""
    baseline = {"arm": Arm.BASELINE, "speculation": None}
    return {
        "p1 baseline": generation_of(1, prompt_id="p1", content=CONTENT, **baseline),
        "p1 candidate": generation_of(2, prompt_id="p1", content=CONTENT),
        "p1 rerun": generation_of(3, prompt_id="p1"),
        "p2 baseline": generation_of(
            4, prompt_id="p2", cohort=None, error_type="timeout", ttft_s=None, **baseline
        ),
        "p2 candidate": generation_of(5, prompt_id="p2", cohort="code", speculation=BROKEN),
        "p2 alone": generation_of(
            6,
            prompt_id="p2",
            repeat=1,
            cohort="code",
            speculation=Speculation(method="prompt_lookup"),
            **dict.fromkeys(("ttft_s", "tpot_s", "input_tokens", "output_tokens", "fallback")),
        ),
        "unpaired": generation_of(7, rollout=ODD_NAME, prompt_id=None, cohort="ü"),
        "stranger": generation_of(8, rollout=None),
    }


@pytest.fixture(scope="module")
def scores(generations: dict[str, Generation]) -> list[Score]:
    """Scores of the first pair: judged twice, replaced, and one that could not be judged."""
    return [
        score(generations["p1 baseline"], "task_completion", value=1.0, latency_s=0.25),
        score(
            generations["p1 candidate"],
            "task_completion",
            value=0.25,
            cost_usd=0.002,
            spans=(
                ScoredSpan(start=0, end=5, support=0.5),
                ScoredSpan(start=5, end=9, support=0.0),
            ),
        ),
        score(generations["p1 candidate"], "task_completion", version="2", value=0.75, label="ok"),
        score(generations["p1 candidate"], "groundedness", unscored_reason="no context"),
    ]


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    """Name each kind of database."""
    return str(request.param)


@pytest.fixture(
    scope="module",
    params=["server sqlite", "local sqlite", "server postgresql", "local postgresql"],
)
def client(
    request: pytest.FixtureRequest,
    module_serve: Callable[..., Any],
    new_database_url: Callable[[str], str],
    generations: dict[str, Generation],
    scores: list[Score],
) -> Iterator[Client]:
    """Open a client of a collector that holds the generations and scores."""
    how, kind = request.param.split()
    url = new_database_url(kind)
    with (
        Client.local(url, capture_content=True)
        if how == "local"
        else Client(module_serve(url, env={"DRAFTGATE_CAPTURE_CONTENT": "1"}).url)
    ) as client:
        client.post_scores([replace(scores[1], value=0.5)])  # replaced below, and before its span
        client.post_traces(body_of(map(encode, generations.values())))
        client.post_scores(scores)
        yield client


def test_health(client: Client) -> None:
    """A collector that answers is healthy."""
    assert client.health() is True


def test_rollouts(client: Client) -> None:
    """Every rollout is counted by arm, pair and cohort; a broken span is counted as flagged."""
    assert client.rollouts() == (
        RolloutOverview(
            rollout=ODD_NAME,
            first_start_unix_ns=START + 7,
            last_end_unix_ns=START + 2_000_000_007,
            baseline_generations=0,
            candidate_generations=1,
            pairs=0,
            cohorts=("ü",),
            quality_flagged=0,
            spec_draft_tokens=10,
        ),
        RolloutOverview(
            rollout="k4",
            first_start_unix_ns=START + 1,
            last_end_unix_ns=START + 2_000_000_006,
            baseline_generations=2,
            candidate_generations=4,
            pairs=2,
            cohorts=("chat", "code"),
            quality_flagged=1,
            spec_draft_tokens=20,
        ),
    )


def test_summary(client: Client) -> None:
    """Sums leave failures out of latency, and broken counts out of speculation."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("spec_steps", "spec_draft_tokens", "spec_accepted_tokens")
    )
    none: dict[str, Any] = dict.fromkeys(("quality_flagged", "fallbacks", "retries"), 0)
    chat = {"rollout": "k4", "cohort": "chat", "errors": 0, **none}
    summary = client.summary("k4")
    assert tuple(replace(row, metrics=()) for row in summary) == (
        ArmSummary(
            rollout="k4",
            arm=Arm.BASELINE,
            cohort=None,
            generations=1,
            errors=1,
            **none,
            input_tokens=12,
            output_tokens=11,
            ttft_s_sum=None,
            ttft_s_count=0,
            e2e_s_sum=None,
            e2e_s_count=0,
            **nothing,
        ),
        ArmSummary(
            arm=Arm.BASELINE,
            generations=1,
            input_tokens=12,
            output_tokens=11,
            ttft_s_sum=0.5,
            ttft_s_count=1,
            e2e_s_sum=2.0,
            e2e_s_count=1,
            **(chat | nothing),
        ),
        ArmSummary(
            arm=Arm.CANDIDATE,
            generations=2,
            input_tokens=24,
            output_tokens=22,
            ttft_s_sum=1.0,
            ttft_s_count=2,
            e2e_s_sum=4.0,
            e2e_s_count=2,
            spec_steps=10,
            spec_draft_tokens=20,
            spec_accepted_tokens=12,
            **chat,  # type: ignore[arg-type]
        ),
        ArmSummary(
            rollout="k4",
            arm=Arm.CANDIDATE,
            cohort="code",
            generations=2,
            errors=0,
            quality_flagged=1,
            fallbacks=0,
            retries=0,
            input_tokens=12,
            output_tokens=11,
            ttft_s_sum=0.5,
            ttft_s_count=1,
            e2e_s_sum=4.0,
            e2e_s_count=2,
            **nothing,
        ),
    )


def test_summary_of_metrics(client: Client) -> None:
    """Each metric has its moments and its percentiles, which a sketch is at most 1 % off."""
    chat = client.summary("k4")[2]
    assert [metric.metric for metric in chat.metrics] == [
        "ttft_s",
        "tpot_s",
        "e2e_s",
        "output_tokens",
    ]
    ttft = chat.metrics[0]
    assert (ttft.n, ttft.sum, ttft.mean, ttft.stdev, ttft.min, ttft.max) == (
        *(2, 1.0, 0.5, 0.0),
        *(0.5, 0.5),
    )
    assert [ttft.p50, ttft.p95, ttft.p99] == [0.5, 0.5, None]


def test_generations(client: Client, generations: dict[str, Generation]) -> None:
    """A rollout's generations come whole, in the order of arrival, with text where asked for."""
    expected = [stored(generations[name]) for name in list(generations)[:6]]
    assert list(client.generations("k4", content=True)) == expected
    assert list(client.generations("k4")) == [replace(g, content=None) for g in expected]
    code = list(client.generations("k4", arm=Arm.CANDIDATE, cohort="code"))
    assert code == expected[4:]
    assert list(client.generations("k4", cohort="none such")) == []
    assert client.pairs("k4", cohort="none such").pairs == ()
    assert list(client.generations(ODD_NAME)) == [generations["unpaired"]]


def test_summary_of_a_window(client: Client) -> None:
    """A window is widened to whole minutes, and holds its start and not its end."""
    began = START / 1e9
    minute = began // 60 * 60
    whole = client.summary("k4")
    assert client.summary("k4", start=began + 1, end=began + 2) == whole
    assert client.summary("k4", start=minute, end=minute + 60) == whole
    zoned = datetime.fromtimestamp(began, tz=timezone(timedelta(hours=2)))
    assert client.summary("k4", start=zoned) == whole
    assert client.summary("k4", end=minute) == ()
    assert client.summary("k4", start=minute + 60) == ()
    assert client.summary("k4", start=minute - 7200, end=minute + 7200) == whole


@pytest.mark.parametrize(("step", "length_s"), [("minute", 60), ("hour", 3600), ("day", 86_400)])
def test_timeseries(step: str, length_s: int, client: Client) -> None:
    """Each step has a row for each arm and cohort, with the numbers of a summary."""
    first = START // 1_000_000_000 // length_s * length_s
    rows = client.timeseries("k4", step=step)
    assert [(row.start_unix_s, row.length_s) for row in rows] == [(first, length_s)] * 4
    assert tuple(row.summary for row in rows) == client.summary("k4")
    code = client.timeseries("k4", step=step, cohort="code", start=START / 1e9)
    assert tuple(row.summary for row in code) == client.summary("k4")[3:]
    assert client.timeseries("k4", step=step, end=first) == ()


@pytest.mark.parametrize("step", ["minute", "hour"])
def test_timeseries_of_counts_alone(step: str, client: Client) -> None:
    """The counts are those of the whole, and nothing stands in the place of what was measured."""
    whole = client.timeseries("k4", step=step)
    counted = client.timeseries("k4", step=step, counts_only=True)
    absent = {"metrics": (), "ttft_s_sum": None, "e2e_s_sum": None}
    nothing = absent | {"ttft_s_count": 0, "e2e_s_count": 0}
    assert any(row.summary.metrics for row in whole)
    assert counted == tuple(replace(row, summary=replace(row.summary, **nothing)) for row in whole)


def test_summaries_are_the_same_once_they_are_folded(
    new_database_url: Callable[[str], str], database_kind: str
) -> None:
    """Minutes add up to hours and days, folded or not."""
    url = new_database_url(database_kind)
    begun = [START + 1_000_000_000 * 40 * n for n in range(200)]  # two hours and more
    many = [
        generation_of(n, start_unix_ns=start, end_unix_ns=start + 1_000_000 * n, ttft_s=0.01 * n)
        for n, start in enumerate(begun, 1)
    ]
    start = begun[30] // 60_000_000_000 * 60
    asks: list[Callable[[Client], Any]] = [
        lambda c: c.summary("k4"),
        lambda c: c.summary("k4", start=start, end=start + 5400),
        lambda c: c.timeseries("k4", step="minute"),
        lambda c: c.timeseries("k4", step="hour", start=start),
        lambda c: c.timeseries("k4", step="day"),
    ]
    with Client.local(url) as client:
        client.post_traces(body_of(map(encode, many)))
        before = [rounded(ask(client)) for ask in asks]
        (window,) = client.summary("k4", start=start, end=start + 5400)
        inside = [g for g in many if start <= g.start_unix_ns / 1e9 < start + 5400]
        assert window.generations == len(inside)
        ttft = next(metric for metric in window.metrics if metric.metric == "ttft_s")
        exact = sorted(g.ttft_s or 0.0 for g in inside)[int(0.95 * (len(inside) - 1))]
        assert ttft.p95 == pytest.approx(exact, rel=0.01)
    store = Store.open(url)
    assert store.fold(at_most=10_000) > 0
    store.close()
    with Client.local(url) as client:
        assert [rounded(ask(client)) for ask in asks] == before


def test_newest(client: Client, generations: dict[str, Generation]) -> None:
    """The last to arrive stands first, of all or of an arm of a cohort."""
    assert client.newest(2) == tuple(generations[name] for name in ("stranger", "unpaired"))
    of_k4 = [stored(generations[name]) for name in list(generations)[5::-1]]
    assert client.newest(1000, "k4", content=True) == tuple(of_k4)
    chat = client.newest(1, "k4", arm=Arm.CANDIDATE, cohort="chat")
    assert chat == (generations["p1 rerun"],)
    assert client.newest(5, "k4", cohort="none such") == ()


def test_generation_batches(
    client: Client, generations: dict[str, Generation], scores: list[Score]
) -> None:
    """Columns carry every field, the text and the scores; the days of arrival filter."""
    with client.generation_batches("k4", content=True, scores=True) as reader:
        rows = reader.read_all().to_pylist(maps_as_pydicts="strict")
    expected = [stored(generations[name]) for name in list(generations)[:6]]
    by_key = {(g.trace_id, g.span_id): g for g in expected}
    assert [(row["trace_id"], row["span_id"]) for row in rows] == list(by_key)
    for row, generation in zip(rows, expected, strict=True):
        fields = flatten(generation) | {"quality": generation.quality, "dims": generation.dims}
        present = {name: value for name, value in row.items() if value is not None}
        given = {name: present.pop(name) for name in ("scores", *TEXTS) if name in present}
        assert present == {n: list(v) if type(v) is tuple else v for n, v in fields.items()}
        assert given.pop("scores") == [
            {name: value for name, value in to_document(one).items() if name not in IDS}
            for one in sorted(scores, key=lambda s: (s.metric, s.version))
            if (one.trace_id, one.span_id) == (generation.trace_id, generation.span_id)
        ]
        text = to_document(generation)["content"]
        assert given == ({} if text is None else text)
    with client.generation_batches("k4", fields=("cohort", "ttft_s"), newest=True) as reader:
        of_two = reader.read_all().to_pylist()
    assert of_two == [{"cohort": one.cohort, "ttft_s": one.ttft_s} for one in expected[::-1]]
    with (
        pytest.raises(ClientError, match="field='speed': is not a field; known are trace_id, "),
        client.generation_batches("k4", fields=("speed",)),
    ):
        pass
    today = datetime.now(tz=UTC).date()
    for since, until, count in (
        (today - timedelta(days=1), today + timedelta(days=1), 6),
        (today + timedelta(days=2), None, 0),
        (None, today - timedelta(days=1), 0),
    ):
        with client.generation_batches("k4", arrived_since=since, arrived_until=until) as reader:
            assert reader.read_all().num_rows == count


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_export(
    suffix: str,
    client: Client,
    tmp_path: Path,
    generations: dict[str, Generation],
) -> None:
    """The file holds the generations as the API gives them, with scores, or is not there."""
    path = tmp_path / f"k4{suffix}"
    assert export_file.write(client, "k4", path, content=True) == 6
    expected = [stored(generations[name]) for name in list(generations)[:6]]
    if suffix == ".parquet":
        table = parquet.read_table(path)
        assert table["ttft_s"].to_pylist() == [g.ttft_s for g in expected]
        assert table["spec_steps"].to_pylist()[1] == 5
    else:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        judged = [line.pop("scores") for line in lines]
        assert lines == [to_document(generation) for generation in expected]
        assert [one["value"] for one in judged[1]] == [None, 0.25, 0.75]
    with pytest.raises(ExportError, match=r"exists; name another file, or replace it with --force"):
        export_file.write(client, "k4", path)
    before = path.read_bytes()
    with pytest.raises(ClientError, match="no rollout 'k5'"):
        export_file.write(client, "k5", path, force=True)
    assert path.read_bytes() == before
    assert export_file.write(client, "k4", path, force=True) == 6
    assert list(tmp_path.iterdir()) == [path]


def test_an_arrow_stream_that_breaks_off_is_an_error(client: Client) -> None:
    """Arrow takes a body without its end for a whole one; the client does not."""
    headers = {"Accept": "application/vnd.apache.arrow.stream"}
    whole = client._connection._http.get(
        "/api/v1/pairs", params={"rollout": "k4"}, headers=headers
    ).content
    for cut in (8, 100):
        transport = httpx.MockTransport(
            lambda _, cut=cut: httpx.Response(200, content=whole[:-cut])
        )
        with (
            Client("http://x", transport=transport) as broken,
            pytest.raises(ClientError, match="the answer broke off; ask again"),
        ):
            broken.pairs_table("k4")


def test_an_arrow_stream_that_stalls_is_a_collector_that_is_busy() -> None:
    """If the server begins an answer and falls silent, the error says so, and blames no version."""
    done = threading.Event()

    def stall() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apache.arrow.stream\r\n"
                b"Content-Length: 100\r\n\r\n"
            )
            done.wait()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=stall)
        thread.start()
        with (
            Client(f"http://127.0.0.1:{server.getsockname()[1]}", timeout_s=0.5) as client,
            pytest.raises(ClientError, match=r"no answer \(timed out\); .* is it busy"),
        ):
            client.pairs_table("k4")
        done.set()
        thread.join()


def test_pairs(client: Client, generations: dict[str, Generation], scores: list[Score]) -> None:
    """Pairs carry the first generation received of each side, its text if asked for, its scores."""
    first = Pair(
        rollout="k4",
        prompt_id="p1",
        repeat=0,
        cohort="chat",
        baseline=generations["p1 baseline"],
        candidate=generations["p1 candidate"],
        baseline_scores=(scores[0],),
        candidate_scores=(scores[3], scores[1], scores[2]),
    )
    second = Pair(
        rollout="k4",
        prompt_id="p2",
        repeat=0,
        cohort="code",
        baseline=generations["p2 baseline"],
        candidate=stored(generations["p2 candidate"]),
    )
    third = Pair(
        rollout="k4",
        prompt_id="p2",
        repeat=1,
        cohort="code",
        baseline=None,
        candidate=generations["p2 alone"],
    )
    assert client.pairs("k4", content=True) == PairPage((first, second, third), None)
    page = client.pairs("k4", content=True, limit=1)
    assert page.pairs == (first,)
    page = client.pairs("k4", limit=1, after=page.next)
    assert page.pairs == (second,)
    page = client.pairs("k4", limit=1, after=page.next)
    assert page == PairPage((third,), None)
    assert client.pairs("k4", cohort="code", limit=1).pairs == (second,)
    assert client.pairs("k4", cohort="code") == PairPage((second, third), None)
    assert client.pairs(ODD_NAME) == PairPage((), None)


def test_one_pair_by_its_key(client: Client, generations: dict[str, Generation]) -> None:
    """A pair is found by prompt and repeat, whole; another key finds none."""
    found = client.pair("k4", "p2", 1, content=True)
    assert found is not None
    assert (found.baseline, found.candidate) == (None, generations["p2 alone"])
    assert client.pair("k4", "p2", 2) is None
    with pytest.raises(ClientError, match="prompt_id and repeat name a pair together") as refused:
        client._connection.get("/api/v1/pairs", {"rollout": "k4", "prompt_id": "p2"})
    assert refused.value.status == 400


def test_the_newest_batches_come_first(client: Client) -> None:
    """Batches can be read from the newest generation back."""
    orders = []
    for newest in (False, True):
        with client.generation_batches("k4", newest=newest) as reader:
            orders.append(reader.read_all()["span_id"].to_pylist())
    assert orders[1] == orders[0][::-1]
    assert len(orders[0]) > 1


def test_pairs_table(client: Client) -> None:
    """The whole rollout as columns: a side that never arrived is null throughout."""
    table = pa.table(client.pairs_table("k4"))
    assert table.to_pylist() == [
        {
            "prompt_id": "p1",
            "repeat": 0,
            "cohort": "chat",
            **side(
                "baseline",
                1,
                carries=CARRIED,
                score_task_completion=1.0,
                judge_task_completion="e 1",
            ),
            **side(
                "candidate",
                2,
                **COUNTS,
                carries=CARRIED,
                duplicates=1,
                score_task_completion=0.75,
                judge_task_completion="e 2",
                unscored_groundedness="no context",
                judge_groundedness="e 1",
            ),
        },
        {
            "prompt_id": "p2",
            "repeat": 0,
            "cohort": "code",
            **side("baseline", 4, cohort=None, error_type="timeout", ttft_s=None),
            **side(
                "candidate",
                5,
                cohort="code",
                speculated=True,
                spec_method="eagle",
                spec_steps=2,
                spec_draft_tokens=4,
                spec_accepted_tokens=5,
                quality=["counts:accepted_exceeds_draft"],
            ),
        },
        {
            "prompt_id": "p2",
            "repeat": 1,
            "cohort": "code",
            **{f"baseline_{name}": None for name in SIDE} | {"baseline_duplicates": 0},
            **side(
                "candidate",
                6,
                cohort="code",
                speculated=True,
                spec_method="prompt_lookup",
                **dict.fromkeys(("ttft_s", "tpot_s", "input_tokens", "output_tokens", "fallback")),
            ),
        },
    ]
    assert table.schema.field("candidate_spec_draft_tokens_per_pos").type == pa.list_(pa.int64())
    assert table.schema.field("baseline_score_groundedness").type == pa.float64()


def test_the_table_of_a_rollout_without_pairs_is_empty(client: Client) -> None:
    """No pair means no row, and every column that needs no score."""
    table = client.pairs_table(ODD_NAME)
    of_scores = ("score_", "unscored_", "judge_")
    names = [name for name in SIDE if not name.startswith(of_scores)]
    assert len(table) == 0
    assert list(table.columns) == [
        *("prompt_id", "repeat", "cohort"),
        *(f"baseline_{name}" for name in names),
        *(f"candidate_{name}" for name in names),
    ]


def test_trace(client: Client, generations: dict[str, Generation], odd_span: Span) -> None:
    """A span comes back as it was sent, every kind of attribute included."""
    generation = generations["p1 candidate"]
    assert client.trace(generation.trace_id) == (encode(generation),)
    body = json.dumps(otlp_json(odd_span)).encode()
    client.post_traces(gzip.compress(body), content_type="application/json", gzipped=True)
    (found,) = client.trace(odd_span.trace_id)
    assert found == replace(
        odd_span, attributes={"odd": (float("inf"), b"\x00", {"bytes_hex": "zz"})}, resource={}
    )


def test_scores(client: Client, scores: list[Score]) -> None:
    """Scores come by generation, then by metric and version; the last post of each has won."""
    assert list(client.scores("k4")) == [scores[0], scores[3], scores[1], scores[2]]
    assert list(client.scores("k4", metric="groundedness")) == [scores[3]]
    assert list(client.scores(ODD_NAME)) == []


def test_verdicts(client: Client) -> None:
    """A verdict is stored once, found by its rollout, and the newest stands first."""
    given = verdict(client, "k4")
    first = client.post_verdict(given)
    second = client.post_verdict(verdict(client, ODD_NAME))
    assert client.post_verdict(given) == first
    assert (first.verdict, first.who, first.key_id) == (given, "local", None)
    assert first.posted_unix_ns < second.posted_unix_ns
    assert client.verdicts() == (second, first)
    assert client.verdicts(limit=1) == (second,)
    assert client.verdicts("k4") == (first,)


def test_a_verdicts_id_is_the_hash_of_its_canonical_document(client: Client) -> None:
    """Anybody can compute the id: sorted keys, no spaces, UTF-8."""
    given = verdict(client, "k4")
    canonical = json.dumps(
        to_document(given), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    expected = hashlib.sha256(canonical.encode()).hexdigest()
    assert client.post_verdict(given).id == expected


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda c: c.summary("k5"),
            "404 Not Found: no rollout 'k5'; known rollouts: 'a/b c%2F ü?#'",
        ),
        (lambda c: c.pairs("k5"), "no rollout 'k5'; known"),
        (lambda c: c.pairs_table("k5"), "no rollout 'k5'; known"),
        (lambda c: list(c.generations("k5")), "no rollout 'k5'; known"),
        (lambda c: c.timeseries("k5", step="day"), "no rollout 'k5'; known"),
        (lambda c: c.timeseries("k4", step="week"), "query.step: Input should be 'minute'"),
        (lambda c: c.summary("k4", start=2, end=2), "start='2': is not before end='2'; swap them"),
        (lambda c: c.summary("k4", start=-1), "start='-1': wanted a time from 1970 to 2262"),
        (lambda c: c.newest(5, cohort="chat"), "arm and cohort are those of a rollout"),
        (lambda c: list(c.scores("k5")), "no rollout 'k5'; known"),
        (lambda c: c.verdicts("k5"), "no rollout 'k5'; known"),
        (
            lambda c: c.trace("0" * 31 + "f"),
            "404 Not Found: no trace 0000000000000000000000000000000f",
        ),
        (lambda c: c.trace("xyz"), "422 Unprocessable Entity: path.trace_id: String should match"),
        (lambda c: c.pairs("k4", limit=1001), "query.limit: Input should be less than or equal to"),
        (
            lambda c: c.pairs("k4", after="x"),
            "after='x': is not a cursor; pass the `next` of the page",
        ),
        (lambda c: c.pairs("k4", after="WzEsMl0"), "after='WzEsMl0': is not a cursor"),
        (lambda c: c.post_traces(b"\xff"), "400 Bad Request: the body (1 bytes) is no Export"),
        (lambda c: c.post_traces(b"", content_type="text/csv"), "415 Unsupported Media Type"),
        (lambda c: c.post_traces(b"{", content_type="application/json"), "is no OTLP JSON"),
    ],
)
def test_what_is_refused_is_one_line(
    ask: Callable[[Client], object], message: str, client: Client
) -> None:
    """The error names the URL, the response and the remedy."""
    with pytest.raises(ClientError) as caught:
        ask(client)
    assert str(caught.value).startswith("http://")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rejected_spans_are_an_error(client: Client) -> None:
    """A span that the collector could not store is not lost in silence."""
    body = body_of([encode(generation_of(0))])
    with pytest.raises(ClientError, match="rejected 1 span: 1 × trace_id: wanted 16 bytes"):
        client.post_traces(body)


def test_pages_are_followed(client: Client) -> None:
    """More than a page of generations and of scores come complete and in order."""
    many = [generation_of(n, rollout="many") for n in range(1000, 2010)]
    given = [score(generation, "m", value=0.5) for generation in many]
    client.post_traces(body_of(map(encode, many)))
    client.post_scores(given)
    assert list(client.generations("many")) == many
    assert list(client.scores("many")) == given
    listed: list[str] = []
    page = client.pairs("many", limit=1000)
    while True:
        listed += [pair.prompt_id for pair in page.pairs]
        if page.next is None:
            break
        page = client.pairs("many", limit=1000, after=page.next)
    assert listed == sorted(generation.prompt_id or "" for generation in many)


def test_nobody_there_is_one_line() -> None:
    """A refused connection asks whether the server runs, and is not healthy."""
    with Client("http://127.0.0.1:9/") as client:
        assert client.health() is False
        with pytest.raises(ClientError) as caught:
            client.rollouts()
    assert str(caught.value) == (
        "http://127.0.0.1:9: nothing answers ([Errno 111] Connection refused); "
        "is `draftgate serve` running?"
    )


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://x", "http://[", "http://x:y"])
def test_a_url_that_is_none_is_one_line(url: str) -> None:
    """A URL without a scheme, or with a strange one, is named."""
    with pytest.raises(ClientError) as caught, Client(url) as client:
        client.rollouts()
    assert url in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b"<html>", "answered what a collector of this version does not"),
        (200, b"[]", "answered what a collector of this version does not"),
        (200, b'{"rollouts":[{"rollout":1}]}', "rollouts|rollout: wanted str, got 1"),
        (502, b"<html>", "502 Bad Gateway"),
        (599, b"", "599 unknown status"),
    ],
)
def test_an_answer_of_something_else_is_one_line(status: int, body: bytes, message: str) -> None:
    """Whatever else listens on the port, the error says that it is no collector."""
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=body))
    with Client("http://x", transport=transport) as client:
        with pytest.raises(ClientError, match=message):
            client.rollouts()
        assert client.health() is False


def test_a_slow_answer_is_one_line() -> None:
    """A timeout names the URL."""

    def slow(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("timed out")

    with (
        Client("http://x", transport=httpx.MockTransport(slow)) as client,
        pytest.raises(ClientError, match="http://x/api/v1/rollouts: no answer"),
    ):
        client.rollouts()


def test_a_local_database_that_cannot_be_opened_is_one_line(tmp_path: Any) -> None:
    """The store's own words reach the caller."""
    with pytest.raises(
        ClientError, match=r"no/x\.db: the folder .* does not exist; create it first"
    ):
        Client.local(f"sqlite:///{tmp_path}/no/x.db")


def test_a_local_client_keeps_what_was_posted(database_url: str) -> None:
    """Closing ends the writer; the next client finds everything."""
    before = writers()
    for _ in range(2):
        with contextlib.closing(Client.local(database_url)) as client:
            client.post_traces(body_of([encode(generation_of(1))]))
            assert len(list(client.generations("k4"))) == 1
    assert writers() == before


@pytest.mark.slow
def test_a_local_client_that_nobody_closes_lets_the_program_end(database_url: str) -> None:
    """What was answered is durable already, so nothing keeps the interpreter waiting."""
    script = (
        "import sys; from collector.client import Client\n"
        "client = Client.local(sys.argv[1]); print(client.health(), client.rollouts())"
    )
    done = run_to_end([sys.executable, "-c", script, database_url])
    assert (done.returncode, done.stdout, done.stderr) == (0, "True ()\n", "")


def rounded(found: Iterable[Any]) -> Any:
    """Return documents whose numbers do not show in which order they were added up."""
    documents = json.dumps([to_document(one) for one in found])
    return json.loads(documents, parse_float=lambda text: round(float(text), 6))


def writers() -> int:
    return sum(thread.name == "draftgate-writer" for thread in threading.enumerate())


COUNTS: dict[str, Any] = {
    "counts_usable": True,
    "speculated": True,
    "spec_method": "draft_model",
    "spec_steps": 5,
    "spec_draft_tokens": 10,
    "spec_accepted_tokens": 6,
    "spec_draft_tokens_per_pos": [5, 5],
    "spec_accepted_tokens_per_pos": [4, 2],
}
SIDE: dict[str, Any] = {
    "trace_id": None,
    "span_id": None,
    "start_unix_ns": None,
    "error_type": None,
    "ttft_s": 0.5,
    "ttfo_s": None,
    "tpot_s": 0.15,
    "e2e_s": 2.0,
    "input_tokens": 12,
    "cached_input_tokens": None,
    "output_tokens": 11,
    "fallback": False,
    "counts_usable": False,
    "speculated": False,
    "spec_steps": None,
    "spec_draft_tokens": None,
    "spec_accepted_tokens": None,
    "spec_draft_tokens_per_pos": None,
    "spec_accepted_tokens_per_pos": None,
    "quality": [],
    "client_lag_s": None,
    "request_model": "target",
    "response_model": "target",
    "temperature": 0.0,
    "top_p": None,
    "top_k": None,
    "sampler": None,
    "max_tokens": 64,
    "seed": None,
    "fingerprint": None,
    "spec_lossless": None,
    "spec_method": None,
    "carries": None,
    "workload": None,
    "concurrency": None,
    "launch": None,
    "look": None,
    "looks": None,
    "change": None,
    "conversation_id": None,
    "turn": None,
    "own_history": None,
    "price": None,
    "cohort": "chat",
    "duplicates": 0,
    **{
        f"{name}_{metric}": None
        for metric in ("groundedness", "task_completion")
        for name in ("score", "unscored", "judge")
    },
}


def side(prefix: str, number: int, **fields: Any) -> dict[str, Any]:
    """Return one side's columns of a generation with this number."""
    own = {
        "trace_id": f"{number:032x}",
        "span_id": f"{number:016x}",
        "start_unix_ns": START + number,
    }
    return {f"{prefix}_{name}": value for name, value in (SIDE | own | fields).items()}


def stored(generation: Generation) -> Generation:
    """Return the generation as the collector returns it: flagged if it breaks a law."""
    broken = generation.speculation == BROKEN
    return replace(generation, quality=("counts:accepted_exceeds_draft",) if broken else ())


def score(generation: Generation, metric: str, **fields: Any) -> Score:
    return score_of(generation, **({"value": None, "metric": metric} | fields))


def verdict(client: Client, rollout: str) -> Verdict:
    made = made_verdict(rollout=rollout, summary="too few ☃", versions={"draftgate": "0.1.0"})
    return resting_on(client, made)


def otlp_json(span: Span) -> dict[str, Any]:
    """Return OTLP JSON of the span, with one attribute that plain JSON could not carry."""
    inner = {"key": "bytes_hex", "value": {"stringValue": "zz"}}
    values = [
        {"doubleValue": "Infinity"},
        {"bytesValue": "AA=="},
        {"kvlistValue": {"values": [inner]}},
    ]
    sent = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_span_id,
        "name": span.name,
        "kind": 2,
        "startTimeUnixNano": str(span.start_unix_ns),
        "endTimeUnixNano": span.end_unix_ns,
        "status": {"code": 2, "message": span.status_message},
        "attributes": [{"key": "odd", "value": {"arrayValue": {"values": values}}}],
    }
    scope = {"scope": {"name": span.scope_name}, "spans": [sent]}
    return {"resourceSpans": [{"scopeSpans": [scope]}]}
