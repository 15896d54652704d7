"""A client's conversations as sessions: what is new is stored, what fits is shown.

The client's list is the truth: the session is brought to it before each call. So whatever could not
be recorded comes with the client's next request, and nothing here has to be kept or sent again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from contextengine import Assembly, AsyncClient, AsyncFeed, ContextEngineError, SessionRef
from contextengine.feed import AT_ONCE
from contextengine.formats import FormatError
from contextengine.naming import name_by_content
from contextengine.types import Budget, Item, LiveList, Message, ReportUsageRequest, WindowBudget

from .conversation import opening, session_of
from .dialects.dialect import Dialect, Entry, Reply, verbatim
from .document import Document, Unreadable
from .windows import Windows

log = logging.getLogger("contextengine_proxy")

MOST_WARM = 128
"""Conversations that are remembered at once: of each the ids and the last context. One that is not
costs one question more."""
RECORD_S = 15.0
"""Seconds that the service may take to store a reply. Nobody waits for it."""
AWAY_S = 0.05
"""Seconds that a call waits for the one before it while the service is away."""
NOT_KEPT = ("SESSION_IGNORED", "SESSION_STATELESS")
"""Sessions that the service is set to keep nothing of: the client's list is all there is."""
_FINDER = re.compile(r" Find them with (\w+)\.")
"""Where the service names a tool of recall, which a client need not have."""


class BadSession(ValueError):
    """A session's name that cannot be one. The text is for the client."""


@dataclass(slots=True)
class Request:
    """A conversation as a client sends it."""

    dialect: Dialect
    document: Document
    leading: int
    """How many elements of the list are instructions before the conversation."""
    messages: list[Message]
    ids: list[str]

    @property
    def model(self) -> str:
        """The model that is asked for."""
        model = self.document.value.get("model")
        return model if isinstance(model, str) else ""

    @property
    def outside(self) -> str:
        """What takes from the window besides the conversation."""
        instructions = self.document.originals[: self.leading]
        return "\n".join([*instructions, self.document.raw(*self.dialect.outside)])


@dataclass(slots=True)
class Prepared:
    """What goes upstream, and what is known of it."""

    body: bytes
    request: Request | None = None
    """None: it is no conversation that is kept."""
    talk: Talk | None = None
    """None: it has no session yet, or the service is away."""
    assembly_id: str = ""
    credentials: tuple[str, ...] = ()


class Talk:
    """One conversation, as far as it is remembered."""

    def __init__(self, client: AsyncClient, ref: SessionRef) -> None:
        self.lock = asyncio.Lock()
        self.feed = AsyncFeed(client, ref)
        self.session = client.session(agent_id=ref.agent_id, session_id=ref.session_id)
        self._outside: tuple[bytes, int] = b"", 0
        self._model = ""

    async def called(self, model: str, provider: str) -> None:
        """The session's model is the one that is called: what bills and refusals teach is kept for
        that one alone."""
        if not model or model == self._model:
            return
        if (await self.session.status(timeout=RECORD_S)).model != model:
            await self.session.update_model(model=model, provider=provider, timeout=RECORD_S)
        self._model = model

    def counted(self, text: bytes) -> int | None:
        """The tokens of what stands outside, as the service counted them last."""
        return self._outside[1] if self._outside[0] == text else None

    def count(self, text: bytes, tokens: int) -> None:
        """Keeps what the service counted."""
        self._outside = text, tokens


class Talks:
    """All conversations that go through."""

    def __init__(
        self, client: AsyncClient, agent: str, windows: Windows, patience: float = 2.0
    ) -> None:
        """`client` raises, and has a breaker. `patience`: seconds that a call may wait for the
        service."""
        self._client = client
        self._agent = agent
        self._windows = windows
        self._patience = patience
        self._warm: OrderedDict[str, Talk] = OrderedDict()
        self._reader = Reader()
        self.away = ""
        """Why the service was not there at the last call. Empty: it was."""

    async def prepare(
        self, dialect: Dialect, body: bytes, named: str, credentials: tuple[str, ...]
    ) -> Prepared:
        """What goes upstream for a request. `named`: the session that the client names; empty: it
        is the one that begins so. Raises BadSession."""
        if len(named.encode()) > 256 or not named.isprintable():
            raise BadSession(
                "the session's name has more than 256 bytes, or what cannot be printed"
            )
        try:
            request = self._reader.read(dialect, body, named)
        except (Unreadable, FormatError):
            return Prepared(body)  # upstream says what is wrong with it
        if not request.messages or not dialect.stands_alone(request.document.value):
            return Prepared(body)
        prepared = Prepared(body, request, credentials=credentials)
        begun = opening(request.messages)
        if not named and begun is None:
            return prepared  # nothing to leave out yet, and no conversation to tell it from others
        session = named or session_of(request.ids[(begun or 1) - 1], credentials)
        talk = self._talk(session)
        until = time.monotonic() + self._patience
        try:
            # Whoever holds it waits for the service: where that one is away it is not waited for.
            async with asyncio.timeout(AWAY_S if self.away else self._patience):
                await talk.lock.acquire()
            try:
                assembly = await self._assembled(talk, request, until)
            finally:
                talk.lock.release()
        except (ContextEngineError, TimeoutError) as error:
            talk.feed.forget()
            self._missed(error)
            return prepared
        self._there()
        if assembly.response.outcome_reason in NOT_KEPT:
            return prepared
        prepared.talk, prepared.assembly_id = talk, assembly.response.assembly_id
        prepared.body = written(request, assembly)
        return prepared

    async def record(self, prepared: Prepared, reply: Reply) -> None:
        """Stores what the model answered and what it cost. What fails here comes with the client's
        next request."""
        request = prepared.request
        if request is None:
            return
        try:
            ids = [*request.ids, *name_by_content(reply.messages, request.ids[-1])]
            messages = [*request.messages, *reply.messages]
            talk = prepared.talk
            if talk is None:
                begun = opening(request.messages)
                if begun is not None or not reply.messages:
                    return  # the service was away
                talk = self._talk(session_of(ids[len(request.ids)], prepared.credentials))
            async with asyncio.timeout(RECORD_S), talk.lock:
                new = prepared.talk is None or talk.feed.ends_with(request.ids)
                if reply.messages and new:
                    calls = any(part.HasField("tool_call") for part in messages[-1].parts)
                    await talk.feed.bring(messages, ended=not calls, timeout=RECORD_S)
                await talk.called(request.model, request.dialect.provider)
                if reply.usage is not None:
                    await talk.session.report_usage(
                        assembly_id=prepared.assembly_id,
                        usage=reply.usage,
                        # As it was asked for: a provider names it by its day as well.
                        model=request.model,
                        stop_reason=reply.stop_reason,
                        timeout=RECORD_S,
                    )
        except (ContextEngineError, TimeoutError) as error:
            self._missed(error)

    async def refused(self, prepared: Prepared, text: str) -> None:
        """The provider said that the request was too long: the service learns what it serves."""
        talk, request = prepared.talk, prepared.request
        if talk is None or request is None:
            return
        overflow = ReportUsageRequest.Overflow(text=text)
        try:
            await talk.called(request.model, request.dialect.provider)
            await talk.session.report_usage(
                assembly_id=prepared.assembly_id, overflow=overflow, timeout=RECORD_S
            )
        except ContextEngineError as error:
            self._missed(error)

    async def _assembled(self, talk: Talk, request: Request, until: float) -> Assembly:
        held = await talk.feed.held(request.ids, timeout=_left(until))
        new: Sequence[Message] = request.messages[held or 0 :]
        stored: dict[str, Any]
        if held is None:
            # The list's beginning was cut off, say: the service finds its place by what it says.
            stored = {"live": LiveList(messages=map(_anonymous, new), store_new=True)}
        elif len(new) > AT_ONCE:
            await talk.feed.bring(request.messages, timeout=_left(until))
            stored = {}
        else:
            stored = {"ingest": new}
        outside = request.outside.encode()
        digest = blake2b(request.model.encode() + b"\n" + outside, digest_size=16).digest()
        assembly = await talk.session.assemble(
            **stored,
            budget=self._budget(request, talk.counted(digest), outside),
            model=request.model,
            provider=request.dialect.provider,
            timeout=_left(until),
        )
        talk.count(digest, assembly.response.budget.system_prompt)
        if held is not None:
            talk.feed.wrote(request.ids)
        return assembly

    def _budget(self, request: Request, counted: int | None, outside: bytes) -> Budget:
        window = self._windows.window(request.model)
        parts = WindowBudget(window=window, tool_tokens=0)
        if counted is None:
            parts.system_prompt_text = outside.decode()
        else:
            parts.system_prompt_tokens = counted
        for reserve in request.dialect.reserves:
            wanted = request.document.value.get(reserve)
            if isinstance(wanted, int) and wanted > 0 and window is not None:
                parts.output_reserve = min(wanted, window // 2)
                break
        return Budget(window=parts)

    def _talk(self, session: str) -> Talk:
        talk = self._warm.pop(session, None)
        if talk is None:
            talk = Talk(self._client, SessionRef(agent_id=self._agent, session_id=session))
        self._warm[session] = talk
        while len(self._warm) > MOST_WARM:
            self._warm.popitem(last=False)
        return talk

    def _missed(self, error: Exception) -> None:
        if not self.away:
            log.warning("requests go through as they are: %s", error or type(error).__name__)
        self.away = str(error) or type(error).__name__

    def _there(self) -> None:
        if self.away:
            log.warning("the service is back")
        self.away = ""


class Reader:
    """Reads conversations, each time only what was not there the time before."""

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, str, str], Read] = OrderedDict()

    def read(self, dialect: Dialect, body: bytes, named: str) -> Request:
        """The conversation of a request. Raises Unreadable, FormatError."""
        document = Document(body, dialect.listed)
        leading = dialect.leading(document.messages)
        originals = document.originals[leading:]
        # What begins alike may be alike for longer; what is not is read anew.
        key = (dialect.path, named, originals[0] if originals else "")
        before = self._last.pop(key, Read([], []))
        same = _same(before.originals, originals)
        messages: list[Message] = []
        taken = 0
        for message in before.messages:
            length = elements_of(message)
            # The last one may go on with what follows it.
            if taken + length >= same:
                break
            messages.append(message)
            taken += length
        new = dialect.read(originals[taken:])
        name_by_content(new, messages[-1].id if messages else "")
        messages += new
        self._last[key] = Read(originals, messages)
        if len(self._last) > MOST_WARM:
            self._last.popitem(last=False)
        ids = [message.id for message in messages]
        return Request(dialect, document, leading, messages, ids)


@dataclass(frozen=True, slots=True)
class Read:
    """A conversation that was read."""

    originals: list[str]
    messages: list[Message]


def elements_of(message: Message) -> int:
    """Of how many elements of the client's list a message was made."""
    native = message.native.json
    return len(json.loads(native)) if native.startswith(b"[") else 1


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many both begin with."""
    same = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        same += 1
    return same


def written(request: Request, assembly: Assembly) -> bytes:
    """The request's body with what the service shows in place of the conversation. Messages that
    are shown as they were are the client's own, byte for byte; so is the whole body where all of
    them are."""
    dialect, document = request.dialect, request.document
    own = dict(zip(request.ids, request.messages, strict=True))
    addition = said(assembly.response.system_prompt_addition, document)
    shown = [item.message.id for item in assembly.items if verbatim(item)]
    if shown == request.ids and len(shown) == len(assembly.items) and not addition:
        return document.body
    entries = [entry for item in assembly.items for entry in _entries(dialect, item, own)]
    leading = document.originals[: request.leading]
    others = dialect.instructed(document, addition, leading) if addition else {}
    return document.changed([*leading, *dialect.arranged(entries)], others)


def said(addition: str, document: Document) -> str:
    """What the service adds to the instructions, without a tool that the client does not offer."""
    tools = document.raw("tools")
    return _FINDER.sub(lambda found: found[0] if found[1] in tools else "", addition)


def _entries(dialect: Dialect, item: Item, own: Mapping[str, Message]) -> Iterable[Entry]:
    client = own.get(item.message.id)
    if client is not None and verbatim(item):
        native = client.native.json.decode()
        if native.startswith("["):
            return [Entry(json.dumps(one), False, client) for one in json.loads(native)]
        return [Entry(native, False, client)]
    message = _called_alike(item.message, client) if client is not None else item.message
    return [Entry(json.dumps(one), True, message) for one in dialect.write(message)]


def _called_alike(shown: Message, client: Message) -> Message:
    """The message in its other form, its calls named as the client names them now."""
    alike = Message()
    alike.CopyFrom(shown)
    for kind in ("tool_call", "tool_result"):
        theirs = [getattr(part, kind) for part in client.parts if part.HasField(kind)]
        ours = [getattr(part, kind) for part in alike.parts if part.HasField(kind)]
        if len(theirs) == len(ours):
            for one, other in zip(ours, theirs, strict=True):
                one.call_id = other.call_id
    return alike


def _anonymous(message: Message) -> Message:
    copy = Message()
    copy.CopyFrom(message)
    copy.id = ""
    return copy


def _left(until: float) -> float:
    return max(until - time.monotonic(), 0.001)
