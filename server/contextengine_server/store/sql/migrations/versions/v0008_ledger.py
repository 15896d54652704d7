"""What agents spent: tokens of the last day by their time, and costs by model for good."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def _keys(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False, primary_key=True) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def upgrade() -> None:
    op.create_table(
        "spending",
        *_keys("tenant", "agent"),
        sa.Column("slot", sa.BigInteger(), nullable=False, primary_key=True, autoincrement=False),
        *_numbers("last_ms", "tokens"),
    )
    op.create_table(
        "costs",
        *_keys("tenant", "agent", "provider", "model"),
        *_numbers("calls", "input_tokens", "output_tokens"),
        *_numbers("cache_read_tokens", "cache_write_tokens"),
        *_numbers("cost_micro_usd", "saved_micro_usd", "unpriced"),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
