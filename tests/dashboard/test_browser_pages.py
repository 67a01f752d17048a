"""Every page in a real browser: nothing breaks, everybody can use it, nothing in it runs."""

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from client_environments import axe
from dashboard_seed.agent import TRACE
from page_reading import FITS, dashboard_of, go, settle
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from collector.client import Client
from collector.contract import RampChange, Switch

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Serving = Callable[..., AbstractContextManager[str]]
FAILED = "support-k8-relaxed"
WATCHED = "support-eagle-k6"
PAGES = {
    "rollouts": "",
    "rollout": f"rollout?rollout={FAILED}",
    "acceptance": f"acceptance?rollout={FAILED}",
    "pairs": f"pairs?rollout={FAILED}&prompt=rag-002&repeat=0",
    "traces": f"traces?rollout={FAILED}&trace={TRACE}",
    "slow requests": f"traces?rollout={FAILED}&slow=1",
    "live": f"live?rollout={WATCHED}&refresh=off",
    "verdicts": f"verdicts?rollout={FAILED}",
}
# What Streamlit's own frame does: no page of ours could mend it.
_STREAMLITS = {
    "aria-allowed-attr": "the frame's own widgets",
    "landmark-unique": "the frame's own regions",
}
# Colours that fade in are too pale for a moment; charts follow the window some frames later.
_AT_ONCE = "* { transition: none !important; animation: none !important }"


class Site(NamedTuple):
    """A dashboard, the collector that it reads, and the dashboard's log."""

    url: str
    collector_url: str
    log: Path


@pytest.fixture(scope="module")
def site(
    seeded_database: str,
    free_port: Callable[[], int],
    serving: Serving,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    """Serve the seeded rollouts by a collector, and a dashboard of it; its log stays clean."""
    log = tmp_path_factory.mktemp("log") / "dashboard.log"
    with serving(seeded_database, free_port()) as collector_url:
        with dashboard_of(collector_url, free_port(), log) as url:
            yield Site(url, collector_url, log)
        assert "Traceback" not in log.read_text()
        assert "Uncaught" not in log.read_text()


def drawn(page: Page, url: str) -> None:
    """Open a page and wait until its charts are there, too."""
    go(page, url)
    page.wait_for_load_state("networkidle")
    expect(page.locator("h1.dg-title")).to_be_visible()


@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_use_a_page(page: Page, site: Site, name: str) -> None:
    """In either theme axe-core finds nothing serious; at 800 pixels nothing stands beside it.

    No heading of a table is a name of the source.
    """
    drawn(page, f"{site.url}/{PAGES[name]}")
    expect(page.locator("th[scope='col']", has_text=re.compile("[a-z][A-Z]"))).to_have_count(0)
    page.add_script_tag(path=str(axe()))
    page.add_style_tag(content=_AT_ONCE)
    for scheme, behind in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(23, 22, 20)")):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        expect(page.get_by_test_id("stApp")).to_have_css("background-color", behind)
        page.set_viewport_size({"width": 1440, "height": 1000})
        assert _serious(page) == []
        page.set_viewport_size({"width": 800, "height": 900})
        page.wait_for_function(FITS)


def _serious(page: Page) -> list[str]:
    """Return what axe-core finds serious, or out of order, in what the page itself draws."""
    found: list[dict[str, Any]] = page.evaluate("axe.run().then(r => r.violations)")
    return [
        f"{v['id']}: {node['target']}"
        for v in found
        if v["impact"] in ("serious", "critical") or v["id"] == "heading-order"
        if v["id"] not in _STREAMLITS
        for node in v["nodes"]
    ]


def test_hostile_text_stays_text(page: Page, site: Site) -> None:
    """Markup in answers and names of spans is shown letter by letter: nothing runs or loads."""
    go(page, f"{site.url}/{PAGES['pairs']}&spans=1")
    candidate = page.locator("pre.dg-text", has_text="alert(1)").first
    expect(candidate).to_contain_text("![x](http://127.0.0.1:9/pixel.png)")
    expect(candidate.locator("a, img, script, b, strong")).to_have_count(0)
    expect(page.locator("[src*='pixel.png'], a[href*='127.0.0.1:9/']")).to_have_count(0)
    go(page, f"{site.url}/{PAGES['traces']}")
    expect(page.get_by_text("[link](http://127.0.0.1:9/tool)").first).to_be_visible()
    expect(page.locator("[src*='tool.png'], a[href*='127.0.0.1:9/']")).to_have_count(0)


def test_a_pasted_link_restores_the_view(page: Page, browser: Browser, site: Site) -> None:
    """Cohort, kind and pair that one viewer chose are what the next one sees."""
    go(page, f"{site.url}/pairs?rollout={FAILED}")
    page.get_by_role("radio", name="rag", exact=True).click()
    page.wait_for_url("**cohort=rag**")
    settle(page)
    page.get_by_role("radio", name="Regressed").click()
    page.wait_for_url("**show=regressed**")
    settle(page)
    page.get_by_role("row", name="rag-009 1").get_by_role("link").click()
    page.wait_for_url("**prompt=rag-009&repeat=1**")
    settle(page)
    other = browser.new_page()
    try:
        go(other, page.url)
        expect(other.get_by_text("Question 9 on rag?")).to_be_visible()
        expect(other.get_by_text("6 pairs; in 6, listed first")).to_be_visible()
        expect(other.get_by_role("radio", name="Regressed")).to_be_checked()
    finally:
        other.close()


def test_keys_choose_the_next_pair_and_the_one_before(page: Page, site: Site) -> None:
    """The keys j and k go down and up the list, and the address follows."""
    go(page, f"{site.url}/pairs?rollout={FAILED}")
    expect(page.get_by_role("button", name="Pair above")).to_be_disabled()
    expect(page.locator("tr[aria-current]")).to_contain_text("chat-002")
    page.keyboard.press("j")
    page.wait_for_url("**&prompt=chat-002&repeat=1")
    settle(page)
    expect(page.get_by_role("button", name="Pair above")).to_be_enabled()
    # A button listens for its key some time after it is drawn enabled; k at the top does nothing.
    for _ in range(10):
        page.keyboard.press("k")
        with contextlib.suppress(PlaywrightTimeoutError):
            page.wait_for_url("**&prompt=chat-002&repeat=0", timeout=3_000)  # ms
            return
    raise AssertionError(f"k does not go up the list: {page.url}")


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_the_first_screen_has_the_list_and_the_answers(
    page: Page, site: Site, width: int, height: int
) -> None:
    """The chosen row is in sight, even far down the list, and so are both of its answers."""
    page.set_viewport_size({"width": width, "height": height})
    go(page, f"{site.url}/pairs?rollout={FAILED}&prompt=json-002&repeat=1")
    expect(page.locator("tr[aria-current]")).to_be_in_viewport()
    for answer in page.locator("pre.dg-text").all()[:2]:
        expect(answer).to_be_in_viewport()


def test_pages_of_pairs_are_turned(page: Page, site: Site) -> None:
    """Next shows the pairs after these, and chooses the first of them."""
    go(page, f"{site.url}/pairs?rollout={FAILED}&prompt=rag-002&repeat=0")
    page.get_by_role("button", name="Next").click()
    page.wait_for_url("**page=2**")
    expect(page.get_by_text("16–30 of 240")).to_be_visible()
    assert "prompt=rag-002" not in page.url


def test_the_order_of_findings_changes(page: Page, site: Site) -> None:
    """Sorted by metric, the table begins with the first metric by name."""
    go(page, f"{site.url}/rollout?rollout={FAILED}")
    first = page.locator("table", has_text="All findings").locator("tbody th").first
    expect(first).to_contain_text("rag · task completion")
    page.get_by_role("radio", name="By metric").click()
    page.wait_for_url("**order=metric**")
    expect(first).to_contain_text("all cohorts · end to end geometric mean")


def test_the_switch_is_turned_with_a_reason_and_logged(page: Page, site: Site) -> None:
    """The dialog names what happens, wants a reason and a tick, and leaves a line in the log."""
    go(page, f"{site.url}/live?rollout=support-k4&refresh=off")
    expect(page.get_by_text("It was never set, so a router sends every request to")).to_be_visible()
    page.get_by_role("button", name="Let the candidate answer …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("may send requests of “support-k4” to the candidate")
    expect(dialog).to_contain_text("May it ship: ")
    confirm = dialog.get_by_role("button", name="Let the candidate answer")
    confirm.click()
    expect(dialog).to_contain_text("both are needed")
    with Client(site.collector_url) as client:
        assert client.switch("support-k4") == ()
        client.take_step("support-k4", RampChange(percent=5, reason="begin <i>small</i>"))
        dialog.get_by_role("textbox").fill("p99 <b>doubled</b>")
        dialog.get_by_role("textbox").blur()
        dialog.get_by_text("Yes: set the switch").click()
        confirm.click()
        expect(dialog).to_have_count(0)
        expect(page.locator(".dg-switch")).to_contain_text("● On")
        expect(page.get_by_text("Ramp: 5 %, by local")).to_contain_text("begin <i>small</i>")
        (event,) = client.switch("support-k4")
    assert (event.state, event.reason, event.who) == (Switch.ON, "p99 <b>doubled</b>", "local")
    log = page.locator("table", has_text="never changed")
    expect(log).to_contain_text("p99 <b>doubled</b>")


_AT_REST = """() => new Promise(settled => {
    const main = document.querySelector("[data-testid=stMain]"), height = main.scrollHeight
    setTimeout(() => settled(main.scrollHeight === height), 1500)
})"""


def test_redrawing_keeps_scroll_and_filters(page: Page, site: Site) -> None:
    """While the live part redraws itself, the page stays where its reader is."""
    go(page, f"{site.url}/live?rollout={WATCHED}&refresh=10s&metric=e2e_s")
    as_of = page.get_by_text(re.compile(r"^As of "))
    before = as_of.inner_text()
    page.wait_for_function(_AT_REST)  # else the browser moves with what grows above
    main = page.get_by_test_id("stMain")
    main.evaluate("element => element.scrollTo(0, 700)")
    expect(as_of).not_to_have_text(before)
    assert main.evaluate("element => element.scrollTop") == 700
    assert "metric=e2e_s" in page.url
    expect(page.get_by_role("radio", name="End to end")).to_be_checked()


def test_the_report_opens_without_a_server(page: Page, site: Site, tmp_path: Path) -> None:
    """The downloaded file shows verdict and findings by itself, and asks for nothing."""
    go(page, f"{site.url}/{PAGES['verdicts']}")
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Report (HTML, one file)").click()
    file = tmp_path / downloading.value.suggested_filename
    downloading.value.save_as(file)
    text = file.read_text()
    assert "<script" not in text
    assert not re.search(r"""(src|href)=["']https?:""", text)
    page.set_content(text)
    expect(page.get_by_role("heading", name=FAILED)).to_be_visible()
    expect(page.locator("svg.dg-forest")).to_have_count(2)
    expect(page.locator("table", has_text="All findings").locator("tbody tr")).to_have_count(19)


def test_the_keyboard_reaches_a_rollout(page: Page, site: Site) -> None:
    """Tab and Enter alone lead from the list to a verdict."""
    go(page, site.url)
    link = page.get_by_role("link", name=FAILED)
    for _ in range(40):
        page.keyboard.press("Tab")
        if link.evaluate("element => element === document.activeElement"):
            break
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.url}/rollout?rollout={FAILED}**")
    expect(page.locator(".dg-banner .dg-word")).to_have_text("Fail")
