"""What a session handle keeps so that a dead service does not stop its agent; shared by both
handles. No I/O but the spill file.

Which failures are borne, and what is answered then, is said in clients/README.md, sections 5 and 6.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from .deltas import Assembly, Degraded, Holder
from .errors import ContextEngineError, QueueFull, is_borne
from .fallback import make_up
from .ids import new_id
from .pending import MAX_MESSAGES, Pending
from .types import (
    AfterTurnRequest,
    AssembleRequest,
    IngestBatchRequest,
    IngestRequest,
    Message,
    ProjectionAction,
    ProjectResponse,
)

Writing = IngestRequest | IngestBatchRequest | AfterTurnRequest


class Keeper:
    """The last good assembly of a session, and what was handed over since."""

    def __init__(self, pending: Pending | None) -> None:
        """`pending`: the client's queue. None: nothing is borne."""
        self._pending = pending
        self.holder = Holder()
        self._last: Assembly | None = None
        self._later: deque[Message] = deque(maxlen=MAX_MESSAGES)

    def assembled(self, assembly: Assembly) -> Assembly:
        """Keeps a good assembly."""
        self._last = assembly
        self._later.clear()
        return assembly

    def written(self, messages: Iterable[Message]) -> None:
        """Keeps what was handed over after the last good assembly."""
        self._later.extend(messages)

    def forget(self) -> None:
        """The session is not what it was: nothing of it is shown any more unless the service says
        so."""
        self._last = None
        self._later.clear()

    def bear_assemble(
        self,
        request: AssembleRequest,
        error: ContextEngineError,
        fallback: bool | None = None,
        host_messages: Sequence[Message] | None = None,
    ) -> Assembly:
        """The context without the service, made of the host's own list where that is given. Raises
        the error where it is not borne."""
        pending = self.bear(error, fallback)
        unqueued = 0
        if request.ingest:
            entry = AfterTurnRequest(
                session=request.session,
                messages=request.ingest,
                request_id=request.request_id or new_id(),
            )
            try:
                if pending is not None:
                    pending.add(entry)
                else:
                    unqueued = len(request.ingest)
            except QueueFull:
                unqueued = len(request.ingest)
        last = self._last
        shown = request
        if host_messages is not None:
            shown = AssembleRequest()
            shown.CopyFrom(request)
            shown.ClearField("ingest")
            shown.live.messages.extend(host_messages)
        response = make_up(
            shown, last.items if last else (), last.response if last else None, tuple(self._later)
        )
        self._later.extend(request.ingest)
        degraded = Degraded(error.reason or error.code.name, error, unqueued)
        return Assembly(tuple(response.items), response, degraded)

    def bear_write(
        self, request: Writing, error: ContextEngineError, fallback: bool | None = None
    ) -> None:
        """Queues what could not be sent. Raises the error where it is not borne, and QueueFull."""
        pending = self.bear(error, fallback)
        if pending is None:
            raise error
        entry = as_after_turn(request)
        pending.add(entry)
        self._later.extend(new_messages(entry))

    def bear(self, error: ContextEngineError, fallback: bool | None = None) -> Pending | None:
        """The queue; None: the client has none. Raises the error where it is not borne.
        `fallback`: what the call wants; None: what the client does."""
        wanted = self._pending is not None if fallback is None else fallback
        if not wanted or not is_borne(error):
            raise error
        return self._pending


def as_after_turn(request: Writing) -> AfterTurnRequest:
    """The request as the queue holds it."""
    match request:
        case AfterTurnRequest():
            return request
        case IngestRequest():
            messages = [request.message]
        case _:
            messages = list(request.messages)
    return AfterTurnRequest(
        session=request.session, messages=messages, request_id=request.request_id or new_id()
    )


def new_messages(request: AfterTurnRequest) -> list[Message]:
    """The messages that the turn added."""
    return list(request.messages[max(request.pre_prompt_message_count, 0) :])


def projected(request: AssembleRequest, assembly: Assembly) -> ProjectResponse:
    """The projection that an assembly brought; without the service, what lets a bound thread go
    on."""
    if assembly.degraded is None:
        return assembly.response.projection
    options = request.projection
    bound = bool(options.binding.thread_id)
    return ProjectResponse(
        target=options.target,
        renderer=options.renderer,
        instructions=options.base_instructions,
        prompt="\n".join(part.text.text for part in request.prompt if part.HasField("text")),
        action=(
            ProjectionAction.PROJECTION_ACTION_RESUME
            if bound
            else ProjectionAction.PROJECTION_ACTION_START
        ),
        binding=options.binding if options.HasField("binding") else None,
        warnings=[
            f"degraded: {assembly.degraded.reason}, the context of the session is not in this"
            " projection"
        ],
    )
