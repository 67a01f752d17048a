"""Run migrations on the connection that the store hands over."""

from alembic import context

from collector.store.tables import metadata


def run() -> None:
    """Run the migrations that were asked for, inside the caller's transaction."""
    connection = context.config.attributes.get("connection")
    if connection is None:
        raise SystemExit("migrations run through `draftgate db upgrade`, not through alembic alone")
    # SQLite's DDL is transactional once the driver does not commit by itself, and ours does not.
    context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()


run()
