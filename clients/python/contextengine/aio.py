"""The asyncio client. `client` is the same for threads, generated from this module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

from . import calls, fields
from . import types as t
from .aio_runtime import AsyncRuntime
from .aio_session import AsyncSession
from .aio_transport import AsyncConnection, AsyncStream
from .refs import session_ref
from .requests import import_requests


class AsyncClient(AsyncConnection):
    """A client of one contextengine server. Close it, or use it in `async with`.

    It belongs to the event loop of its first call.

    The rpcs of the service ContextEngine are its methods; those of the other services are in
    `sessions`, `engines`, `recall`, `projection` and `runtime`. Every method takes `timeout=` in
    seconds and raises ContextEngineError.
    """

    @property
    def sessions(self) -> AsyncSessions:
        """Listing, moving, erasing and watching sessions."""
        return AsyncSessions(self)

    @property
    def engines(self) -> AsyncEngines:
        """The engines that the server hosts."""
        return AsyncEngines(self)

    @property
    def recall(self) -> AsyncRecall:
        """Finding and bringing back what an assembly does not show."""
        return AsyncRecall(self)

    @property
    def projection(self) -> AsyncProjection:
        """Rendering contexts for harnesses and providers."""
        return AsyncProjection(self)

    @property
    def runtime(self) -> AsyncRuntime:
        """Lending a model to the server."""
        return AsyncRuntime(self)

    def session(
        self, *, agent_id: str, session_id: str = "", session_key: str = ""
    ) -> AsyncSession:
        """A handle on one session, which need not exist yet. Nothing is sent. One of id and key is
        required."""
        return AsyncSession(self, session_ref(agent_id, session_id, session_key))

    async def bootstrap(
        self, session: t.SessionRef, **more: Unpack[fields.Bootstrap]
    ) -> t.BootstrapResponse:
        """Introduces a host and a session to each other. Optional."""
        return await self.unary(calls.BOOTSTRAP, session=session, **more)

    async def ingest(
        self, session: t.SessionRef, message: t.Message, **more: Unpack[fields.Write]
    ) -> t.IngestResponse:
        """Stores one message durably. The same id with other content is MessageConflict."""
        return await self.unary(calls.INGEST, session=session, message=message, **more)

    async def ingest_batch(
        self, session: t.SessionRef, messages: Sequence[t.Message], **more: Unpack[fields.Write]
    ) -> t.IngestBatchResponse:
        """Stores messages durably, all or none."""
        return await self.unary(calls.INGEST_BATCH, session=session, messages=messages, **more)

    async def assemble(
        self, session: t.SessionRef, **more: Unpack[fields.AssembleKnowing]
    ) -> t.AssembleResponse:
        """Answers the context for one model call, as a delta where `known_context_hash` says what
        is held.

        A session handle does that by itself: see `AsyncSession.assemble`.
        """
        return await self.unary(calls.ASSEMBLE, session=session, **more)

    async def compact(
        self, session: t.SessionRef, **more: Unpack[fields.Compact]
    ) -> t.CompactResponse:
        """Compacts the stored view, or proposes to."""
        return await self.unary(calls.COMPACT, session=session, **more)

    async def commit_compaction(
        self,
        session: t.SessionRef,
        proposal_id: str,
        accept: bool,
        **more: Unpack[fields.CommitCompaction],
    ) -> t.CommitCompactionResponse:
        """Takes or refuses what `compact(propose_only=True)` proposed."""
        return await self.unary(
            calls.COMMIT_COMPACTION, session=session, proposal_id=proposal_id, accept=accept, **more
        )

    async def after_turn(
        self,
        session: t.SessionRef,
        messages: Sequence[t.Message] = (),
        **more: Unpack[fields.AfterTurn],
    ) -> t.AfterTurnResponse:
        """Says that a turn is over and hands over what it added. Conflicts are listed and stop
        nothing."""
        return await self.unary(calls.AFTER_TURN, session=session, messages=messages, **more)

    async def record_host_change(
        self, session: t.SessionRef, **more: Unpack[fields.RecordHostChange]
    ) -> t.RecordHostChangeResponse:
        """Says what the harness did to its own transcript. Exactly one of the changes."""
        return await self.unary(calls.RECORD_HOST_CHANGE, session=session, **more)

    async def maintain(
        self, session: t.SessionRef, **more: Unpack[fields.Maintain]
    ) -> t.MaintainResponse:
        """Answers the transcript rewrites that the engine would like the harness to make."""
        return await self.unary(calls.MAINTAIN, session=session, **more)

    async def report_usage(
        self, session: t.SessionRef, **more: Unpack[fields.ReportUsage]
    ) -> t.ReportUsageResponse:
        """Says what the provider billed for an assembly, or that it refused one for its length."""
        return await self.unary(calls.REPORT_USAGE, session=session, **more)

    async def should_compact(
        self, session: t.SessionRef, **more: Unpack[fields.ShouldCompact]
    ) -> t.ShouldCompactResponse:
        """Answers whether a compaction is due."""
        return await self.unary(calls.SHOULD_COMPACT, session=session, **more)

    async def update_model(
        self, session: t.SessionRef, **more: Unpack[fields.UpdateModel]
    ) -> t.UpdateModelResponse:
        """Sets the session's model, its window and its factor."""
        return await self.unary(calls.UPDATE_MODEL, session=session, **more)

    async def get_status(
        self, session: t.SessionRef, **more: Unpack[fields.Status]
    ) -> t.GetStatusResponse:
        """Answers how a session is: counts, tokens, engine, jobs, usage."""
        return await self.unary(calls.GET_STATUS, session=session, **more)

    async def list_tools(
        self, session: t.SessionRef, **more: Unpack[fields.Call]
    ) -> t.ListToolsResponse:
        """Answers the tools that the session's engine offers to the model."""
        return await self.unary(calls.LIST_TOOLS, session=session, **more)

    async def call_tool(
        self, session: t.SessionRef, name: str, **more: Unpack[fields.CallTool]
    ) -> t.CallToolResponse:
        """Runs such a tool. Bad arguments and unknown tools answer a JSON error. Sent once."""
        return await self.unary(calls.CALL_TOOL, session=session, name=name, **more)

    async def prepare_subagent_spawn(
        self, parent: t.SessionRef, child: t.SessionRef, **more: Unpack[fields.PrepareSubagentSpawn]
    ) -> t.PrepareSubagentSpawnResponse:
        """Prepares the context of a child before it starts."""
        return await self.unary(calls.PREPARE_SUBAGENT_SPAWN, parent=parent, child=child, **more)

    async def rollback_subagent_spawn(
        self, spawn_token: str, parent: t.SessionRef, **more: Unpack[fields.Call]
    ) -> t.RollbackSubagentSpawnResponse:
        """Takes a preparation back. Safe twice and after expiry."""
        return await self.unary(
            calls.ROLLBACK_SUBAGENT_SPAWN, spawn_token=spawn_token, parent=parent, **more
        )

    async def end_subagent(
        self, child: t.SessionRef, **more: Unpack[fields.EndSubagent]
    ) -> t.EndSubagentResponse:
        """Says that a child ended. An unknown child is no error."""
        return await self.unary(calls.END_SUBAGENT, child=child, **more)

    async def reset_session(
        self, session: t.SessionRef, **more: Unpack[fields.Guarded]
    ) -> t.ResetSessionResponse:
        """Empties a session's view. Rows stay."""
        return await self.unary(calls.RESET_SESSION, session=session, **more)

    async def end_session(
        self, session: t.SessionRef, **more: Unpack[fields.EndSession]
    ) -> t.EndSessionResponse:
        """Ends a conversation for now. A later write opens it again."""
        return await self.unary(calls.END_SESSION, session=session, **more)

    async def dispose_session(
        self, session: t.SessionRef, **more: Unpack[fields.Call]
    ) -> t.DisposeSessionResponse:
        """Frees what the server holds in memory for a session."""
        return await self.unary(calls.DISPOSE_SESSION, session=session, **more)


class _Service:
    """The rpcs of one service."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection


class AsyncSessions(_Service):
    """The sessions of the caller's tenant."""

    async def list(self, **more: Unpack[fields.SessionsList]) -> t.SessionsListResponse:
        """Lists a page of sessions, newest write first."""
        return await self._connection.unary(calls.SESSIONS_LIST, **more)

    async def get(
        self, session: t.SessionRef, **more: Unpack[fields.Call]
    ) -> t.SessionsGetResponse:
        """Answers one session."""
        return await self._connection.unary(calls.SESSIONS_GET, session=session, **more)

    async def import_session(
        self, session: t.SessionRef, messages: Iterable[t.Message], **more: Unpack[fields.Import]
    ) -> t.ImportResponse:
        """Stores a whole session, all or none. Messages keep the ids they have; the very same again
        is no error."""
        timeout = more.pop("timeout", None)
        return await self._connection.stream_unary(
            calls.IMPORT, import_requests(session, messages, more), timeout
        )

    def export(
        self, session: t.SessionRef, **more: Unpack[fields.Export]
    ) -> AsyncStream[t.ExportResponse]:
        """Streams a session's rows as they are stored: the session, its messages in order, its
        summaries."""
        return self._connection.unary_stream(calls.EXPORT, session=session, **more)

    async def delete(
        self, session: t.SessionRef | None = None, **more: Unpack[fields.Delete]
    ) -> t.DeleteResponse:
        """Erases a session and everything derived from it, or for an operator, with `everything_of`
        in its place, a part of an agent or tenant. This cannot be undone."""
        return await self._connection.unary(calls.DELETE, session=session, **more)

    def watch(self, **more: Unpack[fields.Watch]) -> AsyncStream[t.WatchResponse]:
        """Streams what happens to sessions, from now or from a resume position."""
        return self._connection.unary_stream(calls.WATCH, **more)


class AsyncEngines(_Service):
    """The engines that the server hosts."""

    async def list(self, **more: Unpack[fields.Call]) -> t.EnginesListResponse:
        """Lists the engines, the default first."""
        return await self._connection.unary(calls.ENGINES_LIST, **more)

    async def get(self, **more: Unpack[fields.EnginesGet]) -> t.EnginesGetResponse:
        """Answers one engine with its options, by its id or for a session."""
        return await self._connection.unary(calls.ENGINES_GET, **more)

    async def doctor(self, **more: Unpack[fields.Doctor]) -> t.DoctorResponse:
        """Checks settings, store, engines and limits, and says what to do about what is wrong."""
        return await self._connection.unary(calls.DOCTOR, **more)

    async def assign(self, **more: Unpack[fields.Assign]) -> t.AssignResponse:
        """Chooses an engine or an option for a tenant, an agent or a session. Operators only."""
        return await self._connection.unary(calls.ASSIGN, **more)

    async def list_quotas(self, **more: Unpack[fields.ListQuotas]) -> t.ListQuotasResponse:
        """Lists what tenants may hold of the server at once, and what they hold. Operators only."""
        return await self._connection.unary(calls.LIST_QUOTAS, **more)

    async def set_quota(self, tenant: str, **more: Unpack[fields.SetQuota]) -> t.SetQuotaResponse:
        """Stores a quota of a tenant, or removes it. The server's owner only."""
        return await self._connection.unary(calls.SET_QUOTA, tenant=tenant, **more)


class AsyncRecall(_Service):
    """Finds and brings back what an assembly does not show."""

    async def search(
        self, session: t.SessionRef, query: str, **more: Unpack[fields.Search]
    ) -> t.SearchResponse:
        """Searches messages, summaries or memory, by words or by a regular expression."""
        return await self._connection.unary(calls.SEARCH, session=session, query=query, **more)

    async def inspect(
        self, session: t.SessionRef, summary_id: str, **more: Unpack[fields.Spawned]
    ) -> t.InspectResponse:
        """Answers what a summary covers."""
        return await self._connection.unary(
            calls.INSPECT, session=session, summary_id=summary_id, **more
        )

    async def expand(
        self, session: t.SessionRef, **more: Unpack[fields.Expand]
    ) -> t.ExpandResponse:
        """Brings back summaries and messages under a summary, or a range of messages."""
        return await self._connection.unary(calls.EXPAND, session=session, **more)


class AsyncProjection(_Service):
    """Renders contexts for harnesses and providers."""

    async def project(
        self, options: t.ProjectionOptions, **more: Unpack[fields.Project]
    ) -> t.ProjectResponse:
        """Projects a session, or a list, into a target's form. Writes nothing."""
        return await self._connection.unary(calls.PROJECT, options=options, **more)
