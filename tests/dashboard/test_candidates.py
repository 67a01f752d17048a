"""The candidates of a family on the Rollout page: by cohort, the best, and what two do together."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from dashboard_seed.verdicts import finding
from made_verdicts import made_verdict, resting_on, send_pairs
from otlp_bodies import export_request
from page_reading import FITS, dashboard_of, go
from page_running import rollout, shown
from playwright.sync_api import Page, expect

from collector.client import Client
from collector.contract import (
    Arm,
    CohortAnswer,
    Family,
    Generation,
    MayShip,
    Outcome,
    Verdict,
    encode,
)
from dashboard import source
from evals import policy as policies
from evals.policy.registration import register_family

FAMILY = Family(name="r", arms=("k4", "fp8", "both"), combined={"both": ("k4", "fp8")})
RATIOS = {"k4": 0.5, "fp8": 0.9, "both": 0.45}
ANSWERS = {"k4": MayShip.YES, "fp8": MayShip.YES, "both": MayShip.NO}


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    """Close what the pages opened."""
    yield
    source.client.clear()


def judged(arm: str) -> Verdict:
    ratio, answer = RATIOS[arm], ANSWERS[arm]
    outcome = Outcome.PASS if answer is MayShip.YES else Outcome.FAIL
    times = {"estimate": ratio, "lower": ratio / 1.05, "upper": ratio * 1.05, "margin": 1.0}
    because = "beyond the margin: share of completed tasks"
    return made_verdict(
        outcome,
        rollout=FAMILY.rollout_of(arm),
        family=FAMILY,
        pairs=40,
        findings=(
            finding("chat", "e2e", "geomean_ratio", **times),
            finding(None, "e2e", "geomean_ratio", **times),
        ),
        cohorts=(CohortAnswer(cohort="chat", pairs=40, answer=answer, because=because),),
    )


def send_prompt(client: Client, arm: str, *, fails: bool) -> None:
    """Store one more pair of a candidate, whose answer may have failed."""
    spans = [
        encode(
            Generation(
                trace_id=f"{FAMILY.arms.index(arm) + 1:032x}",
                span_id=f"{place + 1:016x}",
                start_unix_ns=2 * 10**18,
                end_unix_ns=2 * 10**18 + 10**9,
                rollout=FAMILY.rollout_of(arm),
                arm=side,
                prompt_id="last",
                repeat=0,
                error_type="timeout" if fails and side is Arm.CANDIDATE else None,
            )
        )
        for place, side in enumerate(Arm)
    ]
    client.post_traces(export_request(spans).SerializeToString())


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Return the URL of a SQLite file with a family of three candidates, judged."""
    url = f"sqlite:///{tmp_path}/family.db"
    with Client.local(url, capture_content=True) as client:
        register_family(client, FAMILY, policies.shipped("default"))
        for arm in FAMILY.arms:
            send_pairs(client, FAMILY.rollout_of(arm), 40)
            send_prompt(client, arm, fails=arm == "both")
            client.post_verdict(resting_on(client, judged(arm)))
    return url


def test_the_grid_marks_the_best_that_passes(
    monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    """Every candidate by cohort, the fastest that passes as the best, and the interaction."""
    text = shown(rollout(monkeypatch, database, rollout="r-k4"))
    assert "k4 this page fp8 pass both fail" in text
    chat = (
        "chat ✓ Pass best 50 % faster end to end: 0.50×, 0.48× to 0.53× "
        "✓ Pass 10 % faster end to end: 0.90×, 0.86× to 0.95× "
        "✕ Fail 55 % faster end to end: 0.45×, 0.43× to 0.47× k4"
    )
    assert chat in text
    assert "both: beyond what k4 and fp8 do by themselves" in text
    assert "failures all cohorts – – – 41 1 0, 0" in text
    assert "end to end all cohorts" not in text  # equal times have no limits


def test_a_candidate_that_is_not_judged_is_unknown(
    monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    """Its column says so, and no interaction is shown."""
    more = replace(FAMILY, arms=(*FAMILY.arms, "k8"))
    with Client.local(database, capture_content=True) as client:
        send_pairs(client, "r-k8", 1)
        changed = replace(judged("k4"), family=more)
        client.post_verdict(resting_on(client, changed))
    text = shown(rollout(monkeypatch, database, rollout="r-k4"))
    assert "k8 inconclusive" in text
    assert "not judged yet" in text
    assert "beyond what" not in text


@pytest.mark.slow
@pytest.mark.browser
def test_the_grid_fits_wide_and_narrow_pages(
    page: Page,
    database: str,
    free_port: Callable[[], int],
    serving: Callable[..., AbstractContextManager[str]],
    tmp_path: Path,
) -> None:
    """At 1440 and 390 pixels nothing stands beside the page, and the best can be seen."""
    log = tmp_path / "dashboard.log"
    with (
        serving(database, free_port()) as collector,
        dashboard_of(collector, free_port(), log) as url,
    ):
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            go(page, f"{url}/rollout?rollout=r-k4")
            expect(page.get_by_text("Candidates of r", exact=True)).to_be_visible()
            best = page.locator("table", has_text="May it ship").locator(
                ".dg-badge", has_text="best"
            )
            expect(best).to_have_count(2)
            best.last.scroll_into_view_if_needed()
            expect(best.last).to_be_visible()
            page.wait_for_function(FITS)
    assert "Traceback" not in log.read_text()
