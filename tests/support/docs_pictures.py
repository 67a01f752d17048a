"""Take the pictures of the pages that the docs show: `make pictures`.

A collector with made-up rollouts and a dashboard of it are started; Chromium shows each page once.
"""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from dashboard_seed import seed  # noqa: E402  # found by the line above
from dashboard_seed.agent import TRACE  # noqa: E402
from page_reading import go  # noqa: E402
from playwright.sync_api import Page, sync_playwright  # noqa: E402
from waiting import until  # noqa: E402

from collector.client import Client  # noqa: E402
from dashboard import server  # noqa: E402

_IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
_ROLLOUT: Final = "support-k8-relaxed"
_WATCHED: Final = "support-eagle-k6"
_PAGES: Final = {
    "rollouts": ("", 520),
    "rollout": (f"rollout?rollout={_ROLLOUT}", 1500),
    "acceptance": (f"acceptance?rollout={_ROLLOUT}", 1700),
    "pairs": (f"pairs?rollout={_ROLLOUT}", 1350),
    "traces": (f"traces?rollout={_ROLLOUT}&trace={TRACE}", 1100),
    "live": (f"live?rollout={_WATCHED}", 1500),
    "verdicts": (f"verdicts?rollout={_ROLLOUT}", 1000),
}
"""Each picture's page and height in pixels."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _dashboard(folder: str) -> Iterator[str]:
    """Serve the made-up rollouts and give the dashboard's address."""
    database, port = f"sqlite:///{folder}/made-up.db", _free_port()
    with Client.local(database, capture_content=True) as client:
        seed(client)
    options = ["--no-grpc", "--database", database, "--port", str(port)]
    command = [sys.executable, "-m", "draftgate", "serve", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as collector:
        try:
            url = f"http://127.0.0.1:{port}"
            with Client(url) as client:
                until(client.health)
            with server.start(collector_url=url, port=_free_port()) as dashboard:
                yield dashboard.url
        finally:
            collector.terminate()


def _drawn(page: Page) -> None:
    """Wait until every widget and chart that the window shows is drawn, and stands still."""
    page.wait_for_function("() => !document.querySelector('[data-testid=stSkeleton]')")
    page.wait_for_function(
        """() => [...document.querySelectorAll("[data-testid=stVegaLiteChart]")]
            .every(chart => chart.querySelector("canvas, svg"))"""
    )
    page.wait_for_timeout(1500)  # ms: fading in ends without an event


def main() -> None:
    """Write every picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(timezone_id="Europe/Berlin")
        with _dashboard(folder) as url:
            for name, (path, height) in _PAGES.items():
                page.set_viewport_size({"width": 1440, "height": height})
                go(page, f"{url}/{path}")
                _drawn(page)
                page.screenshot(path=_IMAGES / f"{name}.png")
                sys.stdout.write(f"docs/images/{name}.png\n")
        browser.close()


if __name__ == "__main__":
    main()
