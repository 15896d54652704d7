# Generated from aio_session.py by `make sync`. Change that module instead.
"""A handle on one session, blocking. `aio_session` is the same for asyncio."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from google.protobuf.message import Message as ProtoMessage

from . import calls, fields
from . import types as t
from .attempts import Attempts
from .calls import Call
from .deltas import Assembly
from .errors import ContextEngineError, DeadlinePassed
from .outage import Keeper, Writing, as_after_turn, new_messages, projected
from .overflow import MOST_TEXT, TIMEOUT, smaller
from .refs import watchable
from .requests import build, named
from .transport import Stream

if TYPE_CHECKING:
    from .client import Client

Request = TypeVar("Request", bound=ProtoMessage)
Response = TypeVar("Response", bound=ProtoMessage)


class Session:
    """One session of an agent. Remembers its last assembly, so that replies carry only what is new.

    While the service is away `assemble` answers a context made by the client, marked `degraded`;
    what is written waits and is sent before the next call; `ingest`, `ingest_batch`, `after_turn`
    and `report_usage` then answer an empty reply. A client with `fallback=False` raises instead.
    Each of these calls may choose for itself: `fallback=True` bears it, `fallback=False` raises.
    """

    def __init__(self, client: Client, ref: t.SessionRef) -> None:
        self._client = client
        self.ref = ref
        """What names the session in every call."""
        self._keeper = Keeper(client.queue)

    @property
    def pending(self) -> int:
        """How many messages of the session wait for the service to come back."""
        return self._client.pending(self.ref)

    def flush(self, *, timeout: float | None = None) -> None:
        """Sends what waits. Raises ContextEngineError where the service is away."""
        self._client.flush(self.ref, timeout=timeout)

    def bootstrap(self, **more: Unpack[fields.Bootstrap]) -> t.BootstrapResponse:
        """Introduces a host and the session to each other. Optional."""
        return self._client.bootstrap(self.ref, **more)

    def ingest(
        self, message: t.Message, *, fallback: bool | None = None, **more: Unpack[fields.Write]
    ) -> t.IngestResponse:
        """Stores one message durably. The same id with other content is MessageConflict."""
        return self._write(calls.INGEST, {"message": message, **more}, fallback)

    def ingest_batch(
        self,
        messages: Sequence[t.Message],
        *,
        fallback: bool | None = None,
        **more: Unpack[fields.Write],
    ) -> t.IngestBatchResponse:
        """Stores messages durably, all or none."""
        return self._write(calls.INGEST_BATCH, {"messages": messages, **more}, fallback)

    def assemble(
        self,
        *,
        delta: bool = True,
        fallback: bool | None = None,
        host_messages: Sequence[t.Message] | None = None,
        **more: Unpack[fields.Assemble],
    ) -> Assembly:
        """Answers the whole context for one model call. Stores `ingest` first.

        What the handle holds of its last assembly is not sent again; `delta=False` asks for
        everything. Raises DeltaMismatch where the reply does not fit what is held; the next call
        then gets everything.

        host_messages: the host's own list, for the degraded case alone: while the service is away
        the context is made of it, so that a handle that has seen nothing yet does not answer an
        empty one. It is not sent.
        """
        _, assembly = self._assemble(delta, dict(more), fallback, host_messages)
        return assembly

    def project_codex(
        self, options: t.ProjectionOptions | None = None, **more: Unpack[fields.Assemble]
    ) -> t.ProjectResponse:
        """Assembles and projects for Codex in one call. Give the turn's `prompt`.

        options: the binding of the last projection, with the native thread in it, and what else
        differs from the defaults; `target` need not be set. Store the `binding` of the answer with
        the thread.
        """
        asked = t.ProjectionOptions(target=t.PROJECTION_TARGET_CODEX)
        asked.MergeFrom(options or t.ProjectionOptions())
        request, assembly = self._assemble(True, {**more, "projection": asked}, None, None)
        return projected(request, assembly)

    def after_turn(
        self,
        messages: Sequence[t.Message] = (),
        *,
        fallback: bool | None = None,
        **more: Unpack[fields.AfterTurn],
    ) -> t.AfterTurnResponse:
        """Says that a turn is over and hands over what it added. Conflicts are listed and stop
        nothing."""
        return self._write(calls.AFTER_TURN, {"messages": messages, **more}, fallback)

    def compact(self, **more: Unpack[fields.Compact]) -> t.CompactResponse:
        """Compacts the stored view, or proposes to."""
        return self._behind(calls.COMPACT, dict(more))

    def should_compact(self, **more: Unpack[fields.ShouldCompact]) -> t.ShouldCompactResponse:
        """Answers whether a compaction is due."""
        return self._client.should_compact(self.ref, **more)

    def commit_compaction(
        self, proposal_id: str, accept: bool, **more: Unpack[fields.CommitCompaction]
    ) -> t.CommitCompactionResponse:
        """Takes or refuses what `compact(propose_only=True)` proposed."""
        return self._client.commit_compaction(self.ref, proposal_id, accept, **more)

    def maintain(self, **more: Unpack[fields.Maintain]) -> t.MaintainResponse:
        """Answers the transcript rewrites that the engine would like; with `lend`, jobs for a model
        that the host can lend only now, whose results go into `completions` of the next call."""
        return self._client.maintain(self.ref, **more)

    def record_rewind(
        self, after_sequence: int, **more: Unpack[fields.Recorded]
    ) -> t.RecordHostChangeResponse:
        """Says that the harness went back: what follows `after_sequence` leaves the view. 0:
        everything."""
        rewind = t.RecordHostChangeRequest.Rewind(after_sequence=after_sequence)
        return self._changed(calls.RECORD_HOST_CHANGE, {"rewind": rewind, **more})

    def record_rewind_to(
        self, message_id: str, **more: Unpack[fields.Recorded]
    ) -> t.RecordHostChangeResponse:
        """Says that the harness went back: what follows the message with this host id leaves the
        view."""
        rewind = t.RecordHostChangeRequest.Rewind(after_message_id=named(message_id))
        return self._changed(calls.RECORD_HOST_CHANGE, {"rewind": rewind, **more})

    def record_compaction(
        self, first_sequence: int, last_sequence: int, summary: str, **more: Unpack[fields.Recorded]
    ) -> t.RecordHostChangeResponse:
        """Says that the harness compacted its transcript: the range is shown as `summary` from now
        on."""
        compacted = t.RecordHostChangeRequest.HostCompaction(
            first_sequence=first_sequence, last_sequence=last_sequence, summary=summary
        )
        return self._changed(calls.RECORD_HOST_CHANGE, {"compacted": compacted, **more})

    def record_compaction_before(
        self, first_kept_message_id: str, summary: str, **more: Unpack[fields.Recorded]
    ) -> t.RecordHostChangeResponse:
        """Says that the harness compacted its transcript up to the message that it keeps first:
        what stands before that one is shown as `summary` from now on."""
        compacted = t.RecordHostChangeRequest.HostCompaction(
            first_kept_message_id=named(first_kept_message_id), summary=summary
        )
        return self._changed(calls.RECORD_HOST_CHANGE, {"compacted": compacted, **more})

    def record_native_compaction(
        self, thread_id: str = "", **more: Unpack[fields.Recorded]
    ) -> t.RecordHostChangeResponse:
        """Says that the harness's runtime compacted its native thread. Empty `thread_id`: the bound
        one."""
        native = t.RecordHostChangeRequest.NativeCompaction(thread_id=thread_id)
        return self._changed(calls.RECORD_HOST_CHANGE, {"native_compacted": native, **more})

    def report_usage(
        self, *, fallback: bool | None = None, **more: Unpack[fields.ReportUsage]
    ) -> t.ReportUsageResponse:
        """Says what the provider billed for an assembly, or that it refused one for its length."""
        try:
            return self._behind(calls.REPORT_USAGE, dict(more))
        except ContextEngineError as error:
            self._keeper.bear(error, fallback)
            return t.ReportUsageResponse()

    def overflowed(
        self, refused: Assembly, text: str, *, budget: t.Budget | None = None
    ) -> t.Budget:
        """Says that the provider refused an assembly for its length, compacts, and answers the
        smaller budget to assemble with again.

        text: what the provider said; a limit that it names is kept to from now on. budget: what
        the refused assembly was asked for with. Takes 15 seconds at most.
        """
        attempts = Attempts(TIMEOUT, time.monotonic)
        response, less = refused.response, smaller(budget, refused.response)
        self.report_usage(
            assembly_id=response.assembly_id,
            overflow=t.ReportUsageRequest.Overflow(text=text[:MOST_TEXT]),
            fallback=False,
            timeout=attempts.timeout(),
        )
        with contextlib.suppress(DeadlinePassed):  # what fits is shown without it, too
            self.compact(
                budget=less,
                force=True,
                force_reason="overflow",
                trigger="overflow",
                timeout=attempts.timeout(),
            )
        return less

    def update_model(self, **more: Unpack[fields.UpdateModel]) -> t.UpdateModelResponse:
        """Sets the session's model, its window and its factor."""
        return self._client.update_model(self.ref, **more)

    def status(self, **more: Unpack[fields.Read]) -> t.GetStatusResponse:
        """Answers how the session is: counts, tokens, engine, jobs, usage."""
        return self._client.get_status(self.ref, **more)

    def list_tools(self, **more: Unpack[fields.Call]) -> t.ListToolsResponse:
        """Answers the tools that the session's engine offers to the model."""
        return self._client.list_tools(self.ref, **more)

    def call_tool(self, name: str, **more: Unpack[fields.CallTool]) -> t.CallToolResponse:
        """Runs such a tool. Bad arguments and unknown tools answer a JSON error. Sent once."""
        return self._client.call_tool(self.ref, name, **more)

    def prepare_subagent(
        self, child: t.SessionRef, **more: Unpack[fields.PrepareSubagentSpawn]
    ) -> t.PrepareSubagentSpawnResponse:
        """Prepares the context of a child of this session before it starts. What waits is sent
        first: a fork is to show it."""
        self._client.flush(self.ref)
        return self._client.prepare_subagent_spawn(self.ref, child, **more)

    def rollback_subagent(
        self, spawn_token: str, **more: Unpack[fields.Call]
    ) -> t.RollbackSubagentSpawnResponse:
        """Takes a preparation of this session back. Safe twice and after expiry."""
        return self._client.rollback_subagent_spawn(spawn_token, self.ref, **more)

    def end_as_subagent(self, **more: Unpack[fields.EndSubagent]) -> t.EndSubagentResponse:
        """Says that this session, a child, ended. An unknown child is no error."""
        return self._client.end_subagent(self.ref, **more)

    def reset(self, **more: Unpack[fields.Guarded]) -> t.ResetSessionResponse:
        """Empties the session's view. Rows stay."""
        return self._changed(calls.RESET_SESSION, dict(more))

    def end(self, **more: Unpack[fields.EndSession]) -> t.EndSessionResponse:
        """Ends the conversation for now. A later write opens it again."""
        return self._behind(calls.END_SESSION, dict(more))

    def dispose(self, **more: Unpack[fields.Call]) -> t.DisposeSessionResponse:
        """Frees what the server holds in memory for the session."""
        return self._client.dispose_session(self.ref, **more)

    def export(self, **more: Unpack[fields.Export]) -> Stream[t.ExportResponse]:
        """Streams the session's rows as they are stored: the session, its messages in order, its
        summaries."""
        return self._client.sessions.export(self.ref, **more)

    def delete(self, **more: Unpack[fields.Delete]) -> t.DeleteResponse:
        """Erases the session and everything derived from it, what waits to be sent included. This
        cannot be undone."""
        return self._changed(calls.DELETE, dict(more))

    def watch(self, **more: Unpack[fields.Resume]) -> Stream[t.WatchResponse]:
        """Streams what happens to the session, from now or from a resume position. Needs a
        `session_id`."""
        return self._client.sessions.watch(
            agent_id=self.ref.agent_id, session_id=watchable(self.ref), **more
        )

    def _assemble(
        self,
        delta: bool,
        more: dict[str, Any],
        fallback: bool | None,
        host_messages: Sequence[t.Message] | None,
    ) -> tuple[t.AssembleRequest, Assembly]:
        """What was asked and what came of it."""
        timeout = more.pop("timeout", None)
        request = build(t.AssembleRequest, {"session": self.ref, **more})
        held, known = self._keeper.holder.begin(delta)
        request.MergeFrom(t.AssembleRequest(**known))
        try:
            reply = self._send(calls.ASSEMBLE, request, timeout)
        except ContextEngineError as error:
            return request, self._keeper.bear_assemble(request, error, fallback, host_messages)
        return request, self._keeper.assembled(self._keeper.holder.take(held, reply))

    def _write(
        self, call: Call[Any, Response], more: dict[str, Any], fallback: bool | None
    ) -> Response:
        """Writes messages, or queues them."""
        timeout = more.pop("timeout", None)
        request: Writing = build(call.request, {"session": self.ref, **more})
        try:
            reply = self._send(call, request, timeout)
        except ContextEngineError as error:
            self._keeper.bear_write(request, error, fallback)
            return call.response()
        self._keeper.written(new_messages(as_after_turn(request)))
        return reply

    def _changed(self, call: Call[Any, Response], more: dict[str, Any]) -> Response:
        """Calls what makes the session another than the last good assembly showed."""
        reply = self._behind(call, more)
        self._keeper.forget()
        return reply

    def _behind(self, call: Call[Any, Response], more: dict[str, Any]) -> Response:
        """Calls behind what waits."""
        timeout = more.pop("timeout", None)
        return self._send(call, build(call.request, {"session": self.ref, **more}), timeout)

    def _send(
        self, call: Call[Request, Response], request: Request, timeout: float | None
    ) -> Response:
        """Sends what waits, then the request, within one deadline."""
        attempts = Attempts(self._client.timeout_of(call, timeout), time.monotonic)
        self._client.flush(self.ref, timeout=attempts.timeout())
        return self._client.send(call, request, attempts.timeout())
