"""Who was to write a summary, and which one it stands in the place of."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for name in ("wanted", "remakes"):
        op.add_column("summaries", sa.Column(name, sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
