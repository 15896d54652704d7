"""CallTool: a tool runs for the model."""

from __future__ import annotations

from time import perf_counter

import msgspec

from contextengine_server.commands.recall.expand import page_tokens
from contextengine_server.commands.recall.grant import GrantExpired, Reach, RecallGrants
from contextengine_server.compaction.companions import Companions
from contextengine_server.engines.contract import Engine, event_name
from contextengine_server.errors import BudgetSpent
from contextengine_server.memory.tool import MEMORY_SEARCH, run_memory_search
from contextengine_server.recall.archive import Archive
from contextengine_server.recall.expansion import MAX_DEPTH, MIN_TOKENS
from contextengine_server.recall.model_tools.answers import ToolAnswer, refusal
from contextengine_server.recall.tools import run
from contextengine_server.session.address import Ref, not_found
from contextengine_server.session.selection import Selection
from contextengine_server.session.state import SessionState
from contextengine_server.session.usage.tools import Definitions
from contextengine_server.store.protocols import Store
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.tracing import CURRENT

from .discover_tools import DiscoverTools
from .own_tools import call_own_tool


class ToolAnswered(msgspec.Struct, frozen=True):
    """What a tool answered, and what that costs."""

    answer: ToolAnswer
    tokens: int


class CallTool(msgspec.Struct, frozen=True):
    """Runs tools."""

    grants: RecallGrants
    selection: Selection
    store: Store
    archive: Archive
    events: Events
    discovery: DiscoverTools
    companions: Companions
    remembers: bool
    """There is a memory of what sessions say."""

    async def run(
        self,
        tenant: str,
        ref: Ref,
        name: str,
        arguments: bytes,
        spawn_token: str,
        definitions: Definitions = (),
        *,
        noted: bool = True,
    ) -> ToolAnswered:
        """What the model did wrong is answered as JSON, not as a failed call. `definitions`: of
        the tools that there are, for the one that finds them; `noted`: the session remembers what
        that finds. Raises SessionNotFound and what is wrong with the spawn token."""
        began = perf_counter()
        address = await self.grants.addresses.find(tenant, ref)
        if await self.discovery.serves(address, name):
            found = await self.discovery.run(address, arguments, definitions, noted=noted)
            return ToolAnswered(*found)
        engine = (await self.selection.engine_for(address.scope)).engine
        try:
            with CURRENT.get().span("tool"):
                reach = await self.grants.reach_of(address, spawn_token)
                done = await self._answer(reach, engine, name, arguments)
        except (BudgetSpent, GrantExpired) as error:
            # The model asked for more than its host granted it: it should hear of it and go on.
            over = isinstance(error, GrantExpired)
            answer = refusal("grant_expired" if over else "grant_spent", error.text, "")
            done = ToolAnswered(answer, await self.archive.count(answer.json.decode()))
        if not done.answer.is_error:
            head = await self.store.head(address.scope)
            if head is None:
                raise not_found(address.scope)
            self.events.emit(
                event_name(engine.id, "expanded"),
                *address.scope,
                revision=head.revision,
                counts={
                    "recovered": done.answer.recovered,
                    "duration_ms": round((perf_counter() - began) * 1000),
                },
                attributes={"tool": name},
            )
        return done

    async def _answer(
        self, reach: Reach, engine: Engine, name: str, arguments: bytes
    ) -> ToolAnswered:
        """What the tool answers, and its tokens. Raises BudgetSpent where a spawn token does not
        reach so far."""
        head, grant = reach.head, reach.grant
        most = await page_tokens(self.selection, head)
        tools: tuple[str, ...] = engine.tools.names
        # The rows of a parent, and its other sessions', are opened by a spawn token alone.
        alone = grant is not None or bool(SessionState.decode(head.state).depth)
        if tools and self.remembers and not alone:
            if name == MEMORY_SEARCH.name:
                found = await run_memory_search(self.store.memory, head.scope, arguments)
                return ToolAnswered(found, await self.archive.count(found.json.decode()))
            tools = (*tools, MEMORY_SEARCH.name)
        if name not in tools and grant is None:
            own = await call_own_tool(self.companions, head.scope, engine, name, arguments)
            if own is not None:
                return ToolAnswered(own, await self.archive.count(own.json.decode()))
        room, depth = (most, MAX_DEPTH) if grant is None else (min(most, grant.left), grant.depth)
        while True:
            answer = await run(self.archive, head, name, arguments, tools, room, depth, alone=alone)
            tokens = await self.archive.count(answer.json.decode())
            if grant is None or tokens <= grant.left or room <= MIN_TOKENS or not answer.fills:
                break
            # The JSON around the texts is paid for too.
            room = max(MIN_TOKENS, room * grant.left * 9 // (tokens * 10))
        if grant is not None and not answer.is_error:
            await self.grants.spend(grant, tokens)
        return ToolAnswered(answer, tokens)
