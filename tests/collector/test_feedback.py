"""Feedback: posted by applications, read with its comments by those who may."""

from typing import Any

import httpx
import pytest
from made_generations import generation_of
from otlp_bodies import body_of

from collector.client import Client
from collector.contract import Feedback, FeedbackKind, encode


def given(number: int = 1, **fields: Any) -> Feedback:
    values: dict[str, Any] = {
        "trace_id": f"{number:032x}",
        "span_id": f"{number:016x}",
        "kind": FeedbackKind.THUMBS_DOWN,
        "source": "shop",
        "time_unix_ns": 17,
    }
    return Feedback(**(values | fields))


def test_feedback_is_read_as_posted_and_the_last_one_counts(any_database_url: str) -> None:
    """Once for each kind and source; before its span has come too; comments on request."""
    every = [
        given(1, comment="wrong ☃ price"),
        given(1, kind=FeedbackKind.ESCALATION),
        given(1, source="support"),
        given(2, kind=FeedbackKind.EDIT, comment="shorter"),
        given(2, kind=FeedbackKind.THUMBS_UP),
        given(99),
    ]
    with Client.local(any_database_url, capture_content=True) as client:
        client.post_feedback([given(1, comment="earlier"), *every])
        client.post_feedback(every)
        client.post_traces(body_of([encode(generation_of(1)), encode(generation_of(2))]))
        found = list(client.feedback("k4", content=True))
        assert sorted(found, key=str) == sorted(every[:-1], key=str)
        assert {one.comment for one in client.feedback("k4")} == {None}


def test_comments_are_dropped_or_redacted_as_content_is(database_url: str) -> None:
    """Without capture no text is stored; with it, addresses are replaced."""
    for capture in (False, True):
        with Client.local(database_url, capture_content=capture) as client:
            client.post_traces(body_of([encode(generation_of(1))]))
            client.post_feedback([given(comment="ask ann@example.com")])
            (kept,) = client.feedback("k4", content=True)
            assert (kept.comment or "").startswith("ask [redacted:email:") == capture
            assert "ann@" not in str(kept.comment)


def test_feedback_comes_in_pages(http: httpx.Client) -> None:
    """Page by page everything comes once."""
    numbers = range(1, 8)
    http.post(
        "/v1/traces",
        content=body_of([encode(generation_of(n)) for n in numbers]),
        headers={"Content-Type": "application/x-protobuf"},
    )
    document = [
        {
            "trace_id": f"{n:032x}",
            "span_id": f"{n:016x}",
            "kind": kind,
            "source": "s",
            "time_unix_ns": n,
        }
        for n in numbers
        for kind in ("thumbs_up", "edit")
    ]
    assert http.post("/api/v1/feedback", json=document).status_code == 204
    seen: list[Any] = []
    after: dict[str, str] = {}
    while True:
        query = {"rollout": "k4", "limit": "3", **after}
        page = http.get("/api/v1/feedback", params=query).json()
        seen += [(one["span_id"], one["kind"]) for one in page["feedback"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert len(seen) == len(set(seen)) == len(document)


def test_feedback_on_the_newest_generations_alone(any_database_url: str) -> None:
    """Only on this many newest generations of the rollout; on all if there are fewer."""
    with Client.local(any_database_url) as client:
        client.post_traces(body_of([encode(generation_of(n)) for n in (1, 2)]))
        client.post_traces(body_of([encode(generation_of(3)), encode(generation_of(4))]))
        client.post_traces(body_of([encode(generation_of(5, rollout="other"))]))
        client.post_feedback([given(n) for n in (5, 4, 2, 1)])

        def found(newest: int | None) -> list[int]:
            return [int(one.span_id, 16) for one in client.feedback("k4", newest=newest)]

        assert {n: found(n) for n in (1, 2, 3, 4, 5, None)} == {
            1: [4],
            2: [4],
            3: [2, 4],
            4: [1, 2, 4],
            5: [1, 2, 4],
            None: [1, 2, 4],
        }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "shrug"}, "[0].kind: wanted one of thumbs_up"),
        ({"trace_id": "x"}, "[0].trace_id: wanted [0-9a-f]{32}"),
        ({"source": ""}, "[0].source: wanted 1 to 255 characters"),
        ({"time_unix_ns": -1}, "[0].time_unix_ns: wanted Unix nanoseconds"),
        ({"stars": 5}, "[0].stars: unknown key"),
    ],
)
def test_unusable_feedback_is_refused(
    http: httpx.Client, change: dict[str, Any], words: str
) -> None:
    """400 names the place and the expected value."""
    good = {
        "trace_id": "1" * 32,
        "span_id": "2" * 16,
        "kind": "edit",
        "source": "s",
        "time_unix_ns": 1,
    }
    answer = http.post("/api/v1/feedback", json=[good | change])
    assert answer.status_code == 400
    assert words in answer.json()["detail"]
