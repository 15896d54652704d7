"""The names of commits. What earlier versions committed has none."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    # To SQLite an empty text is no empty bytes: a commit would not find what it expects.
    empty = sa.text("x''") if op.get_context().dialect.name == "sqlite" else ""
    for name in ("commit_id", "ancestors"):
        op.add_column(
            "sessions", sa.Column(name, sa.LargeBinary(), nullable=False, server_default=empty)
        )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
