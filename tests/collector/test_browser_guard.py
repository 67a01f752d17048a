"""Requests that a foreign web page makes a browser send change nothing."""

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

SWITCH = "/api/v1/rollouts/k4/switch"
CHANGE = {"state": "off", "reason": "a stranger's"}


@pytest.fixture(scope="module")
def guarded(
    module_serve: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    database = tmp_path_factory.mktemp("guarded") / "draftgate.db"
    server = module_serve(
        f"sqlite:///{database}", env={"DRAFTGATE_ALLOWED_HOSTS": "traces.example.com, b"}
    )
    with httpx.Client(base_url=server.url) as client:
        yield client


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8501"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=lambda headers: next(iter(headers.values())),
)
def test_another_sites_page_changes_nothing(guarded: httpx.Client, headers: dict[str, str]) -> None:
    """Whether it turns a switch or sends feedback, scores or spans."""
    for path in (SWITCH, "/api/v1/scores", "/api/v1/feedback", "/v1/traces"):
        answer = guarded.post(path, json=CHANGE, headers=headers)
        assert answer.status_code == 403, path
    assert guarded.get(SWITCH).json()["log"] == []


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_json_has_to_be_called_json(guarded: httpx.Client, content_type: str) -> None:
    """A page may send every other type to any address without asking."""
    for path in (SWITCH, "/api/v1/scores", "/api/v1/feedback", "/api/v1/verdicts"):
        headers = {"Content-Type": content_type}
        answer = guarded.post(path, content=json.dumps(CHANGE), headers=headers)
        assert answer.status_code == 415, path
        assert "wanted application/json" in answer.json()["detail"]
    assert guarded.get(SWITCH).json()["log"] == []


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[", ""])
def test_a_name_that_leads_here_is_not_answered(guarded: httpx.Client, host: str) -> None:
    """On a loopback address, for reading as for writing."""
    answer = guarded.get("/api/v1/rollouts", headers={"Host": host})
    assert answer.status_code == 403


def test_two_names_are_not_answered(guarded: httpx.Client) -> None:
    """What stands between could have looked at the other one."""
    address = (guarded.base_url.host, guarded.base_url.port)
    with socket.create_connection(address, timeout=10) as bare:
        bare.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert bare.recv(12) == b"HTTP/1.1 403"


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:4318", "127.0.0.1:1", "[::1]:4318", "traces.example.com", "b:80"],
)
def test_names_of_this_machine_and_those_allowed_are_answered(
    guarded: httpx.Client, host: str
) -> None:
    """Whatever the port: it may be forwarded."""
    assert guarded.get("/api/v1/rollouts", headers={"Host": host}).status_code == 200


def test_programs_and_the_collectors_own_pages_go_on(guarded: httpx.Client) -> None:
    """A program sends neither header; a page of the collector itself is of its origin."""
    own = {"Origin": str(guarded.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    for headers in ({}, own, {"Content-Type": "application/json; charset=utf-8"}):
        answer = guarded.post(
            SWITCH,
            content=json.dumps(CHANGE),
            headers={"Content-Type": "application/json", **headers},
        )
        assert answer.status_code == 200
