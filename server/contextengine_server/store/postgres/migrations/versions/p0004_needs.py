"""What each part of what stood before the newest history had needed when a summary was committed.
Of those that are stored it is not known: what they stand among is judged from then on."""

from alembic import op

revision = "p0004"
down_revision = "p0003"


def upgrade() -> None:
    op.execute(
        "ALTER TABLE summaries ADD COLUMN before_needs TEXT COLLATE \"C\" NOT NULL DEFAULT ''"
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
