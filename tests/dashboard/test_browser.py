"""The pages in a real browser, over a real collector."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from page_reading import finding_rows, formatted, go, numbers
from playwright.sync_api import Browser, Page, expect

from collector.client import Client
from collector.contract import Finding, Outcome, from_document, to_document
from dashboard import server, words
from evals.report.findings_by_margin import worst_first

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
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(2)


def test_a_section_shows_its_evidence_alone(page: Page, site: Site) -> None:
    """The verdict, its reasons and cohorts come first; a section at a time is read below them."""
    for width, most_px in ((1440, 3_500), (390, 8_500)):
        page.set_viewport_size({"width": width, "height": 844})
        go(page, f"{site.url}/rollout?rollout={FAILED}")
        expect(page.locator("table", has_text="All findings")).to_be_visible()
        expect(page.get_by_role("heading", name="For whom?")).to_be_in_viewport()
        assert page.get_by_test_id("stMain").evaluate("main => main.scrollHeight") < most_px
    for section, table in (("Latency", "exact percentiles"), ("Traffic", "Counted by")):
        page.get_by_role("radio", name=section, exact=True).click()
        page.wait_for_url(f"**section={section.lower()}**")
        expect(page.get_by_role("heading", name=section, exact=True)).to_be_visible()
        expect(page.locator("table", has_text=table)).to_be_visible()
        expect(page.locator("table", has_text="All findings")).to_have_count(0)


def test_times_are_the_viewers_and_name_their_zone(browser: Browser, site: Site) -> None:
    """An axis of times has the hours of the browser's clock, of 24, and the zone's name."""
    page = browser.new_page(timezone_id="Asia/Tokyo")
    go(page, f"{site.url}/acceptance?rollout={FAILED}")
    plot = page.get_by_test_id("stVegaLiteChart").filter(has_text="time in Asia/Tokyo")
    with Client(site.collector_url) as client:
        (first_ns,) = (
            overview.first_start_unix_ns
            for overview in client.rollouts()
            if overview.rollout == FAILED
        )
    first = datetime.fromtimestamp(first_ns // 10**9, ZoneInfo("Asia/Tokyo"))
    expect(plot.get_by_text(re.compile(rf"^{first:%H:%M}(:00)?$")).first).to_be_visible()
    page.close()


def test_a_page_recovers_when_its_collector_starts(
    page: Page, empty_database: str, free_port: Callable[[], int], serving: Serving
) -> None:
    """Silence names the URL and the next step; after Refresh an empty store says what to run."""
    port = free_port()
    silent = f"http://127.0.0.1:{port}"
    with server.start(collector_url=silent, port=free_port()) as dashboard:
        go(page, dashboard.url)
        expect(page.get_by_role("heading", name="The collector does not answer")).to_be_visible()
        expect(page.get_by_text(f"Collector: {silent}")).to_be_visible()
        with serving(empty_database, port):
            page.get_by_role("button", name="Refresh").click()
            expect(page.get_by_role("heading", name="No rollout yet")).to_be_visible()
            expect(page.get_by_text("draftgate demo")).to_be_visible()
