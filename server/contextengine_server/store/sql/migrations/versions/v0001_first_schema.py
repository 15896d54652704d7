"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _keys(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False, primary_key=True) for name in names]


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _numbers(*names: str, nullable: bool = False) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=nullable) for name in names]


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _bytes(*names: str) -> list[sa.Column[bytes]]:
    return [sa.Column(name, sa.LargeBinary(), nullable=False) for name in names]


def _partial(
    name: str, table: str, columns: list[str], where: str, *, unique: bool = False
) -> None:
    # `is true` and `= 1` say the same of a flag, each in its own dialect.
    op.create_index(
        name,
        table,
        columns,
        unique=unique,
        sqlite_where=sa.text(where.replace(" is true", " = 1").replace(" is false", " = 0")),
        postgresql_where=sa.text(where),
    )


def upgrade() -> None:
    op.create_table(
        "sessions",
        *_keys("tenant", "agent", "session"),
        *_texts("incarnation"),
        *_numbers("revision", "last_sequence"),
        *_texts("session_key"),
        *_numbers("message_count", "message_tokens", "summary_count", "generation"),
        _flag("ended"),
        *_numbers("created_ms", "updated_ms"),
        *_texts("parent_session"),
        *_numbers("parent_revision", "parent_sequence"),
        *_texts("model", "provider"),
        *_bytes("state"),
    )
    op.create_index("sessions_newest", "sessions", ["tenant", "updated_ms", "agent", "session"])
    _partial("sessions_idle", "sessions", ["updated_ms"], "ended is false")
    _partial("sessions_key", "sessions", ["tenant", "session_key"], "session_key != ''")
    _partial(
        "sessions_parent", "sessions", ["tenant", "agent", "parent_session"], "parent_session != ''"
    )

    op.create_table("session_keys", *_keys("tenant", "agent", "session_key"), *_texts("session"))
    op.create_index("session_keys_session", "session_keys", ["tenant", "agent", "session"])

    op.create_table(
        "messages",
        *_keys("tenant", "agent", "session"),
        sa.Column(
            "sequence", sa.BigInteger(), nullable=False, primary_key=True, autoincrement=False
        ),
        *_numbers("role", "tokens"),
        *_bytes("content_hash", "body"),
        *_numbers("created_revision", "retired_revision"),
        *_texts("host_id"),
        *_numbers("time_ms", nullable=True),
        _flag("pinned"),
        *_numbers("step", "start", "late_of", nullable=True),
    )
    session = ["tenant", "agent", "session"]
    live = "retired_revision = 0 AND "
    _partial(
        "messages_host_id",
        "messages",
        ["tenant", "agent", "host_id", "session"],
        live + "host_id != ''",
        unique=True,
    )
    _partial(
        "messages_start", "messages", [*session, "start", "sequence"], live + "start IS NOT NULL"
    )
    _partial("messages_pinned", "messages", [*session, "sequence"], live + "pinned is true")
    _partial("messages_late", "messages", [*session, "late_of"], live + "late_of IS NOT NULL")
    _partial("messages_retired", "messages", [*session, "retired_revision"], "retired_revision > 0")

    op.create_table(
        "summaries",
        *_keys("tenant", "agent", "session", "id"),
        *_numbers(
            "depth", "first_sequence", "last_sequence", "message_count", "source_tokens", "tokens"
        ),
        *_texts("text"),
        *_numbers("created_revision", "first_step", "last_step", "span_start", "span_end"),
        *_numbers("before_view", "before_total", "before_fixed", "before_peak", "retired_revision"),
        *_texts("children"),
        *_numbers("start_ms", "end_ms", nullable=True),
        *_texts("summarizer"),
        _flag("fallback"),
        *_numbers("generation"),
        *_texts("origin"),
    )
    op.create_table(
        "requests",
        *_keys("tenant", "agent", "session", "request_id"),
        *_bytes("digest", "reply"),
        *_numbers("created_revision"),
    )
    op.create_table(
        "debts",
        *_keys("tenant", "agent", "session", "kind"),
        *_numbers("queued_ms", "not_before_ms", "attempts"),
        *_texts("lease_owner"),
        *_numbers("lease_until_ms"),
        _flag("held"),
        *_texts("cause", "last_error"),
        *_bytes("payload"),
    )
    _partial("debts_queue", "debts", ["queued_ms"], "held is false")
    op.create_table(
        "assignments",
        *_keys("tenant", "agent", "session"),
        *_texts("engine_id"),
        *_bytes("options"),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
