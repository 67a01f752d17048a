"""Read the dashboard's pages as a browser shows them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import Locator, Page, expect
from waiting import until

from collector.contract import Finding
from dashboard import words

FITS = """() => {
    const main = document.querySelector("[data-testid=stMain]");
    return main.scrollWidth <= main.clientWidth;
}"""
"""Whether nothing stands beside the page."""

_DASHBOARD = [sys.executable, "-c", "from dashboard.cli import app; app()"]


def go(page: Page, url: str) -> None:
    """Open an address and wait until the script has run."""
    page.goto(url)
    settle(page)


def settle(page: Page) -> None:
    """Wait until the page's script rests."""
    resting = '[data-testid="stApp"][data-test-script-state="notRunning"]'
    page.wait_for_selector(resting, timeout=120_000)


def finding_rows(page: Page, count: int) -> list[Locator]:
    """Return the rows of the findings' table, which must be `count`."""
    rows = page.locator("table", has_text="All findings").locator("tbody tr")
    expect(rows).to_have_count(count)
    return [rows.nth(i) for i in range(count)]


def numbers(row: Locator) -> list[str]:
    """Return a row's numbers, as they are read."""
    return [" ".join(text.split("\n")) for text in row.locator(".dg-number").all_inner_texts()]


def formatted(finding: Finding) -> list[str]:
    """Return the numbers that a finding's row must show."""
    unit = words.unit_of(finding.unit, finding.stat)
    return [
        words.in_unit(finding.estimate, unit),
        words.limit(finding.lower, unit),
        words.limit(finding.upper, unit),
        words.margin(finding),
        words.count(finding.n),
        words.pairs_needed(finding),
    ]


@contextmanager
def dashboard_of(collector_url: str, port: int, log: Path) -> Iterator[str]:
    """Serve a dashboard of a collector, its log in a file; give its URL."""
    command = [*_DASHBOARD, "--collector", collector_url, "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with (
        log.open("a") as file,
        subprocess.Popen(command, stdout=file, stderr=file, cwd=log.parent) as process,
    ):
        try:
            until(lambda: _answers(url), "the dashboard answers")
            yield url
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/_stcore/health").is_success
    except httpx.HTTPError:
        return False
