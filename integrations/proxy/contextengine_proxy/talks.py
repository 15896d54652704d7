"""A client's conversations as sessions: what is new is stored, what fits is shown.

The client's list is the truth: the session is brought to it before each call. So whatever could not
be recorded comes with the client's next request; where there is none, it is a debt that is paid
once the service is there again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from contextengine import Assembly, AsyncClient, AsyncMirror, ContextEngineError, SessionRef
from contextengine.errors import SessionNotFound
from contextengine.formats import FormatError
from contextengine.naming import name_by_content
from contextengine.types import Budget, Message, WindowBudget

from .calls import name_calls
from .conversation import opening, session_of
from .debts import Book, Debt, Debts, is_away
from .dialects.dialect import Dialect, Reply, count
from .document import Unreadable
from .reading import Reader, Request
from .windows import Windows
from .writing import Writer

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


class BadSession(ValueError):
    """A session's name that cannot be one. The text is for the client."""


@dataclass(slots=True)
class Prepared:
    """What goes upstream, and what is known of it."""

    body: bytes
    request: Request | None = None
    """None: it is no conversation that is kept."""
    talk: Talk | None = None
    """None: it has no session yet."""
    assembly: Assembly | None = None
    """None: the service was away, and the request goes through as it is."""
    credentials: tuple[str, ...] = ()


class Talk:
    """One conversation, as far as it is remembered."""

    def __init__(self, client: AsyncClient, ref: SessionRef) -> None:
        self.lock = asyncio.Lock()
        self.name = ref.session_id
        self.newest: Request | None = None
        """The request that came last."""
        self.mirror = AsyncMirror(client, ref)
        self.session = self.mirror.session
        self.writer = Writer()
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
        self,
        client: AsyncClient,
        agent: str,
        windows: Windows,
        patience: float = 2.0,
        book: Book | None = None,
    ) -> None:
        """`client` raises, and has a breaker. `patience`: seconds that a call may wait for the
        service. `book`: where debts outlive the process. None: nowhere."""
        self._client = client
        self._agent = agent
        self._windows = windows
        self._patience = patience
        self._warm: OrderedDict[str, Talk] = OrderedDict()
        self._reader = Reader()
        self._debts = Debts(self._pay, book)
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
        prepared.talk = talk = self._talk(session)
        talk.newest = request
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
            self._missed(error)
            self._owe(talk, request, request.messages, ended=False)
            return prepared
        self._there()
        self._debts.settle(session)
        if assembly.response.outcome_reason in NOT_KEPT:
            return Prepared(body)
        prepared.assembly = assembly
        prepared.body = talk.writer.written(request, assembly)
        return prepared

    async def record(self, prepared: Prepared, reply: Reply) -> None:
        """Stores what the model answered and what it cost."""
        request = prepared.request
        if request is None:
            return
        replied = [] if request.document.order else reply.messages
        new = name_by_content(replied, request.ids[-1])
        name_calls(replied, request.messages, request.calls)
        messages = [*request.messages, *replied]
        talk = prepared.talk
        if talk is None:
            begun = opening(messages)
            if begun is None:
                return
            ids = [message.id for message in messages]
            talk = self._talk(session_of(ids[begun - 1], prepared.credentials))
            talk.newest = request
        ended = not any(part.HasField("tool_call") for part in messages[-1].parts)
        try:
            async with asyncio.timeout(RECORD_S), talk.lock:
                stored = bool(new) and _goes_on(talk, prepared)
                if not stored and prepared.assembly is None:
                    return  # the service knows nothing of it, and need not know
                if stored:
                    await talk.mirror.bring(messages, ended=ended, timeout=RECORD_S)
                    self._debts.settle(talk.name)
                await talk.called(request.model, request.dialect.provider)
                if reply.usage is not None and prepared.assembly is not None:
                    await talk.session.report_usage(
                        assembly_id=prepared.assembly.response.assembly_id,
                        usage=reply.usage,
                        # As it was asked for: a provider names it by its day as well.
                        model=request.model,
                        stop_reason=reply.stop_reason,
                        timeout=RECORD_S,
                    )
        except (ContextEngineError, TimeoutError) as error:
            self._missed(error)
            if not talk.mirror.ends_with([message.id for message in messages]):
                self._owe(talk, request, messages, ended=ended)

    def inherit(self) -> None:
        """Owes what a proxy before left."""
        self._debts.inherit()

    async def close(self) -> None:
        """Stores what is owed, as far as the service is there."""
        await self._debts.close()

    async def shortened(self, prepared: Prepared, text: str) -> Prepared | None:
        """What goes upstream instead, where the provider said that a request was too long: half of
        what was shown, after a compaction. None: nothing shorter."""
        talk, request, refused = prepared.talk, prepared.request, prepared.assembly
        if talk is None or request is None or refused is None:
            return None
        asked, _ = self._asked(talk, request)
        try:
            async with asyncio.timeout(2 * RECORD_S), talk.lock:
                await talk.called(request.model, request.dialect.provider)
                less = await talk.session.overflowed(refused, text, budget=asked["budget"])
                asked |= {"budget": less, "timeout": RECORD_S}
                assembly = await talk.session.assemble(**asked)
        except (ContextEngineError, TimeoutError) as error:
            self._missed(error)
            return None
        body = talk.writer.written(request, assembly)
        if len(body) >= len(prepared.body):
            return None
        return replace(prepared, body=body, assembly=assembly)

    def _owe(
        self, talk: Talk, request: Request, messages: Sequence[Message], *, ended: bool
    ) -> None:
        if talk.newest is request:  # a newer one is the client's list now
            self._debts.owe(talk.name, Debt(messages, ended, len(request.document.body)))

    async def _pay(self, session: str, debt: Debt) -> None:
        talk = self._talk(session)
        async with asyncio.timeout(RECORD_S), talk.lock:
            if not self._debts.stands(session, debt):
                return
            if debt.inherited and not await self._behind(talk, debt):
                log.warning("session %s: others went on in it: nothing is stored", session)
                return
            await talk.mirror.bring(debt.messages, ended=debt.ended, timeout=RECORD_S)
        self._there()

    async def _behind(self, talk: Talk, debt: Debt) -> bool:
        """Whether the session is where this list was once: it is never taken back for a list that
        its client may have left since."""
        try:
            status = await talk.session.status(timeout=RECORD_S)
        except SessionNotFound:
            return True
        ids = [message.id for message in debt.messages]
        return not status.message_count or status.last_message_id in ids

    async def _assembled(self, talk: Talk, request: Request, until: float) -> Assembly:
        asked, digest = self._asked(talk, request)
        assembly = await talk.mirror.assemble(request.messages, timeout=_left(until), **asked)
        talk.count(digest, assembly.response.budget.system_prompt)
        return assembly

    def _asked(self, talk: Talk, request: Request) -> tuple[dict[str, Any], bytes]:
        """What an assembly is asked for with, and a digest of what stands outside of it."""
        outside = request.outside.encode()
        digest = blake2b(request.model.encode() + b"\n" + outside, digest_size=16).digest()
        budget = self._budget(request, talk.counted(digest), outside)
        return {
            "budget": budget,
            "model": request.model,
            "provider": request.dialect.provider,
        }, digest

    def _budget(self, request: Request, counted: int | None, outside: bytes) -> Budget:
        window = self._windows.window(request.model)
        parts = WindowBudget(window=window, tool_tokens=0)
        if counted is None:
            parts.system_prompt_text = outside.decode()
        else:
            parts.system_prompt_tokens = counted
        for reserve in request.dialect.reserves:
            wanted = count(request.document.value, *reserve.split("."))
            if wanted is not None and wanted > 0 and window is not None:
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
        if not is_away(error):
            log.warning("a request goes through as it is: %s", error)
            return
        if not self.away:
            log.warning("requests go through as they are: %s", error or type(error).__name__)
        self.away = str(error) or type(error).__name__

    def _there(self) -> None:
        if self.away:
            log.warning("the service is back")
        self.away = ""


def _goes_on(talk: Talk, prepared: Prepared) -> bool:
    """Whether the session is still where the request left it."""
    assert prepared.request is not None
    if prepared.assembly is not None and talk.mirror.by_ids:
        return talk.mirror.ends_with(prepared.request.ids)
    return talk.newest is prepared.request


def _left(until: float) -> float:
    return max(until - time.monotonic(), 0.001)
