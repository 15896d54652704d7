"""What summarizers remember: the guards of tenants, and the work that harnesses do with their
models."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, primary_key=True)


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def upgrade() -> None:
    op.create_table("guards", _key("tenant"), sa.Column("state", sa.LargeBinary(), nullable=False))
    op.create_table(
        "lent_jobs",
        _key("tenant"),
        _key("id"),
        *_texts("digest", "agent", "session"),
        *_numbers("queued_ms", "expire_ms", "input_tokens"),
        *_texts("model"),
        *_numbers("attempts"),
        *_texts("lease_id"),
        *_numbers("lease_until_ms"),
        sa.Column("answered", sa.Boolean(), nullable=False),
        sa.Column("work", sa.LargeBinary(), nullable=False),
        sa.Column("result", sa.LargeBinary(), nullable=False),
    )
    op.create_index("lent_jobs_session", "lent_jobs", ["tenant", "agent", "session"])
    op.create_index(
        "lent_jobs_digest",
        "lent_jobs",
        ["tenant", "digest"],
        unique=True,
        sqlite_where=sa.text("digest != ''"),
        postgresql_where=sa.text("digest != ''"),
    )
    op.create_index(
        "lent_jobs_queue",
        "lent_jobs",
        ["tenant", "queued_ms"],
        sqlite_where=sa.text("answered = 0"),
        postgresql_where=sa.text("answered is false"),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
