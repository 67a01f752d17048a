"""SQLite files: checks before opening, and connection settings."""

import sqlite3
from pathlib import Path
from types import NoneType
from typing import Any

from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event

from collector.errors import StoreError, StoreUnavailableError
from collector.store.sqlite.immutable import is_immutable

_MAGIC = b"SQLite format 3\0"
_CACHE_KIB = 64 * 1024
_CHECKPOINT_PAGES = 4000  # 32 MiB


def create(url: URL, *, busy_timeout_s: float) -> Engine:
    """Return an engine on an SQLite file; nothing is opened or written yet.

    Raises `StoreError` if the file is no SQLite database and cannot become one.
    """
    check(url)
    _tell_the_driver_what_it_can_bind()
    engine = create_engine(
        url,
        pool_size=8,
        max_overflow=40,
        hide_parameters=True,  # otherwise error messages would put rows, with text, into the log
    )

    def on_connect(connection: sqlite3.Connection, _record: Any) -> None:  # Any: unused
        # Otherwise the driver begins transactions itself, too late for the lock that we need.
        connection.isolation_level = None
        for pragma in (
            f"busy_timeout = {int(busy_timeout_s * 1000)}",
            "synchronous = FULL",
            # New files get larger pages than the default 4 KiB: rows are wide, and commits cost a
            # third less. Existing files keep their page size.
            "page_size = 8192",
            f"cache_size = -{_CACHE_KIB}",
            f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    shared = f"{url.database}-shm"

    def on_begin(connection: Connection) -> None:
        # It is mapped, and readers write there too: that would end the process by SIGBUS.
        if is_immutable(shared):
            words = "its -shm file cannot be changed; let it be written to"
            raise StoreUnavailableError(f"{shared}: {words}", for_sender=f"the database: {words}")
        # A writer takes the lock at once: a read transaction that later writes cannot wait for it.
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    def on_error(context: ExceptionContext) -> None:
        # A connection opened while the file was read-only stays read-only: discard it.
        if "readonly" in str(context.original_exception):
            context.is_disconnect = True

    event.listen(engine, "handle_error", on_error)
    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return engine


def _tell_the_driver_what_it_can_bind() -> None:
    """Register identity adapters for bytes, bool and None.

    Without them, Python's driver searches for an adapter in vain, which takes 0.4 µs per value.
    """
    sqlite3.register_adapter(bytes, bytes)
    sqlite3.register_adapter(bool, int)
    sqlite3.register_adapter(NoneType, {}.get)  # type: ignore[arg-type]  # None is bound, too


def use_write_ahead_log(engine: Engine) -> None:
    """Let readers work while a writer writes; the setting is stored in the file.

    Not done on connecting: it changes the file, which may turn out not to be Draftgate's.
    """
    connection = engine.raw_connection()
    try:
        connection.cursor().execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as exc:
        raise StoreUnavailableError(f"{engine.url.database}: {exc}; try again") from exc
    finally:
        connection.close()


def size_bytes(url: URL) -> int:
    """Return the size of the file and its write-ahead log."""
    files = (Path(f"{url.database}{suffix}") for suffix in ("", "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def identity(url: URL) -> tuple[int, int] | None:
    """Return the file's device and inode; None if there is no file."""
    if url.drivername != "sqlite":
        return None
    try:
        found = Path(str(url.database)).stat()
    except FileNotFoundError:
        return None
    return (found.st_dev, found.st_ino)


def check(url: URL) -> None:
    """Raise `StoreError` unless the URL names an SQLite database or a file that can become one."""
    if url.database in (None, "", ":memory:"):
        raise StoreError(
            f"{url}: an in-memory database is lost between connections; "
            "name a file, such as sqlite:///draftgate.db"
        )
    path = Path(str(url.database))
    if path.is_dir():
        raise StoreError(f"{path}: is a folder; name a file in it, such as {path / 'draftgate.db'}")
    if not path.parent.is_dir():
        raise StoreError(f"{path}: the folder {path.parent} does not exist; create it first")
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except OSError as exc:
        raise StoreError(f"{path}: cannot be read ({exc.strerror}); check its owner") from exc
    if head and head != _MAGIC:
        raise StoreError(
            f"{path}: is no SQLite database (it begins with {head!r}); "
            "name another file, or move this one away"
        )
