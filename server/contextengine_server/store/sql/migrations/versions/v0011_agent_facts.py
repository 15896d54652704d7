"""What agents remember of their sessions. Facts of what is stored already are found when a session
is next ended, reset or summarized."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "agent_facts",
        *(
            sa.Column(name, sa.Text(), nullable=False, primary_key=True)
            for name in ("tenant", "agent", "id")
        ),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("session", "kind", "subject", "value", "text")
        ),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("sequence", "said_ms", "written_ms")
        ),
    )
    of_agent = ["tenant", "agent"]
    op.create_index("agent_facts_session", "agent_facts", [*of_agent, "session", "sequence"])
    op.create_index("agent_facts_place", "agent_facts", [*of_agent, "said_ms", "sequence", "id"])


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
