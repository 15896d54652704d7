"""The archive: which object holds a session's rows while they are not here."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("archived", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "archives",
        *(
            sa.Column(name, sa.Text(), nullable=False, primary_key=True)
            for name in ("tenant", "agent", "session", "name")
        ),
        sa.Column("incarnation", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("size", "messages", "summaries")
        ),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("created_ms", "stage", "freed_ms")
        ),
    )
    op.create_index("archives_stage", "archives", ["stage", "created_ms"])


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
