"""Which life of its parent a session stands on."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column(
        "sessions",
        sa.Column("parent_incarnation", sa.Text(), nullable=False, server_default=""),
    )
    # Where the parent is gone, it must not be taken for whoever has its name next: no session has
    # an incarnation of this name.
    op.execute(
        "UPDATE sessions SET parent_incarnation = COALESCE((SELECT parent.incarnation"
        " FROM sessions AS parent WHERE parent.tenant = sessions.tenant"
        " AND parent.agent = sessions.agent AND parent.session = sessions.parent_session), 'gone')"
        " WHERE parent_session != ''"
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
