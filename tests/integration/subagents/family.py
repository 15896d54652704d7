"""A parent, its children, and short ways to speak of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import user
from tests.integration.harness import House, problem, ref, texts

FORK, ISOLATED = t.CONTEXT_MODE_FORK, t.CONTEXT_MODE_ISOLATED
COMPLETED = t.SUBAGENT_END_REASON_COMPLETED
DELETED = t.SUBAGENT_END_REASON_DELETED
RELEASED = t.SUBAGENT_END_REASON_RELEASED
SWEPT = t.SUBAGENT_END_REASON_SWEPT


class Family:
    """Sessions whose names begin with the test's, so that many families live in one house."""

    def __init__(self, house: House, name: str) -> None:
        self.house, self.name = house, name
        self.parent = self.session("parent")
        self.child = self.session("child")

    def session(self, name: str, **more: str) -> t.SessionRef:
        """One of the family."""
        return ref(f"{self.name}-{name}", **more)

    def key(self, name: str) -> str:
        """A session key of the family."""
        return f"{self.name}-{name}"

    async def say(self, session: t.SessionRef, *said: str | t.Message) -> int:
        """Stores messages, users' where only a text is given; answers the last one's sequence."""
        messages = [user(one) if isinstance(one, str) else one for one in said]
        return (await self.house.client.ingest_batch(session, messages)).stored[-1].sequence

    async def prepare(
        self,
        child: t.SessionRef | None = None,
        parent: t.SessionRef | None = None,
        ttl: float | None = None,
        **more: Any,
    ) -> t.PrepareSubagentSpawnResponse:
        """Prepares the child, or another; of the parent, or another. `ttl` in seconds."""
        if ttl is not None:
            more["ttl"] = timedelta(seconds=ttl)
        return await self.house.client.prepare_subagent_spawn(
            parent or self.parent, child or self.child, **more
        )

    async def fork(
        self, *said: str | t.Message, child: t.SessionRef | None = None, **more: Any
    ) -> t.PrepareSubagentSpawnResponse:
        """A parent that said this, and a fork of it."""
        if said:
            await self.say(self.parent, *said)
        return await self.prepare(child, context_mode=FORK, **more)

    async def roll_back(self, token: str, parent: t.SessionRef | None = None) -> bool:
        """Takes a preparation back."""
        reply = await self.house.client.rollback_subagent_spawn(token, parent or self.parent)
        return reply.rolled_back

    async def end(self, child: t.SessionRef | None = None, **more: Any) -> bool:
        """Ends the child, or another."""
        return (await self.house.client.end_subagent(child or self.child, **more)).ended

    async def shown(self, session: t.SessionRef | None = None) -> list[str]:
        """What Assemble shows of the child, or of another: the same from memory and from the
        store."""
        asked = session or self.child
        before = texts((await self.house.client.assemble(asked)).items)
        self.house.forget()
        assert texts((await self.house.client.assemble(asked)).items) == before
        return before

    async def there(self, session: t.SessionRef | None = None) -> bool:
        """Whether the child, or another, is there."""
        return await refused(self.house.client.sessions.get(session or self.child)) is None

    async def sessions(self) -> list[str]:
        """The family's sessions that are there, by name."""
        listed = (await self.house.client.sessions.list(page_size=1_000)).sessions
        names = [one.session_id for one in listed if one.session_id.startswith(f"{self.name}-")]
        return sorted(name.removeprefix(f"{self.name}-") for name in names)


async def refused(call: Any) -> tuple[str, str, Sequence[str]] | None:
    """What a call was refused with: status, reason and fields; None where it was not."""
    try:
        await call
    except ContextEngineError as error:
        return problem(error)
    return None
