"""`draftgate keys`."""

import json
import time
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from collector import api_key, durations
from collector.api_key import ApiKey, Scope
from collector.cli.options import Database, open_store, usable
from collector.errors import SettingsError
from collector.settings import of_options
from collector.store import Store
from collector.store import keys as stored_keys

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Manage API keys.")

_NS = 1_000_000_000


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Who or what the key is for.")],
    scope: Annotated[
        list[Scope],
        typer.Option(
            help="What the key may do: ingest, judge, read, content or admin; repeatable. "
            "None implies another."
        ),
    ],
    project: Annotated[
        str | None, typer.Option(help="Label for listings; it restricts nothing.")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(help="Lifetime, such as 12h or 90d (s, m, h, d, w). Default: it never ends."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, help="Most requests a second. Default: the collector's."),
    ] = None,
    database: Database = None,
) -> None:
    """Create a key and print it once: only its digest is stored, so it cannot be shown again.

    Running collectors accept it at once.

    Example: draftgate keys create ci --scope ingest --scope read --expires 90d
    """
    text = api_key.new_key_text()
    now_unix_ns = time.time_ns()
    with usable():
        key = ApiKey(
            id=text.id,
            name=name,
            digest=api_key.digest(text.secret),
            scopes=frozenset(scope),
            project=project,
            rate_per_s=rate,
            created_unix_ns=now_unix_ns,
            expires_unix_ns=(
                now_unix_ns + durations.seconds("--expires", expires) * _NS if expires else None
            ),
        )
        with _opened(database) as store, store.transaction() as to:
            stored_keys.add(to, key)
    typer.echo(
        f"key {key.id} for {name}: {', '.join(sorted(key.scopes))}; "
        f"{_until(key)}. It is shown this once:",
        err=True,
    )
    typer.echo(str(text))


@app.command("list")
def list_(
    database: Database = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the keys as JSON.")] = False,
) -> None:
    """List the keys, newest first, including revoked and expired ones; secrets are not shown.

    The last use is known to the minute.

    Example: draftgate keys list --json
    """
    with (
        usable(),
        _opened(database) as store,
        store.read() as connection,
    ):
        found = stored_keys.newest_first(connection)
    now_unix_ns = time.time_ns()
    rows = [_document(key, now_unix_ns) for key in found]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = Table("id", "name", "scopes", "project", "state", "rate", "created", "last used")
    for row in rows:
        shown = {**row, "scopes": ", ".join(row["scopes"])}
        columns = ("id", "name", "scopes", "project", "state", "rate_per_s", "created", "last_used")
        table.add_row(*("" if shown[c] is None else str(shown[c]) for c in columns))
    Console().print(table)


@app.command()
def revoke(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The eight characters after dgk_.")],
    database: Database = None,
) -> None:
    """Revoke a key: running collectors refuse it within two seconds.

    Example: draftgate keys revoke 1f0c9a3e
    """
    with (
        usable(),
        _opened(database) as store,
        store.transaction() as connection,
    ):
        key = stored_keys.by_id(connection, id_)
        if key is None:
            raise SettingsError(f"{id_}: no key has this id; `draftgate keys list` shows them")
        stored_keys.revoke(connection, id_, time.time_ns())
    earlier = " already" if key.revoked_unix_ns is not None else ""
    typer.echo(f"key {id_} ({key.name}) is revoked{earlier}")


def _opened(database: str | None) -> AbstractContextManager[Store]:
    # Without ClickHouse: it has no keys, and a running collector may lock chdb's folder.
    return open_store(of_options(database_url=database), relational_only=True)


def _until(key: ApiKey) -> str:
    return f"expires {_time(key.expires_unix_ns)}" if key.expires_unix_ns else "does not expire"


def _document(key: ApiKey, now_unix_ns: int) -> dict[str, Any]:  # Any: JSON values
    return {
        "id": key.id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "project": key.project,
        "state": _state(key, now_unix_ns),
        "rate_per_s": key.rate_per_s,
        "created": _time(key.created_unix_ns),
        "expires": _time(key.expires_unix_ns),
        "revoked": _time(key.revoked_unix_ns),
        "last_used": _time(key.last_used_unix_ns),
    }


def _state(key: ApiKey, now_unix_ns: int) -> str:
    if key.revoked_unix_ns is not None:
        return "revoked"
    return "usable" if key.is_usable(now_unix_ns) else "expired"


def _time(unix_ns: int | None) -> str | None:
    if unix_ns is None:
        return None
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).isoformat(timespec="seconds")
