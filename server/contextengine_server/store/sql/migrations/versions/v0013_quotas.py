"""What tenants may hold at once, as the server's owner sets it while the server runs."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "quotas",
        sa.Column("tenant", sa.Text(), nullable=False, primary_key=True),
        sa.Column("quota", sa.LargeBinary(), nullable=False),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
