"""The pages in a real browser, over a real collector."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

import pytest
from page_reading import finding_rows, formatted, go, numbers
from playwright.sync_api import Page, expect

from collector.client import Client
from collector.contract import Finding, Outcome, from_document, to_document
from dashboard import server, words
from evals.findings_by_margin import worst_first

pytestmark = pytest.mark.browser

Serving = Callable[..., AbstractContextManager[str]]
FAILED = "support-k8-relaxed"


class Site(NamedTuple):
    """A dashboard, and the collector that it reads."""

    url: str
    collector_url: str


@pytest.fixture(scope="module")
def site(seeded_database: str, free_port: Callable[[], int], serving: Serving) -> Iterator[Site]:
    """Serve the seeded rollouts by a collector, and a dashboard of it."""
    with (
        serving(seeded_database, free_port()) as collector_url,
        server.start(collector_url=collector_url, port=free_port()) as dashboard,
    ):
        yield Site(dashboard.url, collector_url)


def test_the_landing_page_leads_to_the_verdict(page: Page, site: Site) -> None:
    """From the list, one click reaches the verdict in words."""
    go(page, site.url)
    expect(page).to_have_title("Draftgate")
    row = page.get_by_role("row", name=FAILED)
    expect(row).to_contain_text("✕ Fail")
    page.get_by_role("link", name=FAILED).click()
    page.wait_for_url(f"{site.url}/rollout?rollout={FAILED}**")
    banner = page.get_by_role("status").filter(has_text="faster, but worse answers")
    expect(banner.locator(".dg-word")).to_have_text("Fail")
    expect(page.get_by_text("CET", exact=False).first).to_be_visible()


def test_every_findings_number_is_the_verdicts(page: Page, site: Site) -> None:
    """The table shows the stored verdict's numbers, and carries each in full."""
    with Client(site.collector_url) as client:
        stored = client.verdicts(FAILED, limit=1)[0].verdict
    document = to_document(stored)
    findings = worst_first([from_document(Finding, f) for f in document["findings"]])
    go(page, f"{site.url}/rollout?rollout={FAILED}")
    shown = finding_rows(page, len(findings))
    assert [numbers(row) for row in shown] == [formatted(finding) for finding in findings]
    exact = [
        [cell.get_attribute("title") for cell in row.locator(".dg-number").all()] for row in shown
    ]
    assert exact == [
        [
            None if value is None else repr(value)
            for value in (f.estimate, f.lower, f.upper, f.margin, f.n, f.n_needed)
        ]
        for f in findings
    ]
    names = [row.locator("th").inner_text().split("\n")[0] for row in shown]
    assert names == [words.cell(f) for f in findings]
    outcomes = [row.locator(".dg-outcome").inner_text() for row in shown]
    assert outcomes == [words.outcome(Outcome(f.outcome)) for f in findings]


def test_the_forest_plots_labels_leave_it_room_on_a_phone(page: Page, site: Site) -> None:
    """Each label has two lines, and the axis has room for its ticks."""
    page.set_viewport_size({"width": 390, "height": 844})
    go(page, f"{site.url}/rollout?rollout={FAILED}")
    plot = page.locator(".stVegaLiteChart").first
    plot.scroll_into_view_if_needed()
    for cohort in ("all cohorts", "rag", "tool_call", "code", "chat", "json", "summary"):
        label = f"{cohort} · must not fail"
        expect(plot.get_by_text(label, exact=True).first).to_be_visible()
    for tick in ("0.5", "0.9", "1.1"):
        expect(plot.get_by_text(tick, exact=True).first).to_be_visible()


def test_the_forest_plot_draws_a_row_for_each_finding(page: Page, site: Site) -> None:
    """Both panels are drawn, and a missing limit is labelled."""
    go(page, f"{site.url}/rollout?rollout={FAILED}")
    plot = page.get_by_test_id("stVegaLiteChart").first
    expect(plot).to_contain_text("all cohorts · TTFT p99 · must not fail")
    expect(plot).to_contain_text("no limit at this n")
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(12)


def test_a_page_recovers_when_its_collector_starts(
    page: Page, empty_database: str, free_port: Callable[[], int], serving: Serving
) -> None:
    """Silence names the URL and the next step; after Refresh an empty store says what to run."""
    port = free_port()
    silent = f"http://127.0.0.1:{port}"
    with server.start(collector_url=silent, port=free_port()) as dashboard:
        go(page, dashboard.url)
        expect(page.get_by_role("heading", name="The collector does not answer")).to_be_visible()
        expect(page.get_by_text(f"Tried: {silent}")).to_be_visible()
        with serving(empty_database, port):
            page.get_by_role("button", name="Refresh").click()
            expect(page.get_by_role("heading", name="No rollout yet")).to_be_visible()
            expect(page.get_by_text("draftgate demo")).to_be_visible()
