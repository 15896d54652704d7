"""What servers over one database tell each other, and what one of them alone may do. Both are gone
when the database crashes, and cost no log."""

from alembic import op

revision = "p0002"
down_revision = "p0001"

_TABLES = """
CREATE UNLOGGED TABLE feed (
    number BIGINT NOT NULL,
    previous BIGINT NOT NULL,
    notes BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (number)
);
CREATE UNLOGGED TABLE leases (
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    until_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, session, kind)
);
CREATE INDEX leases_over ON leases (until_ms);
"""


def upgrade() -> None:
    op.execute(_TABLES)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
