"""Lives of sessions: what happens to them, as plain data that any server can be played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_proto.v1.assemble_pb2 import AssembleResponse
from contextengine_server.api import replies
from contextengine_server.commands.compaction.compact import CompactDone
from contextengine_server.commands.lifecycle.record_host_change import HostCompacted, Rewound
from contextengine_server.commands.subagents.prepare_subagent_spawn import SpawnRequest
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.commands.turn.update_model import Model
from contextengine_server.context.scope import Scope
from contextengine_server.context.work import at_once
from contextengine_server.errors import DomainError, EngineFailed
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.assembly import Assembly
from contextengine_server.wire.message import read
from tests.unit.commands.house import AGENT, TENANT, Server, incoming, long, request

ENGINES: dict[str, dict[str, Any]] = {
    "dag": {
        "freshTailTurns": 1,
        "leafChunkTokens": 1_000,
        "leafTargetTokens": 96,
        "condensedMinFanout": 2,
        "condensedTargetTokens": 256,
    },
    "pipeline": {},
    "compressor": {"thresholdTokens": 1_500, "protectLastN": 0},
    "layered": {"compaction": {"maxTokens": 1_500}},
    "legacy": {},
}
"""Engines, and options under which they compact what a test can write."""

BUDGETS = (150, 400, 900, 2_000, 5_000, 60_000)
CALL_IDS = ("a", "b", "c")
"""So few that sessions use them again and again."""
ROLES = (pb.ROLE_USER, pb.ROLE_ASSISTANT, pb.ROLE_TOOL, pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER)

Part = tuple[str, int, int]
"""What a part is, which call it is about, how many tokens it has."""


class Said(msgspec.Struct, frozen=True):
    """A message."""

    role: int
    parts: tuple[Part, ...]
    label: str = ""


class Happening(msgspec.Struct, frozen=True):
    """Anything else that happens: what, and two numbers that say how."""

    what: str
    first: int = 0
    second: int = 0


Event = Said | Happening

_tokens = st.sampled_from((6, 20, 60, 200))
_part = st.tuples(
    st.sampled_from(("text", "text", "call", "result", "result", "thought", "signed")),
    st.integers(0, len(CALL_IDS) - 1),
    _tokens,
)
_anything = st.builds(
    Said,
    st.sampled_from(ROLES),
    st.lists(_part, min_size=1, max_size=3).map(tuple),
    st.sampled_from(("", "", "", "", "", "pinned", "excluded")),
)


def _usual(role: int, *kinds: str) -> st.SearchStrategy[Said]:
    call = st.integers(0, len(CALL_IDS) - 1)
    parts = st.tuples(*(st.tuples(st.just(kind), call, _tokens) for kind in kinds))
    return st.builds(Said, st.just(role), parts)


_sayings = st.one_of(
    _anything,
    _usual(pb.ROLE_USER, "text"),
    _usual(pb.ROLE_USER, "text"),
    _usual(pb.ROLE_ASSISTANT, "text"),
    _usual(pb.ROLE_ASSISTANT, "text", "call"),
    _usual(pb.ROLE_ASSISTANT, "call", "call"),
    _usual(pb.ROLE_TOOL, "result"),
    _usual(pb.ROLE_TOOL, "result"),
    _usual(pb.ROLE_TOOL, "result", "result"),
    st.just(Said(pb.ROLE_USER, (("text", 0, 6_000),))),
)
said: st.SearchStrategy[Said] = st.builds(lambda one: one, _sayings)
"""By itself: of one_of(one_of(a, b), c) hypothesis makes one of three."""
WHATS = [
    *("compact",) * 4, *("ask",) * 4, *("live",) * 2, *("back",) * 2, "rewind", "undo", "host",
    "model", "engine", "continue", "fork", "reset", "end",
]  # fmt: skip
happened = st.builds(Happening, st.sampled_from(WHATS), st.integers(0, 7), st.integers(0, 7))
events = st.one_of(said, said, said, happened)
lives = st.lists(events, min_size=8, max_size=60)


class Player:
    """Plays a life to one server. `forgets`: where memory is let go, by number of the event."""

    def __init__(self, server: Server, forgets: frozenset[int] = frozenset()) -> None:
        self.server, self.forgets = server, forgets
        self.refs = [Ref(AGENT, "s0")]
        self.held = (b"", "")
        """What the caller holds: the hash of a list, and its epoch."""
        self.listed: list[pb.Message] = []
        """The newest list that was assembled."""

    async def play(self, life: Sequence[Event]) -> list[object]:
        """What is heard of it, event by event."""
        heard: list[object] = []
        for number, event in enumerate(life):
            if number in self.forgets:
                self.forget()
            heard.append(await self.heard(number, event))
        return heard

    async def heard(self, number: int, event: Event) -> object:
        """What is heard of one event."""
        try:
            return await self._event(number, event)
        except EngineFailed:
            raise
        except DomainError as error:
            return type(error).__name__, error.text

    def forget(self) -> None:
        """Lets all of memory go."""
        cache = self.server.core.cache
        for session in cache.all():
            cache.drop(session.scope)

    async def _event(self, number: int, event: Event) -> object:
        ref, context = self.refs[-1], self.server.context
        if isinstance(event, Said):
            said = incoming(message_of(event, number))
            return (await context.ingest.run(TENANT, ref, said, None)).revision
        first, second = event.first, event.second
        match event.what:
            case "ask":
                return await self.ask(first, second)
            case "compact":
                done = await self.server.compact(BUDGETS[first % 5], ref, force=second > 0)
                return _told(done)
            case "rewind":
                newest = await self._newest(ref)
                change = Rewound(max(0, newest - first))
                return str(
                    await context.record_host_change.run(TENANT, ref, change, request(f"r{number}"))
                )
            case "host":
                newest = await self._newest(ref)
                begins = max(1, newest - first - second)
                own = HostCompacted(begins, max(begins, newest - first), f"host {number}")
                return str(
                    await context.record_host_change.run(TENANT, ref, own, request(f"r{number}"))
                )
            case "undo":
                status = await context.get_status.run(TENANT, ref, 0)
                to = max(0, status.state.compactions - first % 3)
                return _told(await self.server.compact(2_000, ref, undo_to_generation=to))
            case "model":
                model = Model(model=("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro")[first % 3])
                await context.update_model.run(TENANT, ref, model, None)
                return None
            case "engine":
                # Within a turn the engine that began it goes on, as far as memory shows a turn.
                closing = pb.Message(role=pb.ROLE_USER, parts=[text(f"engine{number}")])
                await context.ingest.run(TENANT, ref, incoming(closing), None)
                name = sorted(ENGINES)[first % len(ENGINES)]
                scope = Scope(TENANT, AGENT, ref.session)
                await self.server.engines.assign.run(scope, name, ENGINES[name], clear=False)
                return None
            case "continue":
                self.refs.append(Ref(AGENT, f"s{number}"))
                await context.bootstrap.run(TENANT, self.refs[-1], Introduction(continues=ref))
                return None
            case "fork":
                child = Ref(AGENT, f"s{number}")
                wanted = SpawnRequest(ref, child, fork=True)
                await context.prepare_subagent_spawn.run(TENANT, wanted)
                self.refs.append(child)
                return None
            case "back":
                self.refs.append(self.refs[first % len(self.refs)])
                return None
            case "reset":
                if first:
                    return None  # a reset ends what came before: seldom
                return str(await context.reset_session.run(TENANT, ref, None, None))
            case "end":
                return str(await context.end_session.run(TENANT, ref, None, None))
            case "live":
                return await self._live(first, second, number)
        raise AssertionError(event)

    async def _newest(self, ref: Ref) -> int:
        head = await self.server.store.head(Scope(TENANT, AGENT, ref.session))
        return 0 if head is None else head.last_sequence

    async def ask(self, first: int, second: int) -> bytes:
        """The reply, as it goes over the wire."""
        budget, known = BUDGETS[first % len(BUDGETS)], self.held if second % 2 else (b"", "")
        explained = second == 7
        assembly = await self.server.assemble(budget, self.refs[-1], whole=explained)
        reply = written_of(assembly, *known)
        reply += b"".join(at_once(replies.explained(assembly))) if explained else b""
        self.held = assembly.joined.context_hash, assembly.epoch
        whole = written_of(assembly)
        self.listed = [item.message for item in AssembleResponse.FromString(whole).items]
        return reply

    async def _live(self, first: int, second: int, number: int) -> bytes:
        """The harness sends its own list: what it was answered, cut or with more behind it."""
        listed = self.listed[: len(self.listed) - first % 3]
        listed = [*listed, pb.Message(role=pb.ROLE_USER, parts=[text(f"live{number}")])]
        live = [read(one, "live") for one in listed]
        assembly = await self.server.assemble(
            BUDGETS[second % len(BUDGETS)], self.refs[-1], live=live, store_new=second % 2 == 0
        )
        return written_of(assembly)


def written_of(assembly: Assembly, known_hash: bytes = b"", known_epoch: str = "") -> bytes:
    written = replies.encode(assembly, known_hash, known_epoch)
    return b"".join((written.fields, *assembly.joined.after(written.known)))


def _told(done: CompactDone) -> object:
    made = done.done
    return (
        (made.reason, made.before, made.after, made.helps, made.no_help, made.error),
        [(one.id, one.text, one.first_sequence, one.last_sequence) for one in made.summaries],
        (done.generation, done.revision, done.first_kept_sequence, done.changed),
    )


def message_of(said: Said, number: int) -> pb.Message:
    """The message as a harness sends it."""
    labels = {said.label: "true"} if said.label else {}
    made = pb.Message(id=f"m{number}", labels=labels)
    made.role = said.role  # type: ignore[assignment]
    for at, (kind, call, tokens) in enumerate(said.parts):
        words = long(f"{kind}{number}.{at}", tokens)
        match kind:
            case "call":
                called = pb.ToolCallPart(
                    call_id=CALL_IDS[call], name="read", arguments_json=b'{"path":"f%d"}' % call
                )
                made.parts.append(pb.Part(tool_call=called))
            case "result":
                answer = pb.ToolResultPart(call_id=CALL_IDS[call], parts=[text(words)])
                made.parts.append(pb.Part(tool_result=answer))
            case "thought":
                made.parts.append(pb.Part(reasoning=pb.ReasoningPart(text=words)))
            case "signed":
                signed = pb.ReasoningPart(text=words, signature=b"signed")
                made.parts.append(pb.Part(reasoning=signed))
            case _:
                made.parts.append(text(words))
    return made


def text(words: str) -> pb.Part:
    """A text."""
    return pb.Part(text=pb.TextPart(text=words))
