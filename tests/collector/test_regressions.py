"""Pairs whose candidate scored lower, in order, as scores and spans arrive in any order."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from made_generations import generation_of, score_of
from otlp_bodies import received

from collector.client import Client, RegressionPage
from collector.client.asgi_transport import InProcessTransport
from collector.contract import Arm, Generation, Regression, Score, encode
from collector.ingest.preparation import prepare
from collector.serving.app import create_app
from collector.serving.upkeep import Upkeep
from collector.settings import Settings
from collector.store import Batch, Keep, Store
from collector.store.upkeep import regressions


@pytest.fixture
def store(any_database_url: str) -> Any:
    """Open a store whose upkeep is the test's own."""
    with Store.open(any_database_url) as opened:
        yield opened


@pytest.fixture
def put(store: Store) -> Callable[..., Generation]:
    """Give a function that stores one side of a pair and returns it."""

    def put(number: int, arm: Arm, prompt_id: str, cohort: str = "chat") -> Generation:
        fields = {"rollout": "k4", "prompt_id": prompt_id, "repeat": 0, "cohort": cohort}
        made = replace(generation_of(number), **fields, arm=arm)
        store.write(Batch(spans=prepare(received([encode(made)]))))
        return made

    return put


def score(of: Generation, value: float | None, metric: str = "m", version: str = "1") -> Score:
    reason = "no answer" if value is None else None
    return score_of(of, value, metric=metric, version=version, unscored_reason=reason)


def settle(store: Store) -> None:
    """Do what upkeep would, a few at a time."""
    while store.order_regressions(at_most=3):
        pass


@contextlib.contextmanager
def asking(store: Store) -> Any:
    """Open a client of the store's database."""
    url = store.engine.url.render_as_string(hide_password=False)
    with Client.local(url) as client:
        yield client


def of(prompt_id: str, baseline: float, candidate: float, metric: str = "m", **fields: Any) -> Any:
    plain = {"repeat": 0, "cohort": "chat", "change": candidate - baseline}
    return Regression(
        prompt_id=prompt_id, metric=metric, baseline=baseline, candidate=candidate,
        **(plain | fields),
    )  # fmt: skip


def test_the_greatest_loss_stands_first(store: Store, put: Callable[..., Generation]) -> None:
    """A pair once, by the metric that it lost most in or by one; by cohort; page by page."""
    values = {"p1": (0.9, 0.8), "p2": (1.0, 0.0), "p3": (0.5, 0.5), "p4": (0.2, 0.7)}
    for n, (prompt_id, sides) in enumerate(values.items()):
        cohort = "chat" if n % 2 else "code"
        for arm, value in zip(Arm, sides, strict=True):
            made = put(2 * n + (arm is Arm.CANDIDATE) + 1, arm, prompt_id, cohort)
            store.write(Batch(scores=[score(made, value), score(made, value / 2, "half")]))
    settle(store)
    p1, p2 = of("p1", 0.9, 0.8, cohort="code"), of("p2", 1.0, 0.0)
    halves = [of("p2", 0.5, 0.0, "half"), of("p1", 0.45, 0.4, "half", cohort="code")]
    with asking(store) as client:
        assert list(client.regressions("k4").regressions) == [p2, p1]
        assert client.regressions("k4").counted == 2
        assert client.regressions("k4").metrics == ("half", "m")
        assert list(client.regressions("k4", metric="half").regressions) == halves
        assert list(client.regressions("k4", cohort="code").regressions) == [p1]
        assert list(client.regressions("k4", cohort="code", metric="m").regressions) == [p1]
        assert client.regressions("k4", cohort="rag") == RegressionPage((), None, (), 0, 10_000, 0)
        first = client.regressions("k4", limit=1)
        assert list(first.regressions) == [p2]
        second = client.regressions("k4", limit=1, after=first.next)
        assert (list(second.regressions), second.next) == ([p1], None)


def test_whatever_comes_first(store: Store, put: Callable[..., Generation]) -> None:
    """A score may be there before its span, and its order follows the latest post of it."""
    baseline = put(1, Arm.BASELINE, "p")
    late = replace(baseline, trace_id=f"{2:032x}", span_id=f"{2:016x}")
    store.write(Batch(scores=[score(baseline, 1.0), score(late, 0.25)]))
    settle(store)
    with asking(store) as client:
        assert client.regressions("k4").regressions == ()
        assert client.regressions("k4").waiting_scores == 0
    put(2, Arm.CANDIDATE, "p")
    settle(store)
    with asking(store) as client:
        assert list(client.regressions("k4").regressions) == [of("p", 1.0, 0.25)]
    for value, expected in ((0.5, [of("p", 1.0, 0.5)]), (1.0, []), (0.0, [of("p", 1.0, 0.0)])):
        store.write(Batch(scores=[score(late, value, version="2")]))
        settle(store)
        with asking(store) as client:
            assert list(client.regressions("k4").regressions) == expected
    store.write(Batch(scores=[score(late, None, version="3")]))
    settle(store)
    with asking(store) as client:
        assert client.regressions("k4").regressions == ()


@pytest.mark.parametrize("backend", ["sqlite", "postgresql", "clickhouse"])
def test_every_backend_orders_alike(backend: str, new_settings: Callable[[str], Settings]) -> None:
    """If the spans are in ClickHouse, the order is stored beside them in the same way."""
    settings = new_settings(backend)
    opened = Store.open(settings.database_url, analytics_url=settings.analytics_url)
    with contextlib.closing(opened) as store:
        sides = [
            replace(generation_of(2 * n + at), rollout="k4", prompt_id=f"p{n}", repeat=0, arm=arm)
            for n in range(1, 4)
            for at, arm in enumerate(Arm)
        ]
        early = [score(sides[1], 0.5), score(sides[0], 1.0)]
        store.write(Batch(scores=early))
        store.write(Batch(spans=prepare(received([encode(side) for side in sides]))))
        settle(store)
        late = [score(side, 1.0 - 0.2 * n) for n, side in enumerate(sides[2:4])]
        store.write(Batch(scores=[*late, *(score(side, 1.0) for side in sides[4:])]))
        settle(store)
        with store.read() as connection:
            assert not regressions.any_waiting(connection)
            page = regressions.page(
                connection, regressions.RegressionFilter("k4"), limit=5, after=None
            )
        assert [(one.prompt_id, one.change) for one in page.regressions] == [
            ("p1", -0.5),
            ("p2", pytest.approx(-0.2)),
        ]


def test_upkeep_orders_them_by_itself(any_database_url: str) -> None:
    """After some seconds, also where nothing but scores has come; then it has nothing to do."""
    now = time.time()
    with Store.open(any_database_url) as store:
        upkeep = Upkeep(store, Keep(), clock=lambda: now)
        for n, arm in enumerate(Arm, 1):
            made = replace(generation_of(n), rollout="k4", prompt_id="p", repeat=0, arm=arm)
            store.write(Batch(spans=prepare(received([encode(made)])), scores=[score(made, 1 / n)]))
        assert upkeep.step() == 0
        now += 5
        while upkeep.step():
            pass
        with asking(store) as client:
            assert [one.change for one in client.regressions("k4").regressions] == [-0.5]


def test_a_pair_that_lost_a_side_to_retention_is_left_out(
    store: Store, put: Callable[..., Generation]
) -> None:
    """If a day's spans are deleted, none of its pairs is in the order."""
    for n, arm in enumerate(Arm, 1):
        store.write(Batch(scores=[score(put(n, arm, "p"), 1 / n)]))
    settle(store)
    while store.retain(Keep(spans_s=1.0), time.time() + 3 * 86_400):
        pass
    settle(store)
    with store.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM regression").scalar() == 0


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"rollout": "none"}, 404),
        ({"rollout": "k4", "metric": ""}, 422),
        ({"rollout": "k4", "after": "WyJuYW4iLCAicCIsIDBd"}, 400),  # ["nan", "p", 0]
        ({"rollout": "k4", "after": "WyJ4IiwgInAiLCAwXQ"}, 400),  # ["x", "p", 0]
        ({"rollout": "k4", "after": "WzEsICJwIiwgMF0"}, 400),  # [1, "p", 0]
        ({"rollout": "k4", "limit": "0"}, 422),
    ],
)
def test_unusable_questions_are_refused(
    query: dict[str, str], status: int, database_url: str
) -> None:
    """The error names the wrong place, and is never a 500."""
    with Store.open(database_url) as store:
        store.write(Batch(spans=prepare(received([encode(generation_of(1))]))))
    app = create_app(Settings(database_url=database_url))
    transport = InProcessTransport(app, app.router.lifespan_context(app))
    with httpx.Client(base_url="http://collector", transport=transport) as http:
        assert http.get("/api/v1/regressions", params=query).status_code == status
