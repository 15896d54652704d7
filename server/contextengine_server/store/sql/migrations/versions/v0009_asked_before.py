"""Whether the newest user's message stood before what a summary covers when it was committed. Of
those that are stored it is not known, and so what stands before them may have been evicted."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column(
        "summaries",
        sa.Column("asked_before", sa.Boolean(), nullable=False, server_default=sa.false()),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
