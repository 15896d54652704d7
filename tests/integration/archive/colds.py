"""What the tests of the archive say and do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import grpc
import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.errors import from_rpc_error
from contextengine.messages import assistant, user
from contextengine_server.context.scope import Scope
from contextengine_server.wiring.archive import archive_sessions_of
from tests.integration.harness import Clock, House

DAY_S = 86_400


def ref(session: str = "s1", agent: str = "main") -> t.SessionRef:
    """Names a session."""
    return t.SessionRef(agent_id=agent, session_id=session)


def scope(session: str = "s1", agent: str = "main") -> Scope:
    """The same as the store has it."""
    return Scope("default", agent, session)


async def talk(house: House, session: str = "s1", *, turns: int = 6, word: str = "spoon") -> None:
    """A conversation."""
    for turn in range(turns):
        await house.client.ingest(
            ref(session), user(f"question {turn} about the {word}", id=f"{session}-u{turn}")
        )
        await house.client.ingest(
            ref(session), assistant(f"answer {turn}: the {word}", id=f"{session}-a{turn}")
        )
    # As it is long before a session is cold: whoever indexes one that goes just then reads it back.
    while (progress := await house.app.store.index.progress(scope(session))) and not progress.done:
        await asyncio.sleep(0.01)


async def archive(house: House, clock: Clock, *, dry_run: bool = False) -> list[str]:
    """A day later, what the rules let go; the sessions that went."""
    clock.advance(DAY_S + 1)
    work = archive_sessions_of(
        house.app.settings.archive, house.app.store, house.app.archive, clock
    )
    return [gone.head.scope.session async for gone in work.run(dry_run=dry_run)]


async def asked(house: House, session: str = "s1", budget: int = 2_000) -> bytes:
    """What an Assemble answers, byte for byte; on the wire, without a client's help."""
    reply = await house.stub.Assemble(
        t.AssembleRequest(session=ref(session), budget=t.Budget(message_tokens=budget))
    )
    return reply.SerializeToString(deterministic=True)


async def is_archived(house: House, session: str = "s1") -> bool:
    """Whether the session is in the archive now."""
    head = await house.app.store.head(scope(session))
    assert head is not None
    return bool(head.archived)


async def failed(call: Awaitable[object]) -> ContextEngineError:
    """Why a call without a client's help failed."""
    with pytest.raises(grpc.RpcError) as found:
        await call
    return from_rpc_error(found.value)
