"""Every route of the OpenAPI document, with valid and invalid requests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from made_generations import generation_of
from otlp_bodies import body_of
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup

from collector.contract import encode

load_all_checks()
EXAMPLES = 25
CHECKED = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
]


@pytest.fixture(scope="module")
def api_schema(module_serve: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Serve a few generations, and read the document that describes the API."""
    folder: Path = tmp_path_factory.mktemp("fuzz")
    server = module_serve(f"sqlite:///{folder / 'draftgate.db'}")
    body = body_of([encode(generation_of(n)) for n in range(1, 9)])
    headers = {"Content-Type": "application/x-protobuf"}
    httpx.post(f"{server.url}/v1/traces", content=body, headers=headers).raise_for_status()
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


# Not schemathesis's own parametrization: it reads the document while tests are collected.
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_route_answers_as_it_says(api_schema: Any) -> None:
    """No 5xx, no status, media type or shape that the document does not name."""
    checks = CHECKS.get_by_names(CHECKED)
    found: dict[str, str] = {}
    tried = 0

    for result in api_schema.get_all_operations():
        operation = result.ok()

        @settings(
            deadline=None,
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=valid_and_invalid(operation))
        def call(case: schemathesis.Case) -> None:
            nonlocal tried
            tried += 1
            wait_s = case.query.get("wait_s")
            if isinstance(wait_s, int | float):
                assume(wait_s < 0.1)  # a long poll would wait for what never comes
            case.call_and_validate(checks=checks)

        try:
            call()
        except (AssertionError, FailureGroup) as exc:
            found[operation.label] = str(exc)
    assert found == {}
    assert tried > EXAMPLES


def valid_and_invalid(operation: Any) -> st.SearchStrategy[schemathesis.Case]:
    """Return cases that obey the operation's schema, and cases that break it where any can."""
    return st.one_of(operation.as_strategy(generation_mode=mode) for mode in GenerationMode)
