"""What a dashboard shows whose key may not do everything."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from dashboard_seed.generations import FATES, generation
from otlp_bodies import export_request
from page_reading import dashboard_of, go
from playwright.sync_api import Page, expect

from collector.client import Client
from collector.contract import Arm, encode

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Serving = Callable[..., AbstractContextManager[str]]
KEYS = [sys.executable, "-c", "from draftgate.commands import app; app()", "keys", "create", "page"]


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Return a database with one pair, with its text."""
    url = f"sqlite:///{tmp_path}/keys.db"
    sides = [generation(FATES[0], arm, "rag", 1, 0) for arm in Arm]
    with Client.local(url, capture_content=True) as client:
        client.post_traces(export_request([encode(side) for side in sides]).SerializeToString())
    return url


def make_key(database: str, *scopes: str) -> str:
    """Return a key with the scopes."""
    options = [option for scope in scopes for option in ("--scope", scope)]
    made = subprocess.run(
        [*KEYS, *options, "--database", database], capture_output=True, text=True, check=True
    )
    return made.stdout.strip()


def test_a_key_shows_what_its_scopes_allow(
    page: Page,
    database: str,
    tmp_path: Path,
    free_port: Callable[[], int],
    serving: Serving,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without `read` nothing is shown but how to get it; without `content` numbers alone.

    Without `admin` the switch stays as it is, and says why.
    """
    keys = {scope: make_key(database, scope) for scope in ("ingest", "read")}
    address = "?rollout=support-k4&prompt=rag-001&repeat=0"
    log = tmp_path / "dashboard.log"
    with serving(database, free_port(), "--require-keys") as collector_url:
        monkeypatch.setenv("DRAFTGATE_API_KEY", keys["ingest"])
        with dashboard_of(collector_url, free_port(), log) as url:
            for path in ("", f"pairs{address}", "live"):
                go(page, f"{url}/{path}")
                expect(
                    page.get_by_role("heading", name="The collector refuses this dashboard's key")
                ).to_be_visible()
        monkeypatch.setenv("DRAFTGATE_API_KEY", keys["read"])
        with dashboard_of(collector_url, free_port(), log) as url:
            go(page, f"{url}/pairs{address}")
            expect(page.get_by_role("heading", name="Answers are not shown")).to_be_visible()
            expect(page.get_by_text("Question 1 on rag?")).to_have_count(0)
            expect(page.get_by_role("rowheader", name="Draft tokens")).to_be_visible()
            go(page, f"{url}/live?rollout=support-k4&refresh=off")
            page.get_by_role("button", name="Let the candidate answer …").click()
            dialog = page.get_by_role("dialog")
            dialog.get_by_role("textbox").fill("slow")
            dialog.get_by_role("textbox").blur()
            dialog.get_by_text("Yes: set the switch").click()
            dialog.get_by_role("button", name="Let the candidate answer").click()
            expect(dialog).to_contain_text("lacks the scope admin. Nothing was changed.")
            assert "Traceback" not in log.read_text()
