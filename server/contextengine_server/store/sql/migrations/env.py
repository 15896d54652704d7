"""Alembic's entry: runs the migrations inside the transaction of the connection that
`migrations.upgrade` hands over."""

from alembic import context

from contextengine_server.store.sql.schema import metadata

# Batch mode: SQLite can change a column only by copying its table.
context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    render_as_batch=True,
)
context.run_migrations()
