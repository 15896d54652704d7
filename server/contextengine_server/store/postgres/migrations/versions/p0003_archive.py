"""The archive: which object holds a session's rows while they are not here."""

from alembic import op

revision = "p0003"
down_revision = "p0002"

_TABLES = """
ALTER TABLE sessions ADD COLUMN archived TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE TABLE archives (
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    incarnation TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    size BIGINT NOT NULL,
    messages BIGINT NOT NULL,
    summaries BIGINT NOT NULL,
    pinned BOOLEAN NOT NULL,
    created_ms BIGINT NOT NULL,
    stage BIGINT NOT NULL,
    freed_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, session, name)
);
CREATE INDEX archives_stage ON archives (stage, created_ms);
"""


def upgrade() -> None:
    op.execute(_TABLES)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
