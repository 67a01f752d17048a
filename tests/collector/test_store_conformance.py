"""One store interface, three backends: equal writes give equal reads."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pyarrow as pa
import pytest
from collector_in_process import http_of
from made_generations import engine_span_of, generation_of
from otlp_bodies import PROTOBUF, body_of

from collector.contract import Arm, Span, encode
from collector.settings import Settings
from collector.store import Keep, Store
from collector.store.upkeep import rollup_check, sizes

NewSettings = Callable[[str], Settings]

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
BACKENDS = ("postgresql", "clickhouse", "clickhouse-http")
DAY_S = 86_400
FIRST_DAY = 20_000


@pytest.fixture
def client_of(new_settings: NewSettings) -> Iterator[Callable[[str], httpx.Client]]:
    """Speak HTTP to the application on an empty store of a kind."""
    with contextlib.ExitStack() as stack:
        yield lambda kind: stack.enter_context(http_of(new_settings(kind)))


def traffic() -> list[Span]:
    """Make generations of both arms, in two rollouts and three cohorts, over three hours."""
    made = []
    for n in range(1, 61):
        start = 1_700_000_000_000_000_000 + n * 180_000_000_000
        made.append(
            generation_of(
                n,
                start_unix_ns=start,
                end_unix_ns=start + (n % 7 + 1) * 300_000_000,
                rollout="k4" if n % 5 else "it's \\ k8",
                arm=list(Arm)[n % 2],
                cohort=("chat", "code", None)[n % 3],
                prompt_id=f"p{n // 2 % 20:02} é",
                repeat=n // 40,
                error_type="timeout" if n % 11 == 0 else None,
                ttft_s=None if n % 13 == 0 else n / 100,
                input_tokens=2**62 if n == 9 else n,
                quality=("invalid_json",) if n % 17 == 0 else (),
                dims={"language": "en", "text": "a\0b"},
            )
        )
    return [encode(generation) for generation in made]


def sentinels() -> list[Span]:
    """Make requests that ask one prompt again and again; one of them fails."""
    made = [
        generation_of(
            n,
            rollout="k4",
            arm=list(Arm)[n % 2],
            prompt_id=None,
            repeat=n // 2,
            launch="first",
            sentinel="p é",
            sentinel_after="q" if n % 4 > 1 else None,
            sentinel_answer=None if n == 105 else f"{n // 104:032x}",
        )
        for n in range(100, 110)
    ]
    return [encode(generation) for generation in made]


def engine_side(of: Span) -> Span:
    """Make the engine's own span of a client's."""
    return engine_span_of(
        of,
        attributes={
            "gen_ai.latency.time_to_first_token": 0.07,
            "gen_ai.latency.time_in_queue": 0.01,
            "gen_ai.usage.prompt_tokens": 12,
            "gen_ai.usage.completion_tokens": 11,
        },
    )


def score_of(span: Span, value: float, **fields: Any) -> dict[str, Any]:
    given = {"metric": "quality", "evaluator": "judge", "version": "1", "value": value}
    return {"trace_id": span.trace_id, "span_id": span.span_id} | given | fields


def fill(http: httpx.Client, odd_span: Span) -> None:
    """Post traffic in batches that overlap, scores twice, feedback, and one batch again."""
    spans = [*traffic(), odd_span]
    spans = [replace(s, attributes=s.attributes | {"gen_ai.input.messages": s.name}) for s in spans]
    for first, last in ((0, 30), (20, 61), (20, 61)):
        accept(http.post("/v1/traces", content=body_of(spans[first:last]), headers=PROTOBUF))
    accept(http.post("/v1/traces", content=body_of(sentinels()), headers=PROTOBUF))
    engines = [engine_side(span) for span in spans[:6]]
    accept(http.post("/v1/traces", content=body_of(engines), headers=PROTOBUF))
    accept(http.post("/v1/traces", content=body_of(engines), headers=PROTOBUF))
    scores = [score_of(span, n / 60) for n, span in enumerate(spans[:40])]
    scores.append(score_of(spans[2], 0.25, version="2"))
    accept(http.post("/api/v1/scores", json=scores))
    accept(http.post("/api/v1/scores", json=[score_of(spans[3], 0.75), *scores[:2]]))
    ids = {"trace_id": spans[5].trace_id, "span_id": spans[5].span_id}
    given = ids | {"source": "user", "time_unix_ns": 1}
    for kind in ("thumbs_up", "thumbs_down"):
        accept(http.post("/api/v1/feedback", json=[given | {"kind": kind, "comment": "well"}]))


def accept(answer: httpx.Response) -> None:
    assert answer.is_success, answer.text


def answers(http: httpx.Client) -> dict[str, Any]:
    """Ask everything that can be asked; pages are read to their end."""
    found: dict[str, Any] = {"rollouts": http.get("/api/v1/rollouts").json()}
    for name in ("k4", "it's \\ k8"):
        query = {"rollout": name}
        for window in ({}, {"start": "2023-11-14T22:20:00Z", "end": "2023-11-15T00:41:00Z"}):
            answer = http.get(f"/api/v1/rollouts/{name}/summary", params=window)
            found[f"{name} summary {window}"] = answer.json()
        for step in ("minute", "hour", "day"):
            answer = http.get(f"/api/v1/rollouts/{name}/timeseries", params={"step": step})
            found[f"{name} by {step}"] = answer.json()
        for subject in ("generations", "pairs", "scores", "feedback"):
            found[f"{name} {subject}"] = list(paged(http, subject, query))
        found[f"{name} with text"] = list(paged(http, "pairs", query | {"content": "true"}))
        found[f"{name} newest"] = list(paged(http, "generations", query | {"order": "newest"}))
        for subject, more in (
            ("pairs", {}),
            ("pairs", {"arrived_after": "0", "scored_after": "0"}),
            ("generations", {"scores": "true", "content": "true"}),
        ):
            answer = http.get(f"/api/v1/{subject}", params=query | more, headers=ARROW)
            table = pa.ipc.open_stream(answer.content).read_all()
            found[f"{name} {subject} {more}"] = sorted(table.to_pylist(), key=repr)
            asked = (table.schema.metadata or {}).get(b"sentinels", b"[]")
            found[f"{name} {subject} {more} sentinels"] = json.loads(asked)
    found["trace"] = http.get("/api/v1/traces/0af7651916cd43dd8448eb211c80319c").json()
    found["of no rollout"] = http.get("/api/v1/pairs", params={"rollout": "x"}).json()
    return found


def paged(http: httpx.Client, subject: str, query: dict[str, str]) -> Iterator[Any]:
    after: str | None = None
    while True:
        position = {"after": after} if after else {}
        page = http.get(f"/api/v1/{subject}", params=query | {"limit": "7"} | position).json()
        yield from page[subject]
        after = page["next"]
        if after is None:
            return


def assert_alike(mine: Any, theirs: Any) -> None:
    """Compare to the last count; sums of floats may differ in their last bits."""
    if isinstance(theirs, dict):
        assert list(mine) == list(theirs)
        for name, value in theirs.items():
            assert_alike(mine[name], value)
    elif isinstance(theirs, list):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert_alike(one, other)
    else:
        assert type(mine) is type(theirs)
        assert mine == (
            pytest.approx(theirs, rel=1e-9, abs=1e-6) if isinstance(theirs, float) else theirs
        )


@pytest.mark.parametrize("kind", BACKENDS)
def test_every_backend_answers_alike(
    client_of: Callable[[str], httpx.Client], odd_span: Span, kind: str
) -> None:
    """After overlapping and repeated batches, every listing and every sum is SQLite's."""
    found = {}
    for backend in ("sqlite", kind):
        http = client_of(backend)
        fill(http, odd_span)
        found[backend] = answers(http)
    assert_alike(found[kind], found["sqlite"])


@pytest.mark.parametrize("kind", ["sqlite", *BACKENDS])
def test_sentinels_count_in_no_pair_and_no_rollup(
    client_of: Callable[[str], httpx.Client], kind: str
) -> None:
    """They stand beside the table of pairs, in the order in which they were sent."""
    http = client_of(kind)
    accept(http.post("/v1/traces", content=body_of(traffic()), headers=PROTOBUF))
    before = answers(http)
    accept(http.post("/v1/traces", content=body_of(sentinels()), headers=PROTOBUF))
    after = answers(http)
    asked = after.pop("k4 pairs {} sentinels")
    assert before.pop("k4 pairs {} sentinels") == []
    listed = ("k4 generations", "k4 newest")
    before = {name: value for name, value in before.items() if not name.startswith(listed)}
    assert_alike({name: after[name] for name in before}, before)
    assert [(one["number"], one["arm"]) for one in asked] == [
        (n // 2, list(Arm)[n % 2].value) for n in range(100, 110)
    ]
    assert [one["number"] for one in asked if one["answer"] is None] == [52]
    assert http.get("/api/v1/unpaired", params={"rollout": "k4"}).json()["unpaired"] == [
        one
        for one in http.get("/api/v1/unpaired", params={"rollout": "k4"}).json()["unpaired"]
        if one["reason"] != "no_prompt_id"
    ]


@pytest.mark.parametrize("kind", ["sqlite", *BACKENDS])
def test_folding_and_counting_change_no_answer(
    new_settings: NewSettings, odd_span: Span, kind: str
) -> None:
    """Folded and unfolded counts give equal answers, and equal the sums of the rows."""
    settings = new_settings(kind)
    with http_of(settings) as http:
        fill(http, odd_span)
        before = answers(http)
        with opened(settings) as store:
            while store.fold(at_most=5000):
                pass
            while store.count_pairs(at_most=5000):
                pass
            with store.read() as connection:
                assert list(rollup_check.differences(connection)) == []
        assert_alike(answers(http), before)


@pytest.mark.parametrize("kind", ["sqlite", *BACKENDS])
def test_old_days_go_alike(
    new_settings: NewSettings, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Text first, then spans with their scores; rollups by the hour stay, and pairs are right."""
    settings = new_settings(kind)
    # The store may not be opened twice at once by two clocks: the collector's is the real one.
    with http_of(settings) as http:
        for day in range(4):
            now = (FIRST_DAY + day) * DAY_S + 60
            monkeypatch.setattr(time, "time", lambda now=now: float(now))
            made = [
                generation_of(
                    day * 10 + n,
                    start_unix_ns=now * 10**9,
                    end_unix_ns=(now + 1) * 10**9,
                    arm=list(Arm)[n % 2],
                    prompt_id=f"p{day}-{n // 2}" if n < 6 else "p of two days",
                )
                for n in range(1, 8 - day % 2)
            ]
            spans = [encode(one) for one in made]
            accept(http.post("/v1/traces", content=body_of(spans), headers=PROTOBUF))
            accept(http.post("/api/v1/scores", json=[score_of(span, 1.0) for span in spans]))
        before = http.get("/api/v1/rollouts/k4/timeseries", params={"step": "day"}).json()
        with opened(settings) as store:
            store.count_pairs(at_most=5000)
            while store.retain(Keep(2 * DAY_S, DAY_S), (FIRST_DAY + 4) * DAY_S):
                pass
            with store.read() as connection:
                assert list(rollup_check.differences(connection)) == []
                held = sizes.row_counts(connection)
                assert sizes.days(connection) == [FIRST_DAY + 2, FIRST_DAY + 3]
        names = ("span", "span_key", "generation", "score", "content")
        assert [held[name] for name in names] == [13, 13, 13, 13, 0]
        (overview,) = http.get("/api/v1/rollouts").json()["rollouts"]
        assert overview["pairs"] == 5
        assert http.get("/api/v1/rollouts/k4/timeseries", params={"step": "day"}).json() == before


def opened(settings: Settings) -> Store:
    return Store.open(settings.database_url, analytics_url=settings.analytics_url)
