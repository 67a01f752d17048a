"""Read the dashboard's pages as a browser shows them."""

from playwright.sync_api import Locator, Page, expect

from collector.contract import Finding
from dashboard import words


def go(page: Page, url: str) -> None:
    """Open an address and wait until the script has run."""
    page.goto(url)
    settle(page)


def settle(page: Page) -> None:
    """Wait until the page's script rests."""
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')


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
    return [
        words.in_unit(finding.estimate, finding.unit),
        words.limit(finding.lower, finding.unit),
        words.limit(finding.upper, finding.unit),
        words.margin(finding),
        words.count(finding.n),
        words.pairs_needed(finding),
    ]
