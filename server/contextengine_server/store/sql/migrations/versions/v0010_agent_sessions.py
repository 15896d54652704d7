"""The sessions of an agent in the order in which they were made, for a search of all of them."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_index("sessions_agent", "sessions", ["tenant", "agent", "created_ms", "session"])


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
