"""In whose role a summary is told."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("summaries", sa.Column("role", sa.Text(), nullable=False, server_default="user"))


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
