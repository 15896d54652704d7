"""What plugins keep beside the messages of sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "chunks",
        *(
            sa.Column(name, sa.Text(), nullable=False, primary_key=True)
            for name in ("tenant", "agent", "session", "place", "name", "id")
        ),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("compacted", sa.Boolean(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
