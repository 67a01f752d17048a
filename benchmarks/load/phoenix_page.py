"""The project page of a Phoenix with many spans, in the browser."""

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from playwright.sync_api import Page

from benchmarks.load import peers, phoenix_rows
from benchmarks.load.sender import Plan, sender
from benchmarks.load.spans import NS_BETWEEN_STARTS
from benchmarks.load.targets import Running, TargetError

_SENT, _BATCH = 2_048, 256
"""Spans sent to its OTLP endpoint, and spans per request."""
_STORED_WITHIN_S = 900.0
ROWS = "table tbody tr a"
_FILTER = ".cm-content"
_LATENCY = re.compile(r"^([0-9.]+)s$", re.MULTILINE)


@contextmanager
def serving(spans: int, peers_folder: Path, folder: str | None) -> Iterator[str]:
    """Start a Phoenix with this many spans; yield the URL of its list of spans."""
    peers.installed_version(peers_folder, peers.PACKAGES["phoenix"])
    start = peers.known(peers_folder)["phoenix"]
    with tempfile.TemporaryDirectory(prefix="draftgate-", dir=folder) as work:
        with start(Path(work)) as running:
            _send(running)
        held = phoenix_rows.multiply(Path(work) / "phoenix.db", spans)
        with start(Path(work)) as running:
            if running.stored is None or running.stored() != held:
                raise TargetError(f"Phoenix does not find the {held} spans in its file")
            # The id of the first project, which receives spans by default.
            yield running.url.removesuffix("/v1/traces") + "/projects/UHJvamVjdDox/spans"


def _send(running: Running) -> None:
    plan = Plan(
        url=running.url,
        batch=_BATCH,
        batches=_SENT // _BATCH,
        seed=7,
        first_start_unix_ns=time.time_ns() - _SENT * NS_BETWEEN_STARTS,
    )
    with sender(plan) as sending:
        statuses = sending.send().statuses
    if set(statuses) != {200}:
        raise TargetError(f"requests by status: {dict(statuses)}; wanted 200 alone")
    deadline = time.monotonic() + _STORED_WITHIN_S
    while running.stored is None or running.stored() < _SENT:
        if time.monotonic() > deadline:
            raise TargetError(f"after {_STORED_WITHIN_S:.0f} s not all {_SENT} spans are stored")
        time.sleep(1)


def narrowing(page: Page) -> Callable[[], None]:
    """Clear the list's filter; return a function that sets a filter and waits for the result.

    The first row does not match the filter, so that a different first row shows that it applies.
    """
    first = page.locator("table tbody tr").first
    shown = first.inner_text()
    took = _LATENCY.search(shown)
    if took is None:
        raise TargetError(f"Phoenix's list shows no latency: {shown!r}")
    page.locator(_FILTER).first.click()
    page.keyboard.press("Control+A")
    return partial(_apply, page, f"latency_ms > {float(took[1]) * 1000 + 100:.0f}", shown)


def _apply(page: Page, condition: str, shown: str) -> None:
    page.keyboard.insert_text(condition)
    page.keyboard.press("Enter")
    page.wait_for_function(
        "shown => { const row = document.querySelector('table tbody tr');"
        " return row && row.innerText !== shown }",
        arg=shown,
    )
