"""Assignment: sticky, monotone in the share, and as large as the share says."""

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine_adapter.router.assignment import Assignment, Sticky, bucket
from engine_adapter.router.decision import RequestFacts

TEXT = st.text(max_size=40)
PERCENT = st.floats(0, 100)


def assignment(rollout: str = "k4", draw: float = 0.0, **sticky: object) -> Assignment:
    return Assignment(rollout, Sticky.model_validate(sticky), lambda: draw)


def asked(user: str | None = None, **headers: str) -> RequestFacts:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RequestFacts(path="/chat/completions", headers=named, user=user)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rollout=TEXT, key=st.text(min_size=1), low=PERCENT, high=PERCENT)
def test_who_is_in_stays_in(rollout: str, key: str, low: float, high: float) -> None:
    """A session that is in at a share is in at every larger one, each time that it is asked."""
    low, high = sorted((low, high))
    facts = asked(x_session_id=key)
    at_low, at_high = (assignment(rollout).in_share(facts, p) for p in (low, high))
    assert at_high or not at_low
    assert at_low is assignment(rollout, draw=0.99).in_share(facts, low)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(key=st.text(st.characters(), min_size=1))
def test_nothing_is_nobody_and_everything_is_everybody(key: str) -> None:
    """0 % has no session, 100 % has each; halves of surrogate pairs are keys like others."""
    for facts in (asked(x_session_id=key), asked(user=key + "\ud800")):
        assert not assignment().in_share(facts, 0)
        assert assignment().in_share(facts, 100)
        assert not assignment(draw=math.nextafter(1, 0)).drawn(99)
        assert assignment(draw=math.nextafter(1, 0)).drawn(100)


def test_shares_are_as_large_as_they_say() -> None:
    """Of 100,000 sessions each share gets its part, within 4.5 standard errors."""
    n = 100_000
    for rollout in ("k4", "k8"):
        at = [bucket(rollout, f"x-session-id\0s{i}") for i in range(n)]
        for share in (0.01, 0.05, 0.25, 0.5):
            error = math.sqrt(share * (1 - share) / n)
            assert abs(sum(b < share for b in at) / n - share) < 4.5 * error


def test_rollouts_are_independent() -> None:
    """Who is in one rollout's 10 % is in another's as often as anybody."""
    n = 100_000
    both = sum(bucket("a", f"s{i}") < 0.1 and bucket("b", f"s{i}") < 0.1 for i in range(n))
    assert abs(both / n - 0.01) < 4.5 * math.sqrt(0.01 * 0.99 / n)


def test_what_names_a_session() -> None:
    """The first header that is there, else the body's user, else nothing: then it is drawn."""
    named = assignment(headers=["X-Session-Id", "X-User-Id"])
    inside = next(f"s{i}" for i in range(99) if bucket("k4", f"x-session-id\0s{i}") < 0.5)
    outside = next(f"s{i}" for i in range(99) if bucket("k4", f"x-session-id\0s{i}") >= 0.5)
    assert named.in_share(asked(x_session_id=inside, x_user_id=outside, user=outside), 50)
    assert not named.in_share(asked(x_session_id=outside, x_user_id=inside, user=inside), 50)
    by_user = [assignment(draw=draw).in_share(asked(user="u"), 50) for draw in (0.0, 0.99)]
    assert by_user[0] is by_user[1]
    for facts in (asked(), asked(x_session_id="")):
        assert [assignment(draw=d).in_share(facts, 50) for d in (0.49, 0.5)] == [True, False]
    unnamed = asked(user="u")
    assert [assignment(draw=d, body_user=False).in_share(unnamed, 50) for d in (0.49, 0.5)] == [
        True,
        False,
    ]


def test_a_session_has_one_name_that_does_not_tell_its_key() -> None:
    """The same for all its requests, another for another session or rollout, none without a key."""
    known, elsewhere = assignment(), assignment("k5")
    name = known.session(asked(x_session_id="person@example.org"))
    assert len(name) == 32
    assert name == known.session(asked(x_session_id="person@example.org", user="u"))
    assert name != known.session(asked(x_session_id="other"))
    assert name != elsewhere.session(asked(x_session_id="person@example.org"))
    assert known.session(asked()) is None
