"""Statements about messages and summaries."""

from __future__ import annotations

from .clauses import insert, select
from .columns import MESSAGE, SUMMARY
from .dialect import Dialect

_LIVE = "retired_revision = 0"
_AS_OF = f"created_revision <= :as_of AND ({_LIVE} OR retired_revision > :as_of)"
_BEGINS = f"{_LIVE} AND start IS NOT NULL"


class MessageStatements:
    """A session's messages, one by one, in ranges, and as atoms."""

    def __init__(self, dialect: Dialect) -> None:
        messages, own = select("messages", MESSAGE), dialect.own

        def through(index: str) -> str:
            """Messages by an index. Left alone, SQLite takes the primary key for as good as any and
            reads the whole session."""
            return f"{messages}{dialect.through.format(index)} WHERE {own}"

        within = f"{messages} WHERE {own} AND sequence BETWEEN :first AND :last"
        self.live = f"{within} AND {_LIVE} ORDER BY sequence"
        self.as_of = f"{within} AND {_AS_OF} ORDER BY sequence"
        self.all = f"{within} ORDER BY sequence"
        self.all_as_of = f"{within} AND created_revision <= :as_of ORDER BY sequence"
        among = f"{messages} WHERE {own} AND sequence{dialect.among.format('sequences')}"
        self.live_among = f"{among} AND {_LIVE} ORDER BY sequence"
        self.as_of_among = f"{among} AND {_AS_OF} ORDER BY sequence"
        self.all_among = f"{among} ORDER BY sequence"
        self.all_as_of_among = f"{among} AND created_revision <= :as_of ORDER BY sequence"
        self.at = f"{messages} WHERE {own} AND sequence = :sequence AND {_LIVE}"
        self.by_host_id = (
            f"{through('messages_host_id')} AND {_LIVE} AND host_id != ''"
            f" AND host_id{dialect.among.format('host_ids')} ORDER BY sequence"
        )
        self.pinned = (
            f"{through('messages_pinned')} AND {_LIVE} AND {dialect.is_true.format('pinned')}"
            " ORDER BY sequence"
        )

        self.insert = insert("messages", (*dialect.own_key, *MESSAGE))
        self.retire_after = (
            f"UPDATE messages SET retired_revision = :revision WHERE {own}"
            f" AND sequence > :after AND {_LIVE}"
        )
        self.mend = (
            f"UPDATE messages SET body = :body WHERE {own} AND sequence = :sequence"
            " AND content_hash = :content_hash AND body != :body"
        )
        self.facts = (
            f"UPDATE messages SET step = :step, start = :start, late_of = :late_of WHERE {own}"
            " AND sequence = :sequence"
        )
        self.shift = (
            f"UPDATE messages SET start = start + :delta WHERE {own} AND sequence > :after"
            f" AND {_BEGINS}"
        )

        self.atom_from = (
            f"{through('messages_start')} AND {_BEGINS} AND start >= :start"
            " ORDER BY start, sequence LIMIT 1"
        )
        self.atom_first = (
            f"SELECT sequence FROM messages WHERE {own} AND {_BEGINS}"
            " AND sequence <= :sequence AND step = :step ORDER BY sequence DESC LIMIT 1"
        )
        """Where the atom of a step begins, looking back from one of its messages."""
        self.atom_next = (
            f"SELECT sequence FROM messages WHERE {own} AND {_BEGINS}"
            " AND sequence > :first AND step > :step ORDER BY sequence LIMIT 1"
        )
        """Where a later atom begins. Not just the next to begin: a note may come between a call and
        its result, a step before them."""
        self.atom_rows = (
            f"{within} AND {_LIVE} AND step = :step AND late_of IS NULL ORDER BY sequence"
        )
        self.atom_late = (
            f"{through('messages_late')} AND {_LIVE} AND late_of = :first AND late_of IS NOT NULL"
            " ORDER BY sequence"
        )
        self.late_between = (
            f"{through('messages_late')} AND {_LIVE} AND late_of BETWEEN :first AND :last"
            " AND late_of IS NOT NULL ORDER BY sequence"
        )

        self.older = (
            f"SELECT sequence FROM messages WHERE {own} AND created_revision <= :since"
            " ORDER BY sequence DESC LIMIT 1"
        )
        """The last row that is not newer than a revision. A session only appends, so what is newer
        lies behind it."""
        self.retired_since = (
            f"{through('messages_retired')} AND retired_revision > 0 AND retired_revision > :since"
            " AND sequence <= :last ORDER BY sequence"
        )


class SummaryStatements:
    """A session's summaries."""

    def __init__(self, dialect: Dialect) -> None:
        own = dialect.own
        summaries = f"{select('summaries', SUMMARY)} WHERE {own}"
        order = "ORDER BY first_sequence, depth, created_revision, id"
        self.live = f"{summaries} AND {_LIVE} {order}"
        self.as_of = f"{summaries} AND {_AS_OF} {order}"
        self.all = f"{summaries} {order}"
        self.all_as_of = f"{summaries} AND created_revision <= :as_of {order}"
        self.since = (
            f"{summaries} AND (created_revision > :since OR retired_revision > :since) {order}"
        )
        self.insert = insert("summaries", (*dialect.own_key, *SUMMARY))
        self.mend = (
            f"UPDATE summaries SET text = :text, children = :children WHERE {own} AND id = :id"
            " AND content_hash = :content_hash AND (text != :text OR children != :children)"
        )
        self.retire = (
            f"UPDATE summaries SET retired_revision = :revision WHERE {own} AND id = :id"
            f" AND {_LIVE}"
        )
        self.shift = (
            "UPDATE summaries SET span_start = span_start + :delta, span_end = span_end + :delta"
            f" WHERE {own} AND first_sequence > :after AND {_LIVE}"
        )
