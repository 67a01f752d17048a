"""The engine audit: its page is made of its results, and each patch has a cell."""

from pathlib import Path

from benchmarks.engine_audit import __main__ as audit
from benchmarks.engine_audit import results, table
from benchmarks.engine_audit.cells import PATCHED, cells, telling_cells


def test_the_page_has_the_results() -> None:
    """Which name each cell once, and were all verified from their bundles."""
    found = results.read(audit.RESULTS)
    page = table.DOCUMENT.read_text()
    assert table.filled(page, found) == page
    assert len({one.cell for one in found}) == len(found)
    assert {one.verified for one in found if one.not_run is None} == {True}
    assert {one.cell for one in found} <= set(cells())


def test_telling_cells_come_first_and_each_once() -> None:
    """So that an interrupted audit has them."""
    every, telling = list(cells()), list(telling_cells())
    assert every[: len(telling)] == telling
    assert len({one.name for one in every}) == len(every)


def test_each_patch_has_a_cell() -> None:
    """And each patched cell its patch."""
    folder = Path(audit.__file__).parent / "patches"
    assert {file.stem for file in folder.iterdir()} == {one.patch for one in PATCHED}
