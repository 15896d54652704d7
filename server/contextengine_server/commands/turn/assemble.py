"""Assemble: the context for one model call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import msgspec

from contextengine_server.compaction.queue import CompactionQueue
from contextengine_server.context.prefix import JOINED_AT_ONCE
from contextengine_server.memory.prompt import NO_MEMORY
from contextengine_server.session.address import Addresses
from contextengine_server.session.assembly.assembler import Assembler
from contextengine_server.session.assembly.assembly import FITS, AssembleCall, Assembly
from contextengine_server.session.assembly.treatment import Treatment
from contextengine_server.slices import aside, in_slices
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters
from contextengine_server.telemetry.tracing import Trace

from .assembly_events import announce
from .reply_cache import Question, ReplyCache


class ReplyFields(msgspec.Struct, frozen=True):
    """The beginning of a reply. The items that the caller does not hold follow."""

    fields: bytes
    known: int
    """How many items of the list the caller holds."""
    known_tokens: int


class ReplyWriter(Protocol):
    """Writes an assembly in the form that the caller reads."""

    @property
    def projects(self) -> bool:
        """True where a projection is asked for besides."""

    def write(self, assembly: Assembly) -> ReplyFields:
        """The reply but for its items. Waits for nothing: a commit of the session would change the
        view under the reply."""

    async def explained(self, assembly: Assembly) -> list[bytes]:
        """A decision about every message: what follows the reply, in parts. The view is as it was
        assembled when this begins, and may be gone on with meanwhile."""

    async def beside(self, reply: bytes, assembly: Assembly) -> bytes:
        """The reply with its projection."""


class Assemble(msgspec.Struct, frozen=True):
    """Answers the context for model calls."""

    addresses: Addresses
    assembler: Assembler
    replies: ReplyCache
    queue: CompactionQueue
    events: Events
    meters: Meters

    async def again(self, question: Question, trace: Trace) -> bytes | None:
        """The reply, where the same was asked before and nothing has changed since."""
        known = await self.replies.again(question)
        if known is None:
            return None
        trace.set("contextengine.reply.repeated", True)
        self.meters.assembled[known.outcome].value += 1
        self.meters.tokens_sent.value += known.tokens
        self.meters.tokens_reused.value += known.reused
        return known.reply

    async def run(self, call: AssembleCall, question: Question, writer: ReplyWriter) -> bytes:
        """Assembles, writes the reply, tells those who watch, and queues a compaction where the
        engine wants one."""
        ref = call.ref
        scoped = ref.agent and call.treatment is not Treatment.IGNORED
        address = await self.addresses.find(call.tenant, ref) if scoped else None
        assembly = await self.assembler.assemble(call, address)
        written, joined = writer.write(assembly), assembly.joined
        if assembly.outcome != FITS or assembly.joined.begun:
            announce(self.events, self.meters, assembly)
        view = assembly.view
        stands_on = view.incarnation, view.revision, view.commit_id
        why: Sequence[bytes] = ()
        if call.whole:  # before anybody else has a turn, who may go on with the view
            why = await writer.explained(assembly)
        # One join: a reply of 100 KB is copied once, and what it is copied to need not be paged in
        # twice. A long one is copied in a thread, which needs no interpreter for it.
        known = written.known
        if joined.total - known + len(why) > JOINED_AT_ONCE:
            pieces = [written.fields, *await in_slices(joined.pieces_after(known)), *why]
            why = ()
            reply = await aside(partial(_joined, pieces))
        else:
            reply = b"".join((written.fields, *joined.after(known), *why))
        if writer.projects:
            reply = await writer.beside(reply, assembly)
        owed = True
        if assembly.due and view.scope.complete and not call.treatment:
            try:
                await self.queue.add(
                    view.scope,
                    assembly.available,
                    call.trace.traceparent(),
                    uncounted=assembly.uncounted,
                )
            except StoreUnavailable:
                owed = False  # a read does not fail for it: the next one records it
        # A session key may name another session the next time, without a change of this one; a
        # guard may refuse it.
        guarded = assembly.engine.id in self.assembler.guard.engines
        # What is remembered may change with other sessions.
        remembers = call.memory is not NO_MEMORY
        kept = owed and not (remembers or call.whole or ref.key or guarded)
        if kept and not (assembly.stored or assembly.outcome_reason):
            self.replies.keep(question, assembly, stands_on, reply, written.known_tokens)
        self.meters.tokens_sent.value += assembly.tokens
        self.meters.tokens_reused.value += written.known_tokens
        return reply


def _joined(parts: list[bytes]) -> bytes:
    """These in one, and none of them is held any more: to free megabytes takes its time as well."""
    whole = b"".join(parts)
    while parts:
        parts.pop()
    return whole
