"""Who may do what: scopes, refusals in each protocol's words, rates, and a cache that forgets."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from collector_in_process import http_of
from google.rpc.status_pb2 import Status
from made_generations import generation_of
from otlp_bodies import PROTOBUF, body_of

from collector import api_key
from collector.access import Authority, LastUsed
from collector.access.credentials import key_text
from collector.api.access import needed_scope
from collector.api_key import ApiKey, Scope
from collector.contract import Content, encode
from collector.errors import ForbiddenError, RateLimitError, UnauthenticatedError
from collector.settings import Settings
from collector.store import Store, keys

CONTENT = Content(input_messages='[{"role":"user"}]', output_messages="[]", reference="r")


def make_key(*scopes: Scope, **fields: Any) -> tuple[ApiKey, str]:
    """Return a key as stored, and as its holder has it."""
    text = api_key.new_key_text()
    key = ApiKey(
        id=text.id,
        name="test",
        digest=api_key.digest(text.secret),
        scopes=frozenset(scopes),
        **({"created_unix_ns": time.time_ns()} | fields),
    )
    return key, str(text)


def store_key(database_url: str, *scopes: Scope, **fields: Any) -> str:
    """Store a key and return what its holder sends."""
    key, text = make_key(*scopes, **fields)
    with Store.open(database_url) as store, store.transaction() as connection:
        keys.add(connection, key)
    return text


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


@pytest.fixture
def guarded(database_url: str) -> Iterator[httpx.Client]:
    """Speak HTTP to a collector that requires keys and keeps content."""
    settings = Settings(database_url=database_url, require_keys=True, capture_content=True)
    with http_of(settings) as client:
        yield client


def test_each_scope_opens_its_routes_and_no_others(
    database_url: str, guarded: httpx.Client
) -> None:
    """Ingest sends, read reads, and none implies another; health is open."""
    routes = {
        Scope.INGEST: [("POST", "/v1/traces"), ("POST", "/api/v1/feedback")],
        Scope.JUDGE: [("POST", "/api/v1/scores")],
        Scope.READ: [
            ("GET", "/api/v1/rollouts"),
            ("GET", "/metrics"),
            ("GET", "/api/v1/collector"),
        ],
    }
    for held in Scope:
        headers = bearer(store_key(database_url, held)) | PROTOBUF
        for needed, wanted in routes.items():
            for method, path in wanted:
                body = b"[]" if path.startswith("/api/") and method == "POST" else None
                typed = headers | {"Content-Type": "application/json"} if body else headers
                status = guarded.request(method, path, headers=typed, content=body).status_code
                assert (status == 403) == (held is not needed), (held, path, status)
                assert status in (200, 204, 403)
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs"):
        assert guarded.get(path).status_code == 200


def test_a_route_that_nobody_named_needs_admin() -> None:
    """Without a scope of its own, a route is closed to all other scopes."""
    assert needed_scope("DELETE", "/api/v1/rollouts/x") is Scope.ADMIN
    assert needed_scope("POST", "/api/v1/switch") is Scope.ADMIN
    assert needed_scope("GET", "/healthz/") is Scope.ADMIN


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("dgk_00000000_" + "0" * 64),
        bearer("nonsense"),
        {"Authorization": "Basic dXNlcjpwYXNz"},
        {"X-API-Key": "dgk_short"},
    ],
)
def test_without_a_valid_key_everything_is_401(
    headers: dict[str, str], guarded: httpx.Client
) -> None:
    """A problem on the API; on OTLP a google.rpc.Status in the request's encoding."""
    answer = guarded.get("/api/v1/rollouts", headers=headers)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (
        401,
        'Bearer realm="draftgate"',
    )
    assert answer.headers["content-type"] == "application/problem+json"
    assert "API key" in answer.json()["detail"]
    answer = guarded.post("/v1/traces", headers=headers | PROTOBUF, content=b"garbage")
    status = Status.FromString(answer.content)
    assert (answer.status_code, status.code) == (401, 16)
    assert answer.headers["content-type"] == "application/x-protobuf"
    json = {"Content-Type": "application/json"}
    answer = guarded.post("/v1/traces", headers=headers | json, content=b"garbage")
    assert answer.json() == {"code": 16, "message": status.message}


def test_a_wrong_secret_and_an_unknown_id_are_told_alike(
    database_url: str, guarded: httpx.Client
) -> None:
    """An answer does not give away which ids exist."""
    good = store_key(database_url, Scope.READ)
    details = {
        guarded.get("/api/v1/rollouts", headers=bearer(wrong)).json()["detail"]
        for wrong in (good[:-4] + "ffff", "dgk_00000000_" + "0" * 64)
    }
    assert details == {"the API key is not known here; check it, or ask for one"}
    assert guarded.get("/api/v1/rollouts", headers={"x-api-key": good}).status_code == 200


def test_a_missing_scope_is_403_and_named(database_url: str, guarded: httpx.Client) -> None:
    """The answer says which scope the key lacks."""
    headers = bearer(store_key(database_url, Scope.INGEST))
    answer = guarded.get("/api/v1/rollouts", headers=headers)
    assert answer.status_code == 403
    assert answer.headers["www-authenticate"] == ('Bearer error="insufficient_scope", scope="read"')
    assert "lacks the scope read; it has ingest" in answer.json()["detail"]


def test_text_needs_the_scope_content(database_url: str, guarded: httpx.Client) -> None:
    """Without it a listing with text is refused; a trace comes without its texts and says so."""
    sender = bearer(store_key(database_url, Scope.INGEST))
    reader = bearer(store_key(database_url, Scope.READ))
    trusted = bearer(store_key(database_url, Scope.READ, Scope.CONTENT))
    sent = generation_of(1, content=CONTENT)
    body = body_of([encode(sent)])
    assert guarded.post("/v1/traces", content=body, headers=sender | PROTOBUF).is_success
    for path in ("generations", "pairs"):
        url = f"/api/v1/{path}?rollout=k4&content="
        assert guarded.get(f"{url}yes", headers=reader).status_code == 403
        assert guarded.get(f"{url}false", headers=reader).status_code == 200
        assert guarded.get(f"{url}1", headers=trusted).status_code == 200
    url = f"/api/v1/traces/{sent.trace_id}"
    bare, whole = (guarded.get(url, headers=h).json() for h in (reader, trusted))
    texts = {name for name, _ in encode(sent).attributes.items() if "messages" in name}
    assert (bare["content_withheld"], whole["content_withheld"]) == (True, False)
    assert texts & set(bare["spans"][0]["attributes"]) == set()
    assert texts <= set(whole["spans"][0]["attributes"])
    assert bare["spans"][0]["attributes"]["gen_ai.usage.output_tokens"] == 11


def test_an_explanation_is_text_too(database_url: str, guarded: httpx.Client) -> None:
    """A judge quotes the answer, so a key without the scope `content` reads only the score."""
    sender = bearer(store_key(database_url, Scope.INGEST, Scope.JUDGE))
    reader = bearer(store_key(database_url, Scope.READ))
    trusted = bearer(store_key(database_url, Scope.READ, Scope.CONTENT))
    sent = generation_of(1)
    score = {"trace_id": sent.trace_id, "span_id": sent.span_id, "value": 0.5}
    score |= {"metric": "m", "evaluator": "e", "version": "1", "explanation": "says Bob is ill"}
    body = body_of([encode(sent)])
    assert guarded.post("/v1/traces", content=body, headers=sender | PROTOBUF).is_success
    assert guarded.post("/api/v1/scores", json=[score], headers=sender).is_success
    for headers, text, wanted in ((reader, 0, None), (trusted, 1, "says Bob is ill")):
        (listed,) = guarded.get("/api/v1/scores?rollout=k4", headers=headers).json()["scores"]
        (pair,) = guarded.get(f"/api/v1/pairs?rollout=k4&content={text}", headers=headers).json()[
            "pairs"
        ]
        assert listed["explanation"] == pair["candidate_scores"][0]["explanation"] == wanted
        assert listed["value"] == 0.5


def test_an_expired_or_revoked_key_is_refused(database_url: str, guarded: httpx.Client) -> None:
    """The answer names the key, so that its holder knows which to replace."""
    for ended in ({"expires_unix_ns": 1}, {}):
        text = store_key(database_url, Scope.READ, **ended)
        if not ended:
            with (
                Store.open(database_url) as store,
                store.transaction() as connection,
            ):
                keys.revoke(connection, text[4:12], time.time_ns())
        answer = guarded.get("/api/v1/rollouts", headers=bearer(text))
        assert answer.status_code == 401
        assert f"{text[4:12]} was revoked or has expired" in answer.json()["detail"]


def test_a_key_is_read_once_until_its_time_in_the_cache_is_over() -> None:
    """Requests cost no query; a revocation is seen when the cached key has aged."""
    key, text = make_key(Scope.READ)
    held: dict[str, ApiKey | None] = {key.id: key}
    reads: list[str] = []
    now = [100.0]

    def read(id_: str) -> ApiKey | None:
        reads.append(id_)
        return held[id_]

    authority = Authority(read, required=True, clock=lambda: now[0])
    assert not authority.is_quick(text)
    for _ in range(1000):
        assert authority.authorize(text, Scope.READ).key_id == key.id
    assert authority.is_quick(text)
    assert reads == [key.id]
    held[key.id] = None
    authority.authorize(text, Scope.READ)
    now[0] += 2.0
    with pytest.raises(UnauthenticatedError):
        authority.authorize(text, Scope.READ)


def test_a_rate_is_a_burst_of_one_second_and_then_even() -> None:
    """Beyond it a request is refused with the seconds to wait; another key is not touched."""
    (slow, slow_text), (other, other_text) = (
        make_key(Scope.INGEST, rate_per_s=2),
        make_key(Scope.INGEST),
    )
    held = {slow.id: slow, other.id: other}
    now = [0.0]
    authority = Authority(held.get, required=True, default_rate_per_s=1, clock=lambda: now[0])

    def passed(text: str, tries: int = 5) -> int:
        count = 0
        for _ in range(tries):
            with contextlib.suppress(RateLimitError):
                authority.authorize(text, Scope.INGEST)
                count += 1
        return count

    assert passed(slow_text) == 2
    assert passed(other_text) == 1  # the collector's default
    now[0] = 0.5
    assert passed(slow_text) == 1
    with pytest.raises(RateLimitError, match="more than 2 requests a second") as caught:
        authority.authorize(slow_text, Scope.INGEST)
    assert caught.value.retry_after_s == 1
    with pytest.raises(ForbiddenError, match="lacks the scope read"):
        authority.authorize(slow_text, Scope.READ)


def test_a_rate_limit_is_429_with_retry_after(database_url: str, guarded: httpx.Client) -> None:
    """OTLP clients send such a request again; the status is RESOURCE_EXHAUSTED."""
    headers = bearer(store_key(database_url, Scope.INGEST, rate_per_s=0.01)) | PROTOBUF
    assert guarded.post("/v1/traces", headers=headers).status_code == 200
    answer = guarded.post("/v1/traces", headers=headers)
    assert (answer.status_code, Status.FromString(answer.content).code) == (429, 8)
    assert 1 <= int(answer.headers["retry-after"]) <= 100


def test_the_last_use_is_stored_away_from_requests(database_url: str) -> None:
    """Uses are gathered, and written when the thread ends at the latest."""
    text = store_key(database_url, Scope.READ)
    with Store.open(database_url) as store:

        def stored(id_: str) -> ApiKey | None:
            with store.read() as connection:
                return keys.by_id(connection, id_)

        authority = Authority(stored, required=True)
        uses = LastUsed(authority, store)
        uses.start()
        before = time.time_ns()
        authority.authorize(text, Scope.READ)
        found = stored(text[4:12])
        assert found is not None
        assert found.last_used_unix_ns is None
        uses.stop()
        found = stored(text[4:12])
        assert found is not None
        assert found.last_used_unix_ns is not None
        assert before <= found.last_used_unix_ns <= time.time_ns()


def test_where_keys_are_not_required_one_that_is_sent_is_not_looked_at(
    http: httpx.Client,
) -> None:
    """A client with a key for another collector can ask this one."""
    assert http.get("/api/v1/rollouts", headers=bearer("anything")).status_code == 200


def test_refusals_are_counted(database_url: str, guarded: httpx.Client) -> None:
    """By reason; the scrape itself needs a key that reads."""
    headers = bearer(store_key(database_url, Scope.READ))
    assert guarded.get("/metrics").status_code == 401
    assert guarded.post("/v1/traces", headers=headers).status_code == 403
    text = guarded.get("/metrics", headers=headers).text
    assert 'draftgate_refusals_total{reason="unauthenticated"} 1.0' in text
    assert 'draftgate_refusals_total{reason="scope"} 1.0' in text
    assert 'route="refused",status="401"' in text


def test_no_secret_is_stored_or_shown(database_url: str) -> None:
    """Neither the database nor a representation holds what opens the collector."""
    key, text = make_key(Scope.READ)
    stored = store_key(database_url, Scope.READ)
    files = [database_url.removeprefix("sqlite:///") + suffix for suffix in ("", "-wal")]
    for file in files:
        with contextlib.suppress(FileNotFoundError), open(file, "rb") as opened:  # noqa: PTH123
            assert stored[13:].encode() not in opened.read()
    parts = api_key.parse(text)
    assert parts is not None
    assert parts.secret not in repr(parts) + repr(key)


def test_no_origin_is_allowed(http: httpx.Client) -> None:
    """A browser's page of another origin gets no leave to read."""
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for answer in (
        http.options("/v1/traces", headers=origin),
        http.get("/api/v1/rollouts", headers=origin),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_grpc_metadata_carries_a_key_as_headers_do() -> None:
    """The same reading serves both protocols."""
    assert key_text({"authorization": "bearer  k "}) == "k"
    assert key_text({"x-api-key": "k"}) == "k"
    assert key_text({}) is None
