"""A hundred thousand pairs: the explorer lists, filters and links them all."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

import pytest
from dashboard_seed.generations import COHORTS, FATES, generation, scores
from otlp_bodies import export_request
from page_reading import dashboard_of, go
from playwright.sync_api import Page, expect

from collector.client import Client
from collector.contract import Arm, Generation, encode

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1800)]

Serving = Callable[..., AbstractContextManager[str]]
FAILED = FATES[1]
PROMPTS = 8_334
PAIRS = PROMPTS * 2 * len(COHORTS)
REGRESSED = len(COHORTS) * 2 * len(range(2, PROMPTS, FAILED.lower_scores))


def generations() -> Iterator[Generation]:
    """Yield both sides of every pair, without text, all of them in the past."""
    hours = 10 * 3600 * 10**9
    for cohort, number, repeat, arm in product(COHORTS, range(PROMPTS), range(2), Arm):
        sent = generation(FAILED, arm, cohort, number, repeat)
        yield replace(
            sent,
            content=None,
            start_unix_ns=sent.start_unix_ns - hours,
            end_unix_ns=sent.end_unix_ns - hours,
        )


def test_a_hundred_thousand_pairs_are_explored(
    page: Page, tmp_path: Path, free_port: Callable[[], int], serving: Serving
) -> None:
    """Regressions lead, filters count, pages turn, and a link finds its pair at once."""
    url = f"sqlite:///{tmp_path}/many.db"
    with Client.local(url) as client:
        every = generations()
        while batch := list(islice(every, 4_000)):
            body = export_request([encode(sent) for sent in batch])
            client.post_traces(body.SerializeToString())
            client.post_scores(score for sent in batch for score in scores(FAILED, sent))
    log = tmp_path / "dashboard.log"
    grouped, worse = (f"{n:,}".replace(",", "\u202f") for n in (PAIRS, REGRESSED))
    with (
        serving(url, free_port()) as collector_url,
        dashboard_of(collector_url, free_port(), log) as dashboard,
    ):
        pairs = f"{dashboard}/pairs?rollout={FAILED.rollout}"
        go(page, pairs)
        listed = page.get_by_text(f"{grouped} pairs; in {worse}, listed first")
        expect(listed).to_contain_text("the candidate scored lower")
        expect(page.get_by_text(f"1–15 of {grouped}")).to_be_visible()
        page.get_by_role("radio", name="Regressed").click()
        expect(page.get_by_text(f"1–15 of {worse}")).to_be_visible()
        go(page, f"{pairs}&page=400&prompt=summary-8000&repeat=1")
        expect(page.get_by_text("summary-8000 · repeat 1 · summary")).to_be_visible()
        expect(page.get_by_text(f"5\u202f986–6\u202f000 of {grouped}")).to_be_visible()
        go(page, f"{dashboard}/rollout?rollout={FAILED.rollout}&cohort=json&section=distributions")
        expect(page.get_by_role("heading", name="Distributions")).to_be_visible()
        expect(page.get_by_text("From the newest 50\u202f000 of")).to_be_visible()
    assert "Traceback" not in log.read_text()
