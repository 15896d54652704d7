"""Makes store_v1.db: a database of the first released schema with rows in every table.

    python tests/data/make_store_v1.py

It is committed, and a test opens a copy with the present program. Never make it again once a second
schema is released: then it is the only witness of the first.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import sqlalchemy as sa

from contextengine_server.store.sql import migrations
from contextengine_server.store.sqlite.database import APPLICATION_ID, connect

PATH = Path(__file__).with_name("store_v1.db")
REVISION = "0001"
SESSION = {"tenant": "acme", "agent": "main", "session": "s1"}
ROWS: dict[str, list[dict[str, object]]] = {
    "sessions": [
        SESSION
        | {
            "incarnation": "life-1", "revision": 3, "last_sequence": 4, "session_key": "key",
            "message_count": 3,
            "message_tokens": 35, "summary_count": 1, "generation": 1, "ended": 1,
            "created_ms": 1_700_000_000_000,
            "updated_ms": 1_700_000_000_500, "parent_session": "", "parent_revision": 0,
            "parent_sequence": 0,
            "model": "model-1", "provider": "provider-1", "state": b'{"note": "\xc3\xa9"}',
        },
        SESSION
        | {
            "session": "fork", "incarnation": "life-2", "revision": 1, "last_sequence": 4,
            "session_key": "",
            "message_count": 0, "message_tokens": 0, "summary_count": 0, "generation": 0,
            "ended": 0,
            "created_ms": 1_700_000_000_600, "updated_ms": 1_700_000_000_600,
            "parent_session": "s1",
            "parent_revision": 3, "parent_sequence": 4, "model": "", "provider": "", "state": b"{}",
        },
    ],
    "session_keys": [{"tenant": "acme", "agent": "main", "session_key": "key", "session": "s1"}],
    "messages": [
        SESSION
        | {
            "sequence": sequence, "role": sequence % 4 + 1, "tokens": 10 + sequence,
            "content_hash": bytes([sequence]) * 32,
            "body": b"\x00\xffbody %d" % sequence, "created_revision": 1 if sequence < 4 else 3,
            "retired_revision": retired,
            "host_id": host_id, "time_ms": time, "pinned": pinned, "step": step, "start": start,
            "late_of": late_of,
        }
        for sequence, retired, host_id, time, pinned, step, start, late_of in [
            (1, 0, "h-1", 1_700_000_000_001, 1, 0, 0, None),
            (2, 0, "h-2 é", None, 0, 1, 11, None),
            (3, 2, "", None, 0, 2, 23, None),
            (4, 0, "", None, 0, 1, None, 2),
        ]
    ],
    "summaries": [
        SESSION
        | {
            "id": "sum-1", "depth": 1, "first_sequence": 1, "last_sequence": 2, "message_count": 2,
            "source_tokens": 23,
            "tokens": 6, "text": "what was said é", "created_revision": 2, "first_step": 0,
            "last_step": 1, "span_start": 0,
            "span_end": 23, "before_view": 40, "before_total": 50, "before_fixed": 7,
            "before_peak": 11, "retired_revision": 0, "children": '["leaf-1", "leaf-2"]',
            "start_ms": 1_700_000_000_001,
            "end_ms": None, "summarizer": "extractive", "fallback": 1, "generation": 1,
            "origin": "host",
        }
    ],
    "requests": [
        SESSION | {"request_id": "r-1", "digest": b"\x00\x01", "reply": b"\xfe\xff",
        "created_revision": 3}
    ],
    "debts": [
        SESSION
        | {
            "kind": "compact", "queued_ms": 1_700_000_000_400, "not_before_ms": 1_700_000_000_450,
            "attempts": 2,
            "lease_owner": "worker", "lease_until_ms": 1_700_000_000_900, "held": 0,
            "cause": "00-trace",
            "last_error": "no model", "payload": b'{"upto":2}',
        }
    ],
    "assignments": [SESSION | {"session": "", "engine_id": "dag", "options": b'{"tail":8}'}],
}  # fmt: skip


def make(path: Path) -> None:
    engine = sa.create_engine("sqlite://", creator=lambda: connect(path), poolclass=sa.NullPool)
    with engine.begin() as connection:
        migrations.upgrade(connection, REVISION)
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    db = sqlite3.connect(path)
    for table, rows in ROWS.items():
        for row in rows:
            db.execute(
                f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' for _ in row)})",
                list(row.values()),
            )
    db.commit()
    db.execute("PRAGMA journal_mode = WAL")
    db.close()


if __name__ == "__main__":
    PATH.unlink(missing_ok=True)
    make(PATH)
