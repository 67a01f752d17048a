"""Leases on unscored generations, on both databases: shared, renewed, taken over, finished."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pytest
from collector_in_process import http_of
from made_generations import pair_side, score_of
from otlp_bodies import body_of, received
from sqlalchemy import func, select, update

from collector.api_key import ApiKey, Scope, digest, new_key_text
from collector.client import Client, ClientError
from collector.contract import LeasedEvaluator, LeaseRequest, encode
from collector.errors import ConflictError, NotFoundError
from collector.ingest.preparation import prepare
from collector.settings import Settings
from collector.store import Batch, Store, keys
from collector.store.tables import evaluation_lease, generation
from collector.store.upkeep import leases

JSON = {"Content-Type": "application/json"}

WANTED = LeaseRequest(
    rollout="k4",
    worker="w",
    evaluators=(LeasedEvaluator(metric="m", evaluator="e", version="1"),),
    pairs=True,
    generations=4,
)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(
    request: pytest.FixtureRequest, new_database_url: Callable[[str], str]
) -> Iterator[Store]:
    """Open a database of each kind that holds five pairs, and a generation of another rollout."""
    with Store.open(new_database_url(request.param)) as opened:
        write(opened, range(2, 12))
        write(opened, range(20, 21), rollout="other")
        yield opened


def write(store: Store, numbers: range, **fields: Any) -> None:
    made = [encode(pair_side(n, **fields)) for n in numbers]
    store.write(Batch(spans=prepare(received(made))))


def take(store: Store, wanted: LeaseRequest = WANTED) -> tuple[str, list[int], list[str]] | None:
    """Return a lease's id, the numbers of its generations and the prompts of its pairs."""
    with store.transaction() as connection:
        piece = leases.take(connection, wanted)
    if piece is None:
        return None
    with store.read() as connection:
        found = leases.read(connection, wanted, piece, content_of=None)
    numbers = [int(one.span_id, 16) for one in found.generations]
    return piece.id, numbers, [pair.prompt_id for pair in found.pairs]


def expire(store: Store) -> None:
    """Let every lease have run out by the database's clock."""
    with store.transaction() as connection:
        connection.execute(update(evaluation_lease).values(expires_unix_ns=1, taken_unix_ns=0))


def test_a_rollout_is_handed_out_once_in_the_order_of_arrival(store: Store) -> None:
    """Each generation to one worker, each pair with its later side; then there is nothing left."""
    taken = [take(store) for _ in range(4)]
    assert [one and one[1:] for one in taken] == [
        ([2, 3, 4, 5], ["p1", "p2"]),
        ([6, 7, 8, 9], ["p3", "p4"]),
        ([10, 11], ["p5"]),
        None,
    ]


def test_what_arrives_later_is_handed_out_next(store: Store) -> None:
    """A pair is complete with the later of its sides, whichever lease that is in."""
    while take(store):
        pass
    write(store, range(12, 13))
    assert (take(store) or ())[1:] == ([12], [])
    write(store, range(13, 14))
    assert (take(store) or ())[1:] == ([13], ["p6"])


def test_a_lease_that_ran_out_is_somebody_elses(store: Store) -> None:
    """The earlier worker gets a 409, and finished generations are not handed out again."""
    first, second = take(store), take(store)
    assert first is not None
    assert second is not None
    with store.transaction() as connection:
        leases.finish(connection, first[0])
    expire(store)
    third = take(store)
    assert third is not None
    assert third[0] != second[0]
    assert third[1:] == second[1:]
    for lost in (leases.finish, lambda c, id_: leases.renew(c, id_, 60)):
        with store.transaction() as connection, pytest.raises(ConflictError, match="somebody else"):
            lost(connection, second[0])


def test_a_renewed_lease_stays_and_one_given_back_goes_at_once(store: Store) -> None:
    """By a renewal of so many seconds, or of none."""
    first = take(store)
    assert first is not None
    expire(store)
    with store.transaction() as connection:
        leases.renew(connection, first[0], 60)
    second = take(store)
    assert second is not None
    assert second[1] == [6, 7, 8, 9]
    with store.transaction() as connection:
        leases.renew(connection, first[0], 0)
    third = take(store)
    assert third is not None
    assert third[1] == first[1]


def test_other_evaluators_are_given_the_whole_rollout(store: Store) -> None:
    """A new version too; the order in which they are named changes nothing."""
    one = LeasedEvaluator(metric="m", evaluator="e", version="2")
    both = (*WANTED.evaluators, one)
    assert (take(store) or ())[1] == [2, 3, 4, 5]
    assert (take(store, replace(WANTED, evaluators=both)) or ())[1] == [2, 3, 4, 5]
    assert (take(store, replace(WANTED, evaluators=both[::-1])) or ())[1] == [6, 7, 8, 9]


def test_the_clock_of_the_database_decides(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with another time takes nothing over; a clock set back keeps nobody waiting."""
    first = take(store)
    assert first is not None
    monkeypatch.setattr(time, "time", lambda: 4e9)
    monkeypatch.setattr(time, "time_ns", lambda: int(4e18))
    assert (take(store) or ())[1] == [6, 7, 8, 9]
    hour = 3600 * 10**9
    with store.transaction() as connection:
        connection.execute(
            update(evaluation_lease)
            .where(evaluation_lease.c.id == first[0])
            .values(
                taken_unix_ns=evaluation_lease.c.taken_unix_ns + hour,
                expires_unix_ns=evaluation_lease.c.expires_unix_ns + hour,
            )
        )
    assert (take(store) or ())[1] == first[1]


def test_a_generation_that_is_stored_below_is_handed_out_too(store: Store) -> None:
    """One that engines' spans became late, with an id that was passed already."""
    while take(store):
        pass
    with store.transaction() as connection:
        low = connection.scalar(select(func.min(generation.c.id)))
        leases.add_late(connection, [{"id": low, "rollout": "k4"}, {"id": low + 1}])
    assert (take(store) or ())[1] == [2]
    assert take(store) is None


def test_workers_that_ask_at_once_share_without_overlap(store: Store) -> None:
    """Every generation once, among eight threads."""
    write(store, range(100, 300))

    def work(_: int) -> list[int]:
        got: list[int] = []
        while (lease := take(store)) is not None:
            got += lease[1]
        return got

    with ThreadPoolExecutor(8) as pool:
        got = sorted(number for one in pool.map(work, range(8)) for number in one)
    assert got == [*range(2, 12), *range(100, 300)]


def test_an_unknown_rollout_is_told(store: Store) -> None:
    """With the names that there are."""
    with store.transaction() as connection, pytest.raises(NotFoundError, match="'k4', 'other'"):
        leases.take(connection, replace(WANTED, rollout="k5"))


def test_the_client_leases_renews_and_finishes(database_url: str) -> None:
    """A lease holds generations, the pairs that they complete, and their existing scores."""
    made = [pair_side(n) for n in range(2, 6)]
    score = score_of(made[1], 0.5)
    with Client.local(database_url) as client:
        client.post_traces(body_of(map(encode, made)))
        client.post_scores([score])
        lease = client.lease(WANTED)
        assert lease is not None
        assert lease.generations == tuple(made)
        assert [(p.baseline, p.candidate) for p in lease.pairs] == [
            (made[0], made[1]),
            (made[2], made[3]),
        ]
        assert lease.scores == (score,)
        assert lease.expires_in_s == 60
        assert client.lease(WANTED) is None
        assert client.renew_lease(lease.id, ttl_s=30) is True
        assert client.finish_lease(lease.id) is True
        assert client.finish_lease(lease.id) is False
        assert client.renew_lease(lease.id, ttl_s=30) is False


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"generations": 0}, "generations: wanted 1 to 1000, got 0"),
        ({"evaluators": ()}, "evaluators: wanted 1 to 100, got 0"),
        ({"ttl_s": 0.0}, "ttl_s: wanted more than 0 and at most 3600, got 0"),
        ({"worker": "\0"}, "worker: wanted at most 2000 characters"),
        (
            {"evaluators": (LeasedEvaluator(metric="\0", evaluator="e", version="1"),)},
            r"evaluators\[0\].metric: ",
        ),
        ({"rollout": "none"}, "404 Not Found: no rollout 'none'"),
    ],
)
def test_an_unusable_request_is_told(change: dict[str, Any], words: str, database_url: str) -> None:
    """The error names the key and the expected value."""
    with Client.local(database_url) as client, pytest.raises(ClientError, match=words):
        client.lease(replace(WANTED, **change))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"ttl_s": -1}', "ttl_s: wanted 0 to 3600, got -1"),
        (b'{"ttl_s": 3601}', "ttl_s: wanted 0 to 3600, got 3601"),
        (b'{"ttl_s": NaN}', "ttl_s: wanted a finite number, got nan"),
        (b"{}", "ttl_s: missing key"),
        (b"\xff", "the body is not JSON"),
    ],
)
def test_an_unusable_renewal_is_told(http: httpx.Client, body: bytes, words: str) -> None:
    """A malformed renewal is a 400 with the reason."""
    answer = http.post("/api/v1/leases/1-1/renewal", content=body, headers=JSON)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]


def test_a_key_needs_to_judge_and_to_read(database_url: str) -> None:
    """A lease gives generations to read, and with content their text."""
    scopes = [{Scope.JUDGE}, {Scope.INGEST, Scope.READ}, {Scope.JUDGE, Scope.READ}, set(Scope)]
    texts = []
    with Store.open(database_url) as store, store.transaction() as connection:
        for held in scopes:
            text = new_key_text()
            texts.append(str(text))
            keys.add(
                connection,
                ApiKey(
                    id=text.id,
                    name="t",
                    digest=digest(text.secret),
                    scopes=frozenset(held),
                    created_unix_ns=1,
                ),
            )
    body = {"rollout": "k4", "worker": "w", "evaluators": []}
    with http_of(Settings(database_url=database_url, require_keys=True)) as http:
        answers = [
            [
                http.post(path, json=body, headers={"Authorization": f"Bearer {text}"}).status_code
                for path in ("/api/v1/leases", "/api/v1/leases?content=true")
            ]
            for text in texts
        ]
    assert answers == [[403, 403], [403, 403], [400, 403], [400, 400]]
