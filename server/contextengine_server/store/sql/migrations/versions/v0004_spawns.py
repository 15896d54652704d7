"""Children: who spawned them, what their tokens open, and until when."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def _keys(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False, primary_key=True) for name in names]


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _bytes(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=False)


def _partial(name: str, *columns: str, where: str, unique: bool = False) -> None:
    condition = sa.text(where)
    op.create_index(
        name,
        "spawns",
        list(columns),
        unique=unique,
        sqlite_where=condition,
        postgresql_where=condition,
    )


def upgrade() -> None:
    op.create_table(
        "spawns",
        *_keys("tenant", "token"),
        *_texts("agent", "session", "parent_agent", "parent_session"),
        *_numbers("parent_revision", "parent_sequence"),
        _flag("fork"),
        *_numbers("depth", "created_ms", "ttl_ms", "expire_ms"),
        *_texts("request_id"),
        _bytes("digest"),
        *_texts("note"),
        *_numbers("inherited_tokens"),
        *_texts("previous_session", "objective"),
        _bytes("transcripts"),
        *_numbers("grant_tokens", "grant_depth", "grant_expire_ms", "used_tokens"),
        _flag("started"),
        *_numbers("ended_ms"),
        *_texts("end_reason"),
    )
    op.create_index("spawns_child", "spawns", ["tenant", "agent", "session", "created_ms"])
    op.create_index(
        "spawns_parent", "spawns", ["tenant", "parent_agent", "parent_session", "ended_ms"]
    )
    _partial(
        "spawns_request",
        "tenant",
        "parent_agent",
        "parent_session",
        "request_id",
        where="request_id != ''",
        unique=True,
    )
    _partial("spawns_due", "expire_ms", where="ended_ms = 0")
    _partial("spawns_over", "ended_ms", where="ended_ms > 0")


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
