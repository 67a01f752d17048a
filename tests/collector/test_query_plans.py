"""Every read of the API finds its rows through an index."""

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpx
import pytest
from made_generations import generation_of
from otlp_bodies import body_of
from sqlalchemy import Engine, event

from collector.client.asgi_transport import InProcessTransport
from collector.contract import Arm, encode
from collector.serving.app import create_app
from collector.settings import Settings
from collector.store import Keep, Store

READS = {
    "/api/v1/rollouts": {},
    "/api/v1/rollouts/k4/summary": {},
    "/api/v1/rollouts/k4/summary?start=1699999000&end=1700009000": {},
    "/api/v1/rollouts/k4/timeseries?step=minute&cohort=chat": {},
    "/api/v1/rollouts/k4/timeseries?step=day&start=1699999000&end=1700009000": {},
    "/api/v1/generations?order=newest&limit=2": {},
    "/api/v1/generations?order=newest&arm=baseline&cohort=chat": {"rollout": "k4"},
    "/api/v1/generations?arrived_since=2026-01-01&arrived_until=2026-02-01": {"rollout": "k4"},
    "/api/v1/generations": {"rollout": "k4", "content": "true", "limit": "2"},
    "/api/v1/generations?arm=baseline&cohort=chat&after=WzJd": {"rollout": "k4"},
    "/api/v1/pairs": {"rollout": "k4", "content": "true", "limit": "2"},
    "/api/v1/pairs?after=WyJwMSIsIDBd": {"rollout": "k4", "cohort": "chat"},
    "/api/v1/traces/00000000000000000000000000000001": {},
    "/api/v1/scores": {"rollout": "k4", "metric": "m"},
    "/api/v1/scores?after=WzEsICJtIiwgImUiLCAiMSJd": {"rollout": "k4"},
    "/api/v1/feedback": {"rollout": "k4"},
    "/api/v1/feedback?newest=5": {"rollout": "k4"},
    "/api/v1/regressions": {"rollout": "k4"},
    "/api/v1/regressions?limit=1&after=Wy0wLjUsICJwIiwgMF0": {"rollout": "k4", "cohort": "chat"},
    "/api/v1/regressions?cohort=chat": {"rollout": "k4", "metric": "m"},
    "/api/v1/samples": {"metric": "vllm:num_requests_running"},
    "/api/v1/samples?since_unix_ns=5&until_unix_ns=9&after=WzcsICIwMCJd": {"metric": "vllm:x"},
    "/api/v1/samples?service_name=s": {"metric": "vllm:x"},
    "/api/v1/verdicts": {},
    "/api/v1/rollouts/k4/verdicts?same_candidate=true": {},
    "/api/v1/verdicts?limit=5": {"rollout": "k4"},
}


@pytest.fixture
def sqlite_read(database_url: str) -> Iterator[tuple[httpx.Client, Engine]]:
    app = create_app(Settings(database_url=database_url))
    transport = InProcessTransport(app, app.router.lifespan_context(app))
    with httpx.Client(base_url="http://collector", transport=transport) as http:
        fill(http)
        yield http, app.state.collector.store.engine


@pytest.mark.parametrize("path", READS)
def test_a_read_scans_no_table(
    path: str,
    sqlite_read: tuple[httpx.Client, Engine],
) -> None:
    """SQLite's plan of every SELECT that the read runs names an index for every table."""
    http, engine = sqlite_read
    seen = watch(engine)
    assert http.get(with_query(path, READS[path])).status_code == 200
    plans = [line for sql, values in list(seen) for line in plan(engine, sql, values)]
    assert plans
    # anon_1 is a subquery's own result, which has no index; the others are read whole, and are
    # small: a row for each series, each rollout, and each commit since the last fold.
    whole = "anon_1|series|pair_count|rollup_delta"
    scans = [line for line in plans if re.match(rf"SCAN (?!{whole}|.*USING .*INDEX)", line)]
    assert scans == []


def test_metrics_read_no_row_of_what_grows(sqlite_read: tuple[httpx.Client, Engine]) -> None:
    """What is walked, for the rollouts decided on last, are indexes with a row for each decision.

    (subquery-1) and the like are results of these.
    """
    http, engine = sqlite_read
    change = {"state": "on", "reason": "begin"}
    assert http.post("/api/v1/rollouts/k4/switch", json=change).status_code == 200
    seen = watch(engine)
    assert http.get("/metrics").status_code == 200
    plans = [line for sql, values in list(seen) for line in plan(engine, sql, values)]
    log = "verdict|switch_event|ramp_step|registered_policy"
    walks = rf"SCAN ({log}) USING COVERING INDEX|SCAN (\(subquery-\d+\)|anon_\d|rollup_delta)"
    assert plans
    assert [line for line in plans if line.startswith("SCAN") and not re.match(walks, line)] == []


@pytest.mark.parametrize("path", ["/api/v1/pairs", "/api/v1/generations", "/api/v1/regressions"])
def test_a_cohort_of_none_reads_no_generation(
    path: str, postgres_http: httpx.Client, postgres_engine: Engine
) -> None:
    """Whoever looked for one would walk the whole rollout."""
    seen = watch(postgres_engine)
    answer = postgres_http.get(path, params={"rollout": "k4", "cohort": "none such"})
    assert answer.status_code == 200
    read = [sql for sql, _ in seen if re.search(r"FROM (generation|regression)\b", sql)]
    assert [sql.split()[1] for sql in read] == ["generation.id"]  # whether there is the rollout


@pytest.mark.parametrize("accept", ["application/json", "application/vnd.apache.arrow.stream"])
@pytest.mark.parametrize("path", READS)
def test_a_read_on_postgresql_can_find_its_rows_by_an_index(
    path: str, accept: str, postgres_http: httpx.Client, postgres_engine: Engine
) -> None:
    """With whole tables made dear to read, every scan has a condition on its index, or stops early.

    The planner still takes a sequential scan where nothing else would do, and then the plan shows
    it; a walk of a whole index shows as a scan without a condition and without a limit.
    """
    seen = watch(postgres_engine)
    headers = {"Accept": accept}
    assert postgres_http.get(with_query(path, READS[path]), headers=headers).status_code == 200
    walked = [
        scan for sql, values in list(seen) for scan in whole_scans(postgres_engine, sql, values)
    ]
    small = {"series", "pair_count", "rollup_delta"}
    assert [name for name in walked if name not in small] == []


def whole_scans(engine: Engine, sql: str, values: Any) -> Iterable[str]:
    """Yield the tables of which the plan may read every row."""
    with engine.connect() as connection, connection.begin():
        # Of tables this small the planner would as soon read all of two and join them.
        for way in ("seqscan", "hashjoin", "mergejoin"):
            connection.exec_driver_sql(f"SET LOCAL enable_{way} = off")
        (document,) = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {sql}", values).one()
    waiting = [(document[0]["Plan"], False)]
    while waiting:
        node, limited = waiting.pop()
        limited = limited or node["Node Type"] == "Limit"
        reads = "Scan" in node["Node Type"] and "Relation Name" in node
        bounded = "Index Cond" in node or "Recheck Cond" in node
        if reads and not bounded and (not limited or node["Node Type"] == "Seq Scan"):
            yield node["Relation Name"]
        # What sorts reads everything, whatever limit stands above it.
        limited = limited and node["Node Type"] not in ("Sort", "Aggregate", "Hash")
        waiting += [(child, limited) for child in node.get("Plans", ())]


def test_writing_and_upkeep_scan_no_table(
    database_url: str, sqlite_read: tuple[httpx.Client, Engine]
) -> None:
    """Nor does what stores spans, folds rollups, counts and orders pairs, and drops old days."""
    http, engine = sqlite_read
    store = Store.open(database_url)
    written, kept = (
        watch(one, "SELECT|DELETE|UPDATE|WITH|INSERT") for one in (engine, store.engine)
    )
    fill(http, after=100)
    keep_up(store)
    store.close()
    used = once_each([*written, *kept])
    # As above; and rows that are given.
    small = r"anon_1|series|pair_count|rollup_delta|json_each|\d+ CONSTANT ROWS"
    found = {sql: plan(engine, sql, given) for sql, given in used.items()}
    whole = re.compile(rf"SCAN (?!{small}|.*USING .*INDEX)")
    assert [
        (sql, line) for sql, lines in found.items() for line in lines if whole.match(line)
    ] == []


def test_upkeep_on_postgresql_can_find_its_rows_by_an_index(
    new_database_url: Callable[[str], str],
) -> None:
    """Nor is a table read whole there; what goes by days goes with them."""
    app = create_app(Settings(database_url=new_database_url("postgresql")))
    transport = InProcessTransport(app, app.router.lifespan_context(app))
    with httpx.Client(base_url="http://collector", transport=transport) as http:
        fill(http)
        store = app.state.collector.store
        seen = watch(store.engine, "SELECT|DELETE|UPDATE|WITH")
        fill(http, after=100)
        keep_up(store)
        walked = {
            (name, sql)
            for sql, given in once_each(seen).items()
            for name in whole_scans(store.engine, sql, given)
        }
    small = {"series", "pair_count", "rollup_delta"}
    assert [(name, sql) for name, sql in walked if name not in small] == []


def keep_up(store: Store) -> None:
    """Do everything that upkeep does, and retention of all."""
    for work in (store.fold, store.count_pairs, store.order_regressions):
        work(at_most=1000)
    store.promote_engine_spans(10**10, at_most=10)
    while store.retain(Keep(spans_s=1, content_s=1), now_unix_s=10**10):
        pass


def once_each(statements: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return each statement once, with values that it was run with."""
    used = {sql: given[0] if isinstance(given, list) else given for sql, given in statements}
    for table in ("rollup_minute", "pair_count", "regression"):
        assert any(table in sql for sql in used), table
    return used


def test_postgresql_compiles_no_plan(postgres_engine: Engine) -> None:
    """It would for a page's first rows, by what all of the rollout's would cost."""
    with postgres_engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW jit").scalar_one() == "off"


@pytest.fixture(scope="module")
def postgres_app(new_database_url: Callable[[str], str]) -> Any:
    return create_app(Settings(database_url=new_database_url("postgresql")))


@pytest.fixture(scope="module")
def postgres_http(postgres_app: Any) -> Iterator[httpx.Client]:
    transport = InProcessTransport(postgres_app, postgres_app.router.lifespan_context(postgres_app))
    with httpx.Client(base_url="http://collector", transport=transport) as http:
        fill(http)
        yield http


@pytest.fixture
def postgres_engine(postgres_app: Any, postgres_http: httpx.Client) -> Engine:
    assert postgres_http.get("/readyz").status_code == 200
    engine: Engine = postgres_app.state.collector.store.engine
    return engine


def test_the_arrow_table_scans_no_table(
    sqlite_read: tuple[httpx.Client, Engine],
) -> None:
    """The pairs of a whole rollout come in index order, without a sort."""
    http, engine = sqlite_read
    seen = watch(engine)
    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    assert http.get("/api/v1/pairs?rollout=k4", headers=accept).status_code == 200
    by_pair = "ix_generation_rollout_prompt_id_repeat_arm (rollout=? AND prompt_id>?)"
    found = [line for sql, values in list(seen) for line in plan(engine, sql, values)]
    assert found == [
        "SEARCH generation USING COVERING INDEX ix_generation_rollout_id (rollout=?)",
        "SEARCH generation",  # the greatest id
        "SEARCH score USING COVERING INDEX sqlite_autoindex_score_2",  # the greatest revision
        "SEARCH generation USING INDEX ix_generation_rollout_id (rollout=? AND id>?)",
        "SEARCH score USING COVERING INDEX sqlite_autoindex_score_1 (trace_id=? AND span_id=?)",
        "USE TEMP B-TREE FOR DISTINCT",
        "SEARCH generation USING INDEX ix_generation_sentinel (rollout=? AND id>? AND id<?)",
        f"SEARCH generation USING INDEX {by_pair}",
        "SEARCH generation USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH score USING INDEX sqlite_autoindex_score_1 (trace_id=? AND span_id=?)",
    ]


@pytest.mark.parametrize("after", [None, "Wy0wLjUsICJwIiwgMF0"])
@pytest.mark.parametrize("cohort", [None, "chat"])
def test_regressions_come_in_the_order_of_an_index(
    cohort: str | None,
    after: str | None,
    sqlite_read: tuple[httpx.Client, Engine],
) -> None:
    """A page of them is the index's next rows, without a sort; so are counts."""
    http, engine = sqlite_read
    seen = watch(engine)
    query = {"rollout": "k4", "cohort": cohort, "after": after}
    given = {name: value for name, value in query.items() if value is not None}
    assert http.get("/api/v1/regressions", params=given).status_code == 200
    of_them = [(sql, values) for sql, values in list(seen) if "FROM regression" in sql]
    plans = [line for sql, values in of_them for line in plan(engine, sql, values)]
    fields = "metric_cohort" if cohort else "metric"
    index = f"INDEX ix_regression_rollout_{fields}_change_prompt_id_repeat"
    # What is only counted may come in any order.
    plans = [re.sub(r"COVERING INDEX \S+", "COVERING INDEX", line) for line in plans]
    narrowed = "rollout=? AND metric=? AND cohort=?" if cohort else "rollout=? AND metric=?"
    beyond = " AND (change,prompt_id,repeat)>(?,?,?)" if after else ""
    assert plans == [
        f"SEARCH regression USING {index} ({narrowed}{beyond})",
        "SEARCH regression USING COVERING INDEX (rollout=? AND metric>?)",
        "CO-ROUTINE anon_1",
        f"SEARCH regression USING COVERING INDEX ({narrowed})",
        "SCAN anon_1",
    ]


def fill(http: httpx.Client, *, after: int = 0) -> None:
    spans = [
        encode(generation_of(after + 2 * n + side, prompt_id=f"p{after + n}", arm=arm))
        for n in range(20)
        for side, arm in enumerate(Arm, 1)
    ]
    headers = {"Content-Type": "application/x-protobuf"}
    assert http.post("/v1/traces", content=body_of(spans), headers=headers).status_code == 200
    score = {"metric": "m", "evaluator": "e", "version": "1", "value": 1.0}
    scores = [score | {"trace_id": span.trace_id, "span_id": span.span_id} for span in spans]
    assert http.post("/api/v1/scores", json=scores).status_code == 204


def watch(engine: Engine, verbs: str = "SELECT") -> list[tuple[str, Any]]:
    """Collect every statement of these kinds that runs from now on, but for those of upkeep."""
    seen: list[tuple[str, Any]] = []

    def before(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        is_upkeep = threading.current_thread().name == "draftgate-upkeep"
        if re.match(verbs, statement) and not is_upkeep:
            seen.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", before)
    return seen


def plan(engine: Engine, sql: str, values: Any) -> list[str]:
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)
        return [row.detail for row in rows]


def with_query(path: str, query: dict[str, str]) -> httpx.URL:
    return httpx.URL(path).copy_merge_params(query)
