"""The first schema in PostgreSQL: what SQLite's steps had come to by then, with keys of its own."""

from alembic import op

revision = "p0001"
down_revision = None

_TABLES = """
CREATE TABLE agent_facts (
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    said_ms BIGINT NOT NULL,
    written_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, id)
);
CREATE INDEX agent_facts_place ON agent_facts (tenant, agent, said_ms, sequence, id);
CREATE INDEX agent_facts_session ON agent_facts (tenant, agent, session, sequence);
CREATE TABLE assignments (
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    engine_id TEXT COLLATE "C" NOT NULL,
    options BYTEA NOT NULL,
    PRIMARY KEY (tenant, agent, session)
);
CREATE TABLE chunks (
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    place TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    compacted BOOLEAN NOT NULL,
    number BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, session, place, name, id)
);
CREATE TABLE costs (
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    cost_micro_usd BIGINT NOT NULL,
    saved_micro_usd BIGINT NOT NULL,
    unpriced BIGINT NOT NULL
);
CREATE UNIQUE INDEX costs_key ON costs (tenant, agent, md5(provider), md5(model));
CREATE TABLE debts (
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    queued_ms BIGINT NOT NULL,
    not_before_ms BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    lease_owner TEXT COLLATE "C" NOT NULL,
    lease_until_ms BIGINT NOT NULL,
    held BOOLEAN NOT NULL,
    cause TEXT COLLATE "C" NOT NULL,
    last_error TEXT COLLATE "C" NOT NULL,
    payload BYTEA NOT NULL,
    PRIMARY KEY (tenant, agent, session, kind)
);
CREATE INDEX debts_queue ON debts (queued_ms) WHERE held = false;
CREATE TABLE guards (
    tenant TEXT COLLATE "C" NOT NULL,
    state BYTEA NOT NULL,
    PRIMARY KEY (tenant)
);
CREATE TABLE lent_jobs (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    queued_ms BIGINT NOT NULL,
    expire_ms BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    attempts BIGINT NOT NULL,
    lease_id TEXT COLLATE "C" NOT NULL,
    lease_until_ms BIGINT NOT NULL,
    answered BOOLEAN NOT NULL,
    work BYTEA NOT NULL,
    result BYTEA NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX lent_jobs_digest ON lent_jobs (tenant, digest) WHERE digest != '';
CREATE INDEX lent_jobs_queue ON lent_jobs (tenant, queued_ms) WHERE answered = false;
CREATE INDEX lent_jobs_session ON lent_jobs (tenant, agent, session);
CREATE TABLE messages (
    home BIGINT NOT NULL,
    life UUID NOT NULL,
    sequence BIGINT NOT NULL,
    role BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    content_hash BYTEA NOT NULL,
    body BYTEA NOT NULL,
    created_revision BIGINT NOT NULL,
    retired_revision BIGINT NOT NULL,
    host_id TEXT COLLATE "C" NOT NULL,
    time_ms BIGINT,
    pinned BOOLEAN NOT NULL,
    step BIGINT,
    start BIGINT,
    late_of BIGINT,
    PRIMARY KEY (home, life, sequence)
);
CREATE UNIQUE INDEX messages_host_id ON messages (home, life, host_id)
    WHERE retired_revision = 0 AND host_id != '';
CREATE INDEX messages_late ON messages (home, life, late_of)
    WHERE retired_revision = 0 AND late_of IS NOT NULL;
CREATE INDEX messages_pinned ON messages (home, life, sequence)
    WHERE retired_revision = 0 AND pinned = true;
CREATE INDEX messages_retired ON messages (home, life, retired_revision) WHERE retired_revision > 0;
CREATE INDEX messages_start ON messages (home, life, start, sequence)
    WHERE retired_revision = 0 AND start IS NOT NULL;
CREATE TABLE passages (
    home BIGINT NOT NULL,
    life UUID NOT NULL,
    kind BIGINT NOT NULL,
    place BIGINT NOT NULL,
    part BIGINT NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    words TEXT COLLATE "C" NOT NULL,
    folded TEXT COLLATE "C",
    PRIMARY KEY (home, life, kind, place, part)
);
CREATE TABLE quotas (
    tenant TEXT COLLATE "C" NOT NULL,
    quota BYTEA NOT NULL,
    PRIMARY KEY (tenant)
);
CREATE TABLE requests (
    home BIGINT NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    reply BYTEA NOT NULL,
    created_revision BIGINT NOT NULL,
    PRIMARY KEY (home, tenant, agent, session, request_id)
);
CREATE INDEX requests_agent ON requests (tenant, agent) WHERE session = '';
CREATE TABLE search_cursors (
    home BIGINT NOT NULL,
    life UUID NOT NULL,
    sequence BIGINT NOT NULL,
    parts BIGINT NOT NULL,
    summaries BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    PRIMARY KEY (home, life)
);
CREATE TABLE session_keys (
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session_key TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, agent, session_key)
);
CREATE INDEX session_keys_session ON session_keys (tenant, agent, session);
CREATE TABLE sessions (
    home BIGINT NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    life UUID NOT NULL,
    incarnation TEXT COLLATE "C" NOT NULL,
    revision BIGINT NOT NULL,
    last_sequence BIGINT NOT NULL,
    session_key TEXT COLLATE "C" NOT NULL,
    message_count BIGINT NOT NULL,
    message_tokens BIGINT NOT NULL,
    summary_count BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    ended BOOLEAN NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    parent_session TEXT COLLATE "C" NOT NULL,
    parent_incarnation TEXT COLLATE "C" NOT NULL,
    parent_revision BIGINT NOT NULL,
    parent_sequence BIGINT NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    state BYTEA NOT NULL,
    commit_id BYTEA NOT NULL,
    ancestors BYTEA NOT NULL,
    PRIMARY KEY (home, tenant, agent, session)
) WITH (fillfactor = 70);
CREATE INDEX sessions_agent ON sessions (tenant, agent, created_ms, session);
CREATE INDEX sessions_idle ON sessions (updated_ms) WHERE ended = false;
CREATE INDEX sessions_key ON sessions (tenant, session_key) WHERE session_key != '';
CREATE INDEX sessions_newest ON sessions (tenant, updated_ms, agent, session);
CREATE INDEX sessions_parent ON sessions (tenant, agent, parent_session) WHERE parent_session != '';
CREATE TABLE spawns (
    tenant TEXT COLLATE "C" NOT NULL,
    token TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    parent_agent TEXT COLLATE "C" NOT NULL,
    parent_session TEXT COLLATE "C" NOT NULL,
    parent_revision BIGINT NOT NULL,
    parent_sequence BIGINT NOT NULL,
    fork BOOLEAN NOT NULL,
    depth BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    ttl_ms BIGINT NOT NULL,
    expire_ms BIGINT NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    note TEXT COLLATE "C" NOT NULL,
    inherited_tokens BIGINT NOT NULL,
    previous_session TEXT COLLATE "C" NOT NULL,
    objective TEXT COLLATE "C" NOT NULL,
    transcripts BYTEA NOT NULL,
    grant_tokens BIGINT NOT NULL,
    grant_depth BIGINT NOT NULL,
    grant_expire_ms BIGINT NOT NULL,
    used_tokens BIGINT NOT NULL,
    started BOOLEAN NOT NULL,
    ended_ms BIGINT NOT NULL,
    end_reason TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, token)
);
CREATE INDEX spawns_child ON spawns (tenant, agent, session, created_ms);
CREATE INDEX spawns_due ON spawns (expire_ms) WHERE ended_ms = 0;
CREATE INDEX spawns_over ON spawns (ended_ms) WHERE ended_ms > 0;
CREATE INDEX spawns_parent ON spawns (tenant, parent_agent, parent_session, ended_ms);
CREATE UNIQUE INDEX spawns_request ON spawns (tenant, parent_agent, parent_session, request_id)
    WHERE request_id != '';
CREATE TABLE spending (
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    slot BIGINT NOT NULL,
    last_ms BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, slot)
);
CREATE TABLE summaries (
    home BIGINT NOT NULL,
    life UUID NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    depth BIGINT NOT NULL,
    first_sequence BIGINT NOT NULL,
    last_sequence BIGINT NOT NULL,
    message_count BIGINT NOT NULL,
    source_tokens BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    created_revision BIGINT NOT NULL,
    first_step BIGINT NOT NULL,
    last_step BIGINT NOT NULL,
    span_start BIGINT NOT NULL,
    span_end BIGINT NOT NULL,
    before_view BIGINT NOT NULL,
    before_total BIGINT NOT NULL,
    before_fixed BIGINT NOT NULL,
    before_peak BIGINT NOT NULL,
    asked_before BOOLEAN NOT NULL,
    retired_revision BIGINT NOT NULL,
    children TEXT COLLATE "C" NOT NULL,
    start_ms BIGINT,
    end_ms BIGINT,
    summarizer TEXT COLLATE "C" NOT NULL,
    fallback BOOLEAN NOT NULL,
    generation BIGINT NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    wanted TEXT COLLATE "C" NOT NULL,
    remakes TEXT COLLATE "C" NOT NULL,
    content_hash BYTEA NOT NULL,
    PRIMARY KEY (home, life, id)
);
"""


def upgrade() -> None:
    op.execute(_TABLES)


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
