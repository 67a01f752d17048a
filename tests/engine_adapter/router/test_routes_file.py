"""routes.yaml: read strictly, with errors that name file, key and remedy."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.contract import Arm, price_of
from engine_adapter.errors import RoutesFileError
from engine_adapter.router import explanation, opening, routes_file
from engine_adapter.router.decision import Mode
from engine_adapter.router.known_state import KnownState
from engine_adapter.router.settings import (
    Breaker,
    ClientKey,
    RouterLimits,
    RouterSettings,
    Upstream,
)
from engine_adapter.transport import Timeouts
from evals.advice import router as advice_router
from evals.advice.records import Advice
from evals.advice.records import Route as AdvisedRoute

UPSTREAMS = {"baseline": {"url": "http://b/v1"}, "candidate": {"url": "http://c/v1"}}
SHA = "a" * 64
FULL: dict[str, Any] = {
    "version": 1,
    "rollout": "support-k4",
    "mode": "split",
    "share": 5,
    "upstreams": {
        "baseline": {"engine": "vllm", "url": "http://b/v1", "api_key_env": "B_KEY"},
        "candidate": {
            "engine": "sglang",
            "url": "http://c/v1",
            "model": "served",
            "speculation": {"method": "eagle3", "num_speculative_tokens": 4, "lossless": True},
            "fingerprint": "f",
            "engine_version": "0.5.9",
            "first_byte_timeout_s": 3,
        },
    },
    "prices": {
        "currency": "USD",
        "baseline": {"per_accelerator_hour": 2.5, "accelerators": 4},
        "candidate": {"per_million_input_tokens": 0.1, "per_million_output_tokens": 0.4},
    },
    "sticky": {"headers": ["x-conversation"], "body_user": False},
    "rules": [{"to": "baseline", "cohort": "json", "reason": "it loses"}],
    "default": "candidate",
    "cohorts": {"known": ["json"], "default": "other"},
    "listen": {"host": "0.0.0.0", "port": 0},  # noqa: S104
    "collector": {"url": "http://collector:4318", "record_content": True},
    "client_keys": [{"name": "desk", "sha256": SHA}],
    "pass_headers": ["x-tenant"],
    "breaker": {"failures": 2, "open_s": 1},
    "limits": {"body_bytes": 10, "in_flight": 9, "mirrors": 8, "spans": 7, "observed_bytes": 6},
}


def write(folder: Path, document: Any, name: str = "routes.yaml") -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def test_every_key_reaches_the_router(tmp_path: Path) -> None:
    """The proxy's settings are those of the file; keys of engines come from the environment."""
    routes = routes_file.read(write(tmp_path, FULL))
    settings = opening.settings_of(routes, {"B_KEY": "secret"})
    candidate = settings.candidate
    plain = Upstream(url="http://b/v1", engine="vllm", api_key="secret")
    assert settings == RouterSettings(
        baseline=replace(plain, price=settings.baseline.price),
        candidate=candidate,
        host="0.0.0.0",  # noqa: S104
        port=0,
        client_keys=(ClientKey(name="desk", sha256=SHA),),
        pass_headers=("x-tenant",),
        breaker=Breaker(failures=2, open_s=1),
        limits=RouterLimits(body_bytes=10, in_flight=9, mirrors=8, spans=7, observed_bytes=6),
        collector_url="http://collector:4318",
        record_content=True,
    )
    assert (candidate.engine, candidate.model, candidate.fingerprint) == ("sglang", "served", "f")
    assert candidate.engine_version == "0.5.9"
    prices = [price_of(str(one.price)) for one in (settings.baseline, candidate)]
    assert [(one.per_hour, one.per_million_output_tokens) for one in prices] == [
        (10.0, None),
        (None, 0.4),
    ]
    assert candidate.timeouts == Timeouts(first_byte_s=3)
    assert (candidate.setup.on, candidate.setup.configured.method) == (True, "eagle3")
    assert routes.state_file == str(tmp_path / "routes.yaml.state")
    assert "secret" not in repr(settings)


def test_the_least_that_is_needed(tmp_path: Path) -> None:
    """A rollout and two upstreams are a router that sends all to the baseline."""
    routes = routes_file.read(write(tmp_path, {"rollout": "k4", "upstreams": UPSTREAMS}))
    assert (routes.mode, routes.default) == (Mode.BASELINE, Arm.CANDIDATE)
    settings = opening.settings_of(routes, {})
    assert settings == RouterSettings(
        baseline=Upstream(url="http://b/v1"),
        candidate=Upstream(url="http://c/v1"),
        collector_url="http://localhost:4318",
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shar": 5}, "shar: unknown key; did you mean `share`?"),
        ({"listen": {"prt": 1}}, "listen.prt: unknown key; did you mean `port`?"),
        ({"rules": [{"to": "baseline", "max_token": {"below": 3}}]},
         "rules.0.max_token: unknown key; did you mean `max_tokens`?"),
        ({"rules": [{"to": "baseline", "max_tokens": {"bellow": 3}}]},
         "rules.0.max_tokens.bellow: unknown key; did you mean `below`?"),
        ({"rules": [{"to": "baseline", "max_tokens": {}}]},
         "rules.0.max_tokens: give at least one of `at_least`"),
        ({"rules": [{"cohort": "json"}]}, "rules.0.to: required key is missing"),
        ({"rules": [{"to": "baselin"}]}, "rules.0.to: Input should be 'baseline' or 'candidate'"),
        ({"rules": [{"to": "baseline", "time": {"from": 1320, "to": "06:00"}}]},
         'rules.0.time.from: wanted a time in quotes, such as "22:00" (got 1320)'),
        ({"rules": [{"to": "baseline", "time": {"from": "22:00", "to": "06:00", "zone": "Mars"}}]},
         "rules.0.time.zone: is not a time zone; wanted one such as Europe/Berlin (got 'Mars')"),
        ({"mode": "mirror"}, "mode mirror needs `share: 5` (percent), or `ramp: {}` for steps"),
        ({"share": 5, "ramp": {}}, "give `share` or `ramp`, not both"),
        ({"share": 101}, "share: Input should be less than or equal to 100 (got 101)"),
        ({"ramp": {"steps": [5, 1]}}, "ramp.steps: wanted growing percentages above 0"),
        ({"upstreams": {"baseline": {"url": "http://b/v1"}}},
         "upstreams.candidate: required key is missing"),
        ({"upstreams": UPSTREAMS | {"candidate": {"url": "c:80"}}},
         "upstreams.candidate.url: String should match pattern"),
        ({"client_keys": [{"name": "a", "sha256": "plain"}]}, "client_keys.0.sha256: String"),
        ({"client_keys": [{"name": "a", "sha256": SHA}] * 2}, "`client_keys` holds one name twice"),
        ({"cohorts": {"rules": [{"cohort": "a b"}]}}, "cohorts.rules.0.cohort: String should"),
        ({"version": 2}, "version: Input should be 1 (got 2)"),
        ({"rollout": "a b"}, "rollout: String should match pattern"),
    ],
)  # fmt: skip
def test_an_unusable_file_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """One line names the file, the key, what was wanted, and the nearest known key."""
    path = write(tmp_path, {"rollout": "k4", "upstreams": UPSTREAMS} | change)
    with pytest.raises(RoutesFileError) as refused:
        routes_file.read(path)
    assert str(refused.value).startswith(f"{path}: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        ("a: [", "is not YAML: while parsing"),
        ("- a", "wanted keys such as `rollout:` and `upstreams:`"),
        ("", "wanted keys such as"),
    ],
)
def test_a_file_that_is_no_document(tmp_path: Path, text: str | None, said: str) -> None:
    """A file that is missing, broken or of another shape is said to be so."""
    path = tmp_path / "routes.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(RoutesFileError) as refused:
        routes_file.read(path)
    assert str(refused.value).startswith(f"{path}: {said}")


def test_an_engines_key_that_is_not_set(tmp_path: Path) -> None:
    """The variable is named before anything is served."""
    routes = routes_file.read(write(tmp_path, FULL))
    with pytest.raises(RoutesFileError, match=r"upstreams\.baseline\.api_key_env: .* B_KEY is not"):
        opening.settings_of(routes, {})


def advised(folder: Path, rollout: str = "k4", default: Arm = Arm.CANDIDATE) -> Path:
    """Write what `draftgate advise --routes` writes."""
    found = (
        AdvisedRoute(cohort="json", reason="0.87× end to end"),
        AdvisedRoute(cohort="chat", max_tokens_below=64, reason="short answers lose"),
        AdvisedRoute(cohort="rag", concurrency_at_least=8, concurrency_at_most=15, reason="0.61×"),
        AdvisedRoute(cohort=None, concurrency_at_least=64, concurrency_at_most=127, reason="load"),
        AdvisedRoute(to=Arm.CANDIDATE, cohort="chat", reason="1.35×"),
    )
    path = folder / "advised.yaml"
    given = Advice(
        rollout=rollout,
        others=(),
        bootstrap_seed=0,
        bootstrap_draws=0,
        scopes=(),
        default=default,
        routes=found,
        load_adaptations=(),
    )
    advice_router.write(path, given)
    return path


def test_the_advisors_rules_are_taken_as_they_are(tmp_path: Path) -> None:
    """Each rule that `draftgate advise` writes comes back as the rule that it meant."""
    advised(tmp_path)
    document = {"rollout": "k4", "upstreams": UPSTREAMS, "rules": "advised.yaml"}
    routes = routes_file.read(write(tmp_path, document))
    assert [(rule.to.value, rule.words(), rule.reason) for rule in routes.rules] == [
        ("baseline", "cohort json", "0.87× end to end"),
        ("baseline", "cohort chat and max_tokens below 64", "short answers lose"),
        ("baseline", "cohort rag and concurrency at least 8 and at most 15", "0.61×"),
        ("baseline", "concurrency at least 64 and at most 127", "load"),
        ("candidate", "cohort chat", "1.35×"),
    ]
    assert routes.default is Arm.CANDIDATE
    advised(tmp_path, default=Arm.BASELINE)
    assert routes_file.read(write(tmp_path, document)).default is Arm.BASELINE
    advised(tmp_path)
    inline = document | {"rules": yaml.safe_load((tmp_path / "advised.yaml").read_text())["rules"]}
    read = routes_file.read(write(tmp_path, inline))
    assert read.model_dump() == routes.model_dump()


def test_an_included_file_has_its_default_and_its_errors(tmp_path: Path) -> None:
    """Its default counts if the routes give none; its own name stands in its errors."""
    document = {"rollout": "k4", "upstreams": UPSTREAMS, "rules": "own.yaml"}
    write(tmp_path, {"default": "baseline", "rules": [{"to": "candidate"}]}, "own.yaml")
    assert routes_file.read(write(tmp_path, document)).default is Arm.BASELINE
    chosen = write(tmp_path, document | {"default": "candidate"})
    assert routes_file.read(chosen).default is Arm.CANDIDATE
    for given, said in (
        ({"rules": [{"to": "baseline", "cohrt": "a"}]}, "rules.0.cohrt: unknown key; did you mean"),
        ({"rollout": "k8"}, "rollout: these rules are of 'k8', the routes of 'k4'; write new ones"),
    ):
        included = write(tmp_path, given, "own.yaml")
        with pytest.raises(RoutesFileError) as refused:
            routes_file.read(write(tmp_path, document))
        assert str(refused.value).startswith(f"{included}: {said}")


def test_the_routes_in_words(tmp_path: Path) -> None:
    """Every upstream, mode, rule and cohort has its line; keys have none."""
    lines = list(explanation.describe_routes(routes_file.read(write(tmp_path, FULL))))
    told = "told by header x-conversation, else each request drawn by itself"
    assert lines == [
        "rollout support-k4",
        "baseline:  vllm at http://b/v1",
        "candidate: sglang at http://c/v1, asked for served",
        f"mode split: the candidate answers 5 % of eligible sessions, {told}",
        "eligible by the first rule that matches:",
        "  rule 1: cohort json → baseline (it loses)",
        "  otherwise → candidate",
        "cohort by the first that says:",
        "  header x-draftgate-cohort (json)",
        "  tools → tool_call, JSON mode → json, passages → rag, code → code",
        "  otherwise → other",
        f"switch and ramp from http://collector:4318, kept in {tmp_path / 'routes.yaml.state'}",
        "spans to http://collector:4318, with prompts and answers",
        "clients: desk",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "mode baseline: the baseline answers all requests"),
        ({"mode": "candidate"}, "mode candidate: the candidate answers all eligible requests"),
        ({"mode": "mirror", "share": 0.5},
         "mode mirror: the baseline answers; 0.5 % of eligible requests go to the candidate too"),
        ({"mode": "mirror", "ramp": {"steps": [1, 100], "automatic": True}},
         ("mode mirror: the baseline answers; the ramp's part (1, 100 %; by itself, on a pass)"
          " of eligible requests go to the candidate too")),
    ],
)  # fmt: skip
def test_each_mode_in_words(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """A mode says who answers and how much of it goes where."""
    document = {"rollout": "k4", "upstreams": UPSTREAMS} | change
    assert said in explanation.describe_routes(routes_file.read(write(tmp_path, document)))


@pytest.mark.parametrize(
    ("automatic", "said"),
    [
        (True, ["ramp: not begun, so 0 %; it begins by itself once the switch is on"]),
        (False, ["ramp: not begun, so 0 %; begin it with",
                 "  draftgate promote k4 --collector http://localhost:4318"]),
    ],
)  # fmt: skip
def test_what_the_collector_told_in_words(tmp_path: Path, automatic: bool, said: list[str]) -> None:
    """Whoever starts a router is told why nothing reaches the candidate, and what to type."""
    document = {"rollout": "k4", "upstreams": UPSTREAMS, "ramp": {"automatic": automatic}}
    routes = routes_file.read(write(tmp_path, document))
    assert list(explanation.describe_state(KnownState(rollout="k4"), routes)) == [
        "switch: not known; until it is on, all requests go to the baseline",
        '  draftgate switch k4 on --reason "…" --collector http://localhost:4318',
        *said,
    ]
