"""The cursors of the search index."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "search_cursors",
        *(
            sa.Column(name, sa.Text(), nullable=False, primary_key=True)
            for name in ("tenant", "agent", "session", "incarnation")
        ),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("number", "sequence", "parts", "summaries", "revision")
        ),
        sa.Column("doomed", sa.Boolean(), nullable=False),
    )
    op.create_index("search_cursors_number", "search_cursors", ["number"], unique=True)
    op.create_index(
        "search_cursors_doomed",
        "search_cursors",
        ["number"],
        sqlite_where=sa.text("doomed = 1"),
        postgresql_where=sa.text("doomed is true"),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
