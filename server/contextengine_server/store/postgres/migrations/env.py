"""Alembic's entry: writes the migrations as SQL, for the transaction that `database.prepare`
begins."""

from alembic import context

context.configure(
    dialect_name="postgresql",
    output_buffer=context.config.output_buffer,
    transactional_ddl=False,
)
context.run_migrations()
