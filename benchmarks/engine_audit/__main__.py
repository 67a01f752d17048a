"""Audit serving engines over their releases, for whether speculation changes their answers.

Each cell (engine, release, drafting method, way of decoding, requests in flight) is a rollout on
the demo's models: run, scored, judged with the target's own logits, and left as a bundle that
`draftgate verify` judges again. Results go into results.json beside this file. What is there is not
run again; an interrupted audit goes on where it was.

    python -m benchmarks.engine_audit [--only TEXT] [--telling] [--minutes 60] [--list] [--table]
"""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.engine_audit import models, results, table  # noqa: E402
from benchmarks.engine_audit.cells import Cell, cells, telling_cells  # noqa: E402
from benchmarks.engine_audit.results import Result  # noqa: E402
from benchmarks.engine_audit.run import judge, run  # noqa: E402
from benchmarks.engine_audit.servers import Servers  # noqa: E402
from collector.contract import Arm  # noqa: E402
from demo import collector_process  # noqa: E402

RESULTS = Path(__file__).parent / "results.json"


def main() -> int:
    """Run the cells that have no result, print each, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="cells with this in their name")
    parser.add_argument("--telling", action="store_true", help="only the most telling cells")
    parser.add_argument("--minutes", type=float, default=600, help="start no cell after that")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "engine_audit",
                        help="folder of bundles, logs and models")  # fmt: skip
    parser.add_argument("--port", type=int, default=18230,
                        help="of the collector; the next two are the servers'")  # fmt: skip
    parser.add_argument("--again", action="store_true",
                        help="run cells that have a result, too: in a new --work")  # fmt: skip
    parser.add_argument("--judge", action="store_true", help="judge what is stored again")
    parser.add_argument("--list", action="store_true", help="name the cells, and end")
    parser.add_argument("--table", action="store_true", help="write the table, and end")
    given = parser.parse_args()
    offered = telling_cells() if given.telling else cells()
    wanted = [cell for cell in offered if given.only in cell.name]
    if given.list:
        print(*(cell.name for cell in wanted), sep="\n")
    elif not given.table:
        _run(wanted, given)
    page = table.filled(table.DOCUMENT.read_text(), results.read(RESULTS))
    table.DOCUMENT.write_text(page)
    return 0


def _run(wanted: list[Cell], given: argparse.Namespace) -> None:
    work, port = given.work.resolve(), given.port
    (work / "logs").mkdir(parents=True, exist_ok=True)
    done = {one.cell: one for one in results.read(RESULTS)}
    until_s = time.monotonic() + given.minutes * 60
    servers = Servers(work / "logs", port + 1)
    database, log = work / "audit.db", work / "logs" / "collector.log"
    with collector_process.running(database, log, port=port) as url:
        try:
            for cell in wanted:
                folder, before = work / "cells" / cell.name, done.get(cell)
                if time.monotonic() > until_s:
                    break
                pair = models.pair(cell.model, work / "models")
                if given.judge and before is not None and before.data_hash is not None:
                    done[cell] = judge(cell, folder, pair, url, before)
                elif not given.judge and (given.again or not _is_done(before)):
                    done[cell] = run(cell, folder, pair, servers, url)
                else:
                    continue
                _print(done[cell])
                _keep(done[cell])
        finally:
            servers.stop(*Arm)


def _keep(one: Result) -> None:
    """Write a cell's result beside those that another audit may have written meanwhile."""
    others = [other for other in results.read(RESULTS) if other.cell != one.cell]
    results.write(RESULTS, [*others, one])


def _is_done(one: Result | None) -> bool:
    """Return whether a cell has a verdict, or cannot be run at all."""
    return one is not None and (one.not_run is None or one.cell.unavailable is not None)


def _print(one: Result) -> None:
    rate = f"{one.accepted / one.drafted:.0%}" if one.drafted and one.accepted is not None else "–"
    said = one.not_run or f"{one.outcome}, accepted {rate}, speed-up {one.speed_up}"
    print(f"{one.cell.name}: {said} {', '.join(one.faults)} [{one.seconds} s]",
          flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
