"""What each part of what stood before the newest history had needed when a summary was committed.
Of those that are stored it is not known: what they stand among is judged from then on."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column(
        "summaries", sa.Column("before_needs", sa.Text(), nullable=False, server_default="")
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
