"""`draftgate db`."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from collector.cli.options import Database, open_store, seconds_of, usable
from collector.client.command_line import fail
from collector.errors import SettingsError
from collector.nouns import counted
from collector.settings import MIB, Settings, of_options
from collector.store import Keep, Store, exists
from collector.store.reader import TableSize
from collector.store.upkeep import retention, rollup_check, sizes

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Manage the database.")

_DAY_S = 86_400
_AT_ONCE = 5000
_SHOWN = 20

Yes = Annotated[bool, typer.Option("--yes", help="Delete without asking.")]


@app.command()
def upgrade(database: Database = None) -> None:
    """Create the database, or upgrade it to the newest schema; `draftgate serve` does so, too.

    Example: draftgate db upgrade --database sqlite:///draftgate.db
    """
    with usable():
        settings = of_options(database_url=database)
        with open_store(settings):
            pass
    typer.echo(f"{settings.database_url} is at the newest schema")


@app.command()
def stats(
    database: Database = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Show rows and size of each table, the days stored, and the pending rollup deltas.

    Rows are counted; tables of PostgreSQL above 100,000 rows are estimated, and marked as such.

    Example: draftgate db stats --json
    """
    with _existing(of_options(database_url=database)) as store:
        with store.read() as connection:
            tables = sizes.of_tables(connection)
            days = [_date(day) for day in sizes.days(connection)]
            pending = connection.reader.pending_deltas()
        size_bytes = store.size_bytes()
    if as_json:
        document = {
            "rows": {name: size.rows for name, size in tables.items()},
            "estimated": [name for name, size in tables.items() if size.estimated],
            "table_bytes": {name: size.size_bytes for name, size in tables.items()},
            "days": days,
            "pending_deltas": pending,
            "size_bytes": size_bytes,
        }
        typer.echo(json.dumps(document, indent=2))
        return
    _print_sizes(tables, size_bytes)
    held = f"{counted(len(days), 'day')}, {days[0]} to {days[-1]}" if days else "no day"
    typer.echo(f"holds {held}; {counted(pending, 'pending rollup delta')}")


@app.command()
def compact(database: Database = None) -> None:
    """Fold all pending rollups and count all pairs; a running collector does so by itself.

    Example: draftgate db compact
    """
    with _existing(of_options(database_url=database)) as store:
        folded = _all(lambda: store.fold(at_most=_AT_ONCE))
        paired = _all(lambda: store.count_pairs(at_most=_AT_ONCE))
    deltas, generations = counted(folded, "rollup delta"), counted(paired, "generation")
    typer.echo(f"folded {deltas}; counted the pairs of {generations}")


@app.command()
def check(database: Database = None) -> None:
    """Recompute all rollups and pair counts from the rows and compare; exit code 1 if they differ.

    Counts and histograms must be equal, sums equal to 1 part in 1e9. At most 20 differences are
    printed.

    Example: draftgate db check
    """
    with _existing(of_options(database_url=database)) as store, store.read() as connection:
        found = [str(difference) for difference in rollup_check.differences(connection)]
    for line in found[:_SHOWN]:
        typer.echo(line)
    if len(found) > _SHOWN:
        typer.echo(f"and {len(found) - _SHOWN} more")
    if found:
        raise typer.Exit(1)
    typer.echo("rollups and pair counts equal the rows")


@app.command()
def vacuum(database: Database = None) -> None:
    """Free the space of deleted rows, and refresh the query planner's statistics.

    SQLite rewrites the whole file: that needs as much free space again, and senders wait.

    Example: draftgate db vacuum
    """
    with _existing(of_options(database_url=database)) as store:
        before = store.size_bytes()
        store.vacuum()
        after = store.size_bytes()
    typer.echo(f"{before / MIB:,.1f} MiB before, {after / MIB:,.1f} MiB now")


@app.command("retention")
def retention_(
    spans: Annotated[
        str | None,
        typer.Option(
            help="How long to keep spans, such as 30d (s, m, h, d, w). Default: "
            "DRAFTGATE_RETENTION_SPANS."
        ),
    ] = None,
    content: Annotated[
        str | None,
        typer.Option(
            help="How long to keep the spans' text, such as 7d. Default: "
            "DRAFTGATE_RETENTION_CONTENT."
        ),
    ] = None,
    database: Database = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be deleted, and delete nothing.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete expired days, by the day of arrival; hourly rollups are kept.

    Asks first; without a terminal it needs --yes.

    Example: draftgate db retention --spans 30d --content 7d --dry-run
    """
    with usable():
        settings = of_options(
            database_url=database,
            retention_spans_s=seconds_of("--spans", spans),
            retention_content_s=seconds_of("--content", content),
        )
        keep = Keep(settings.retention_spans_s, settings.retention_content_s)
        if keep.everything:
            raise SettingsError("nothing to delete; give --spans, --content or both, such as 30d")
    now_unix_s = time.time()
    with _existing(settings) as store:
        with store.read() as connection:
            due = retention.due(connection, keep, now_unix_s)
        told = ", ".join(f"{rows:,} of {name}" for name, rows in due.items() if rows)
        typer.echo(f"rows that are too old: {told or 'none'}")
        if dry_run:
            return
        if told:
            _confirm("delete them", yes=yes)
        _all(lambda: store.retain(keep, now_unix_s))
    typer.echo("deleted")


@contextmanager
def _existing(settings: Settings) -> Iterator[Store]:
    """Open an existing database; fail if it does not exist instead of creating it."""
    with usable():
        if not exists(settings.database_url):
            name = settings.database_url.removeprefix("sqlite:///")
            raise SettingsError(
                f"{name}: does not exist; name an existing database with --database, "
                "or create one with `draftgate db upgrade`"
            )
        with open_store(settings) as store:
            yield store


def _confirm(what: str, *, yes: bool) -> None:
    """Ask on the terminal unless `yes`; fail if there is no terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail(f"would {what}, and there is no terminal to ask at; pass --yes")
    typer.confirm(f"{what}?", abort=True)


def _all(step: Callable[[], int]) -> int:
    """Repeat the step until it returns 0; return the sum."""
    total = 0
    while done := step():
        total += done
    return total


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * _DAY_S, UTC).date().isoformat()


def _print_sizes(tables: dict[str, TableSize], size_bytes: int) -> None:
    shown = Table("table", "rows", "MiB", title=f"{size_bytes / MIB:,.1f} MiB")
    for column in shown.columns[1:]:
        column.justify = "right"
    for name, size in tables.items():
        mib = "" if size.size_bytes is None else f"{size.size_bytes / MIB:,.1f}"
        shown.add_row(name, f"{'about ' if size.estimated else ''}{size.rows:,}", mib)
    Console().print(shown)
