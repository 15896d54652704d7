"""Rows and commits as the tests write them."""

from __future__ import annotations

import hashlib
from secrets import token_bytes
from typing import Any

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import (
    COMMIT_ID,
    LINE,
    Commit,
    MessageRow,
    SessionHead,
    SummaryRow,
)

SCOPE = Scope("acme", "main", "s1")


def message(sequence: int, revision: int = 1, **more: Any) -> MessageRow:
    """A message whose bytes say which it is; an atom of its own unless told otherwise."""
    body = more.pop("body", b"\x00\xffbody of %d" % sequence)
    facts = {"tokens": 10, "step": sequence - 1, "start": (sequence - 1) * 10}
    return MessageRow(
        sequence=sequence,
        role=more.pop("role", 1),
        content_hash=hashlib.sha256(body).digest(),
        body=body,
        created_revision=revision,
        **{**facts, **more},
    )


def summary(id: str, first: int, last: int, revision: int = 1, **more: Any) -> SummaryRow:
    return SummaryRow(
        id=id,
        depth=more.pop("depth", 0),
        first_sequence=first,
        last_sequence=last,
        message_count=last - first + 1,
        source_tokens=10 * (last - first + 1),
        tokens=5,
        text=f"what {first} to {last} said",
        created_revision=revision,
        span_start=(first - 1) * 10,
        span_end=last * 10,
        first_step=first - 1,
        last_step=last - 1,
        **more,
    )


def debt(scope: Scope, kind: str = "compact", queued_ms: int = 1000, **more: Any) -> Debt:
    return Debt(scope, kind, queued_ms, **more)


class Pen:
    """Writes to one session, revision by revision."""

    def __init__(
        self, store: Store, scope: Scope = SCOPE, incarnation: str = "first life", **head: Any
    ) -> None:
        self.store = store
        self.scope = scope
        self.head = SessionHead(scope, incarnation, revision=0, last_sequence=0, **head)

    def next(self, *, count: int = 0, head: dict[str, Any] | None = None, **change: Any) -> Commit:
        """The next commit, not yet written, with this many new messages."""
        revision, last = self.head.revision + 1, self.head.last_sequence
        new = change.pop("messages", [message(last + 1 + n, revision) for n in range(count)])
        after = replace(
            self.head,
            revision=revision,
            last_sequence=max([last, *(row.sequence for row in new)]),
            commit_id=token_bytes(COMMIT_ID),
            ancestors=(self.head.ancestors + self.head.commit_id)[-LINE:],
            **{"updated_ms": self.head.updated_ms + 1, **(head or {})},
        )
        return Commit(
            after, change.pop("expected_revision", self.head.revision), messages=new, **change
        )

    async def write(self, **change: Any) -> Commit:
        """Writes the next commit."""
        commit = self.next(**change)
        await self.store.commit(commit)
        self.head = commit.head
        return commit

    async def sequences(self, **read: Any) -> list[int]:
        return [row.sequence for row in await self.store.messages(self.scope, **read)]
