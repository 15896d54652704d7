"""Servers without gRPC: the core and its commands over rows in memory, as many servers over the
same rows as a test likes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter
from typing import Any, cast

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.api.pipeline.bytes_in_flight import ByteLimits
from contextengine_server.api.pipeline.limits import Limits
from contextengine_server.api.pipeline.traffic import Traffic
from contextengine_server.app import registry_of, rules_of
from contextengine_server.commands.compaction.compact import CompactCall, CompactDone
from contextengine_server.commands.engines.quotas import Tenants
from contextengine_server.compaction.memory_flush import Memory
from contextengine_server.config.load import load_settings
from contextengine_server.context.plan import segment_slots
from contextengine_server.context.scope import Scope
from contextengine_server.engines.registration import Registration
from contextengine_server.fairness.quota import TenantQuotas
from contextengine_server.health.checks import Check, assignment_checks, engine_checks, store_checks
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.recall.archive import Archive
from contextengine_server.recall.index import Indexer
from contextengine_server.recall.score.questions import Questions
from contextengine_server.recall.snippets import TurnBeginnings
from contextengine_server.runtime.guard_states import StoredStates
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.assembly import AssembleCall, Assembly
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.load import inherits
from contextengine_server.session.policies import Policies
from contextengine_server.session.receipt import Request
from contextengine_server.session.state import SessionState
from contextengine_server.store.memory import MemoryStore, Tables
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit, SessionHead
from contextengine_server.summarize import SummarizerChain, SummaryRequest, SummaryResult
from contextengine_server.summarize.extractive.summarizer import extract
from contextengine_server.summarize.redaction import redact_all
from contextengine_server.telemetry.events import Event
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.telemetry.tracing import NO_TRACE
from contextengine_server.tokens import TokenCounter
from contextengine_server.wire.message import Incoming, read
from contextengine_server.wire.slots import item_of
from contextengine_server.wiring.commands import (
    context_engine_commands,
    engines_commands,
    project_command,
    recall_commands,
    sessions_commands,
)
from contextengine_server.wiring.core import CoreDependencies, core_of
from tests.integration.harness import Clock

TENANT, AGENT = "tenant", "agent"
S1 = Ref(AGENT, "s1")
SMALL: dict[str, Any] = {
    "engine.dag.freshTailTurns": 1,
    "engine.dag.leafChunkTokens": 1_000,
    "engine.dag.leafTargetTokens": 96,
}
"""A dag that compacts what a test can write in a line."""

Meanwhile = Callable[[], Awaitable[object]]
"""What somebody else does in between."""


@dataclass
class Rows:
    """The rows that servers share, the time that they share, and the ids that they give."""

    tables: Tables = field(default_factory=Tables)
    clock: Clock = field(default_factory=Clock)
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def new_id(self) -> str:
        """The next id."""
        return f"id-{next(self.ids)}"


class RacedStore(MemoryStore):
    """A store where a test can have something happen just before a commit is written, or before
    messages are read."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self.rows = tables
        self.before_commit: list[Meanwhile] = []
        """Each is for one commit."""
        self.before_read: list[Meanwhile] = []
        """Each is for one reading of messages."""
        self.calls: Counter[str] = Counter()

    async def commit(self, commit: Commit) -> None:
        self.calls["commit"] += 1
        if self.before_commit:
            await self.before_commit.pop(0)()
        await super().commit(commit)

    async def messages(self, scope: Scope, *range_: Any, **how: Any) -> Any:
        self.calls["messages"] += 1
        if self.before_read:
            await self.before_read.pop(0)()
        return await super().messages(scope, *range_, **how)


class InProcessSummarizer:
    """Extracts in this process, or says what it is told to; `meanwhile` happens while it writes."""

    name = "extractive"

    def __init__(self, count_text: Callable[[str], int]) -> None:
        self.asked: list[SummaryRequest] = []
        self.meanwhile: list[Meanwhile] = []
        self.says = ""
        """Empty: what it extracts."""
        self._count = count_text

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """See Summarizer."""
        self.asked.append(request)
        if self.meanwhile:
            await self.meanwhile.pop(0)()
        if self.says:
            return SummaryResult(self.says, self._count(self.says), "scripted")
        return extract(request, self._count)


async def _here(tenant: str, function: Callable[..., Any], /, *args: Any) -> Any:
    """Does without a worker process."""
    return function(*args)


class Server:
    """One server over the rows. `settings` are dotted paths, as flags are. `store`: another one
    than that over the rows."""

    def __init__(
        self,
        rows: Rows,
        *,
        engines: Sequence[Registration] = (),
        memory: Memory | None = None,
        remembers: bool = False,
        store: Store | None = None,
        **settings: Any,
    ) -> None:
        catalogue = installed_engines()
        for registration in engines:
            catalogue = catalogue.tried(registration)
        self.settings = load_settings(None, settings, {}, catalogue)
        self.rows = rows
        self.store = RacedStore(rows.tables) if store is None else cast(RacedStore, store)
        self.clock = rows.clock
        self.counter = TokenCounter(self.settings.tokens.encoding)
        self.summarizer = InProcessSummarizer(self.counter.count_text)
        self.registry = registry_of(self.settings)
        self.core = core = core_of(
            rules_of(self.settings),
            CoreDependencies(
                self.store,
                self.counter,
                self.registry,
                Policies(self.settings.summarizer),
                SummarizerChain([self.summarizer], self.counter.count_text),
                lambda request, previous: None,
                lambda tenant: 0,
                Metrics(),
                rows.clock,
                rows.new_id,
                "server",
                in_worker=_here if remembers else None,
                memory=memory,
            ),
        )
        self.indexer = Indexer(self.store)
        counted = self.counter.count_text_async
        begins = TurnBeginnings(redact_all)
        archive = Archive(
            self.store, self.indexer, inherits, redact_all, begins, Questions(), counted
        )
        guards = StoredStates(self.store.guards)
        self.context = context_engine_commands(core, archive, guards)
        self.recall = recall_commands(core, archive)
        self.sessions = sessions_commands(core)
        self.tenants = Tenants(
            TenantQuotas(),
            self.store.quotas,
            Traffic(Limits(), ByteLimits(1 << 30, 1 << 30, 1 << 20), Metrics()),
            core.events,
        )
        self.engines = engines_commands(core, self.examine, ["cheap"], self.tenants)
        self.project = project_command(core)

    async def open(self) -> Server:
        """Begins to answer."""
        await self.store.open()
        return self

    async def close(self) -> None:
        """Ends."""
        await self.indexer.stop()
        self.core.events.close()
        self.core.encodings.close()
        await self.store.close()

    async def examine(self, tenant: str, *, operator: bool) -> list[Check]:
        """The checks of the store and the engines."""
        failures = self.core.selection.failures.of_tenant(tenant)
        default = self.settings.engine.default
        return [
            *await store_checks(self.store),
            *engine_checks(self.registry, default, failures, operator=operator),
            *assignment_checks(self.registry, await self.store.assignments(tenant)),
        ]

    # Shorter ways to say what many tests say.

    async def ingest(self, *texts: str, ref: Ref = S1, ids: bool = True) -> int:
        """Stores what the user says, each message with its first word as its id; the revision."""
        done = await self.context.ingest.run(TENANT, ref, spoken(*texts, ids=ids), None)
        return done.revision

    async def talk(self, first: int, count: int, ref: Ref = S1) -> int:
        """Stores long turns of a user and a model, as `turns` has them; the revision."""
        done = await self.context.ingest.run(TENANT, ref, turns(first, count), None)
        return done.revision

    async def assemble(self, tokens: int = 100_000, ref: Ref = S1, **more: Any) -> Assembly:
        """The assembly for a final budget."""
        more = {"budget": BudgetSpec(message_tokens=tokens), **more}
        address = await self.core.addresses.find(TENANT, ref)
        return await self.core.assembler.assemble(AssembleCall(TENANT, ref, **more), address)

    async def shown(self, tokens: int = 100_000, ref: Ref = S1, **more: Any) -> list[str]:
        """The texts of the assembly's items."""
        return texts_of(await self.assemble(tokens, ref, **more))

    async def compact(self, tokens: int = 2_000, ref: Ref = S1, **more: Any) -> CompactDone:
        """Compacts, and says what came of it."""
        seen: list[CompactDone] = []

        def encode(done: CompactDone) -> bytes:
            seen.append(done)
            return b"done"

        more = {"force": True, "budget": BudgetSpec(message_tokens=tokens), **more}
        await self.context.compact.run(TENANT, ref, CompactCall(**more), encode, NO_TRACE)
        return seen[-1]

    async def head(self, ref: Ref = S1) -> SessionHead:
        """The head as it is stored."""
        head = await self.store.head(scope(ref))
        assert head is not None
        return head

    async def state(self, ref: Ref = S1) -> SessionState:
        """The state as it is stored."""
        return SessionState.decode((await self.head(ref)).state)

    async def stored(self, ref: Ref = S1) -> list[str]:
        """The texts of the live rows."""
        rows = await MemoryStore.messages(self.store, scope(ref))
        return [text_of(pb.Message.FromString(row.body)) for row in rows]

    def events(self, prefix: str = "") -> list[Event]:
        """What happened so far, by the beginning of its name."""
        held = [event for one in self.core.events._held.values() for event in one.events]
        held.sort(key=attrgetter("number"))
        return [event for event in held if event.name.startswith(prefix)]


async def same_as_cold(server: Server, cold: Server, tokens: int = 100_000) -> None:
    """What a server has in memory comes to what one that reads it anew makes of the rows."""
    warm, read = await server.assemble(tokens), await cold.assemble(tokens)
    assert (warm.epoch, warm.tokens) == (read.epoch, read.tokens)
    assert warm.joined.context_hash == read.joined.context_hash


def scope(ref: Ref = S1) -> Scope:
    """The scope of a session that is named by its id."""
    return Scope(TENANT, ref.agent, ref.session)


def request(request_id: str = "r1", digest: bytes = b"digest") -> Request:
    """A request that is answered once."""
    return Request(request_id, digest)


def user(text: str, id: str = "", **more: Any) -> pb.Message:
    """The user says something."""
    return pb.Message(id=id, role=pb.ROLE_USER, parts=[_text(text)], **more)


def assistant(text: str, id: str = "", *calls: str) -> pb.Message:
    """The model says something, and calls tools by these ids."""
    parts = [_text(text)] if text else []
    parts += [
        pb.Part(tool_call=pb.ToolCallPart(call_id=call, name="exec", arguments_json=b"{}"))
        for call in calls
    ]
    return pb.Message(id=id, role=pb.ROLE_ASSISTANT, parts=parts)


def result(call: str, text: str, id: str = "") -> pb.Message:
    """What a tool answered."""
    part = pb.Part(tool_result=pb.ToolResultPart(call_id=call, parts=[_text(text)]))
    return pb.Message(id=id, role=pb.ROLE_TOOL, parts=[part])


def incoming(*messages: pb.Message) -> list[Incoming]:
    """Messages as the core takes them."""
    return [read(message, f"messages[{at}]") for at, message in enumerate(messages)]


def spoken(*texts: str, ids: bool = True) -> list[Incoming]:
    """What the user says, message by message, each with its first word as its id."""
    return incoming(*(user(text, text.partition(" ")[0] if ids else "") for text in texts))


def turns(first: int, count: int, words: int = 400) -> list[Incoming]:
    """So many turns of a user and a model, from this one on, each message about so many tokens
    long: `u1`, `a1`, `u2` and so on."""
    messages = []
    for at in range(first, first + count):
        messages.append(user(long(f"u{at}", words), f"u{at}"))
        messages.append(assistant(long(f"a{at}", words), f"a{at}"))
    return incoming(*messages)


def long(name: str, words: int = 400) -> str:
    """A text of about so many tokens, unlike that of any other name."""
    return f"{name} " + " ".join(f"{name} saw file{at}." for at in range(words // 6))


def texts_of(assembly: Assembly) -> list[str]:
    """The texts of an assembly's items."""
    slots = [
        slot for segment in assembly.plan.segments for slot in segment_slots(segment, assembly.view)
    ]
    return [text_of(item_of(slot.frame).message) for slot in slots]


def text_of(message: pb.Message) -> str:
    """What a message says; of a result, what was answered."""
    said = []
    for part in message.parts:
        inner = part.tool_result.parts if part.WhichOneof("kind") == "tool_result" else [part]
        said += [one.text.text for one in inner if one.WhichOneof("kind") == "text"]
    return " ".join(said)


def _text(text: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=text))
