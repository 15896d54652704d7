"""Search: messages and summaries, those that are no longer shown included."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from contextengine_server.commands.named_message import Place, recalled_sequence
from contextengine_server.context.scope import Scope
from contextengine_server.errors import FieldViolation, InvalidField, PermissionDenied
from contextengine_server.recall.agent_search import search_agent
from contextengine_server.recall.archive import Archive
from contextengine_server.recall.query import Page, Query
from contextengine_server.recall.search import indexed, search
from contextengine_server.session.address import Ref
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.telemetry.tracing import CURRENT

from .grant import RecallGrants


class Searched(msgspec.Struct, frozen=True):
    """What was found, and in which session it was asked for."""

    scope: Scope
    page: Page


class Range(msgspec.Struct, frozen=True):
    """Which messages are searched: from one to another. 0: no bound."""

    first: Place = 0
    last: Place = 0


EVERYWHERE = Range()


class Search(msgspec.Struct, frozen=True):
    """Searches sessions, and their parents where a grant opens these."""

    sessions: Sessions
    grants: RecallGrants
    archive: Archive

    async def run(
        self,
        tenant: str,
        ref: Ref,
        query: Query,
        at_least_revision: int,
        spawn_token: str,
        within: Range = EVERYWHERE,
    ) -> Searched:
        """A page of hits, once the session is at least at this revision. Raises SessionNotFound,
        RowNotFound, DeadlinePassed, BudgetSpent, what is wrong with the query, and PermissionDenied
        where a child asks for other sessions."""
        address = await self.grants.addresses.find(tenant, ref)
        await self.sessions.reached(address.scope, at_least_revision)
        reach = await self.grants.reach_of(address, spawn_token)
        grant, head = reach.grant, reach.head
        if head.archived:
            async with self.sessions.open(head.scope):
                pass  # it is back, and what search made of it is made anew
            await indexed(self.archive, head, head.revision)
        if at_least_revision:
            revision = head.revision if grant is not None else at_least_revision
            await indexed(self.archive, head, revision)
        if query.others:
            no_child(head, query.others)
            with CURRENT.get().span("search"):
                fresh = at_least_revision > 0
                page = await search_agent(self.archive, head, query, fresh=fresh)
            return Searched(address.scope, page)
        query = await self._bounded(query, within, head)
        if grant is not None:
            query = replace(query, retired=False)
        with CURRENT.get().span("search"):
            page = await search(self.archive, head, query)
        if grant is not None:
            tokens = [await self.archive.count(text) for hit in page.hits for text in hit.texts]
            await self.grants.spend(grant, sum(tokens))
        return Searched(address.scope, page)

    async def _bounded(self, query: Query, within: Range, head: SessionHead) -> Query:
        """The query between two messages. Raises RowNotFound, InvalidField."""
        if within == EVERYWHERE:
            return query
        first = await recalled_sequence(within.first, self.archive, head)
        last = await recalled_sequence(within.last, self.archive, head)
        if 0 < last < first:
            field, other = (
                f"{name}_sequence" if isinstance(place, int) else place.field
                for name, place in (("last", within.last), ("first", within.first))
            )
            raise InvalidField(field, f"is message {last}, before {other}, which is {first}")
        return replace(query, first=first, last=last)


def no_child(head: SessionHead, field: str) -> None:
    """Raises PermissionDenied for a child, which its parent's sessions are opened to by a spawn
    token alone, and as far as that goes: also once it has ended."""
    if SessionState.decode(head.state).depth:
        text = "is not open to a session that was spawned: recall the parent with the spawn token"
        raise PermissionDenied(f"{field}: {text}", violations=[FieldViolation(field, text)])
