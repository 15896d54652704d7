# Generated from aio.py by `make sync`. Change that module instead.
"""The blocking client. `aio` is the same for asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

from . import calls, fields
from . import types as t
from .refs import session_ref
from .requests import import_requests
from .runtime import Runtime
from .session import Session
from .transport import BlockingConnection, Stream


class Client(BlockingConnection):
    """A client of one contextengine server. Close it, or use it in `with`.

    Safe to share between threads.

    The rpcs of the service ContextEngine are its methods; those of the other services are in
    `sessions`, `engines`, `recall`, `projection` and `runtime`. Every method takes `timeout=` in
    seconds and raises ContextEngineError.
    """

    @property
    def sessions(self) -> Sessions:
        """Listing, moving, erasing and watching sessions."""
        return Sessions(self)

    @property
    def engines(self) -> Engines:
        """The engines that the server hosts."""
        return Engines(self)

    @property
    def recall(self) -> Recall:
        """Finding and bringing back what an assembly does not show."""
        return Recall(self)

    @property
    def projection(self) -> Projection:
        """Rendering contexts for harnesses and providers."""
        return Projection(self)

    @property
    def runtime(self) -> Runtime:
        """Lending a model to the server."""
        return Runtime(self)

    def session(self, *, agent_id: str, session_id: str = "", session_key: str = "") -> Session:
        """A handle on one session, which need not exist yet. Nothing is sent. One of id and key is
        required."""
        return Session(self, session_ref(agent_id, session_id, session_key))

    def bootstrap(
        self, session: t.SessionRef, **more: Unpack[fields.Bootstrap]
    ) -> t.BootstrapResponse:
        """Introduces a host and a session to each other. Optional."""
        return self.unary(calls.BOOTSTRAP, session=session, **more)

    def ingest(
        self, session: t.SessionRef, message: t.Message, **more: Unpack[fields.Write]
    ) -> t.IngestResponse:
        """Stores one message durably. The same id with other content is MessageConflict."""
        return self.unary(calls.INGEST, session=session, message=message, **more)

    def ingest_batch(
        self, session: t.SessionRef, messages: Sequence[t.Message], **more: Unpack[fields.Write]
    ) -> t.IngestBatchResponse:
        """Stores messages durably, all or none."""
        return self.unary(calls.INGEST_BATCH, session=session, messages=messages, **more)

    def assemble(
        self, session: t.SessionRef, **more: Unpack[fields.AssembleKnowing]
    ) -> t.AssembleResponse:
        """Answers the context for one model call, as a delta where `known_context_hash` says what
        is held.

        A session handle does that by itself: see `Session.assemble`.
        """
        return self.unary(calls.ASSEMBLE, session=session, **more)

    def compact(self, session: t.SessionRef, **more: Unpack[fields.Compact]) -> t.CompactResponse:
        """Compacts the stored view, or proposes to."""
        return self.unary(calls.COMPACT, session=session, **more)

    def commit_compaction(
        self,
        session: t.SessionRef,
        proposal_id: str,
        accept: bool,
        **more: Unpack[fields.CommitCompaction],
    ) -> t.CommitCompactionResponse:
        """Takes or refuses what `compact(propose_only=True)` proposed."""
        return self.unary(
            calls.COMMIT_COMPACTION, session=session, proposal_id=proposal_id, accept=accept, **more
        )

    def after_turn(
        self,
        session: t.SessionRef,
        messages: Sequence[t.Message] = (),
        **more: Unpack[fields.AfterTurn],
    ) -> t.AfterTurnResponse:
        """Says that a turn is over and hands over what it added. Conflicts are listed and stop
        nothing."""
        return self.unary(calls.AFTER_TURN, session=session, messages=messages, **more)

    def record_host_change(
        self, session: t.SessionRef, **more: Unpack[fields.RecordHostChange]
    ) -> t.RecordHostChangeResponse:
        """Says what the harness did to its own transcript. Exactly one of the changes."""
        return self.unary(calls.RECORD_HOST_CHANGE, session=session, **more)

    def maintain(
        self, session: t.SessionRef, **more: Unpack[fields.Maintain]
    ) -> t.MaintainResponse:
        """Answers the transcript rewrites that the engine would like the harness to make."""
        return self.unary(calls.MAINTAIN, session=session, **more)

    def report_usage(
        self, session: t.SessionRef, **more: Unpack[fields.ReportUsage]
    ) -> t.ReportUsageResponse:
        """Says what the provider billed for an assembly, or that it refused one for its length."""
        return self.unary(calls.REPORT_USAGE, session=session, **more)

    def should_compact(
        self, session: t.SessionRef, **more: Unpack[fields.ShouldCompact]
    ) -> t.ShouldCompactResponse:
        """Answers whether a compaction is due."""
        return self.unary(calls.SHOULD_COMPACT, session=session, **more)

    def update_model(
        self, session: t.SessionRef, **more: Unpack[fields.UpdateModel]
    ) -> t.UpdateModelResponse:
        """Sets the session's model, its window and its factor."""
        return self.unary(calls.UPDATE_MODEL, session=session, **more)

    def get_status(
        self, session: t.SessionRef, **more: Unpack[fields.Status]
    ) -> t.GetStatusResponse:
        """Answers how a session is: counts, tokens, engine, jobs, usage."""
        return self.unary(calls.GET_STATUS, session=session, **more)

    def list_tools(self, session: t.SessionRef, **more: Unpack[fields.Call]) -> t.ListToolsResponse:
        """Answers the tools that the session's engine offers to the model."""
        return self.unary(calls.LIST_TOOLS, session=session, **more)

    def call_tool(
        self, session: t.SessionRef, name: str, **more: Unpack[fields.CallTool]
    ) -> t.CallToolResponse:
        """Runs such a tool. Bad arguments and unknown tools answer a JSON error. Sent once."""
        return self.unary(calls.CALL_TOOL, session=session, name=name, **more)

    def prepare_subagent_spawn(
        self, parent: t.SessionRef, child: t.SessionRef, **more: Unpack[fields.PrepareSubagentSpawn]
    ) -> t.PrepareSubagentSpawnResponse:
        """Prepares the context of a child before it starts."""
        return self.unary(calls.PREPARE_SUBAGENT_SPAWN, parent=parent, child=child, **more)

    def rollback_subagent_spawn(
        self, spawn_token: str, parent: t.SessionRef, **more: Unpack[fields.Call]
    ) -> t.RollbackSubagentSpawnResponse:
        """Takes a preparation back. Safe twice and after expiry."""
        return self.unary(
            calls.ROLLBACK_SUBAGENT_SPAWN, spawn_token=spawn_token, parent=parent, **more
        )

    def end_subagent(
        self, child: t.SessionRef, **more: Unpack[fields.EndSubagent]
    ) -> t.EndSubagentResponse:
        """Says that a child ended. An unknown child is no error."""
        return self.unary(calls.END_SUBAGENT, child=child, **more)

    def reset_session(
        self, session: t.SessionRef, **more: Unpack[fields.Guarded]
    ) -> t.ResetSessionResponse:
        """Empties a session's view. Rows stay."""
        return self.unary(calls.RESET_SESSION, session=session, **more)

    def end_session(
        self, session: t.SessionRef, **more: Unpack[fields.EndSession]
    ) -> t.EndSessionResponse:
        """Ends a conversation for now. A later write opens it again."""
        return self.unary(calls.END_SESSION, session=session, **more)

    def dispose_session(
        self, session: t.SessionRef, **more: Unpack[fields.Call]
    ) -> t.DisposeSessionResponse:
        """Frees what the server holds in memory for a session."""
        return self.unary(calls.DISPOSE_SESSION, session=session, **more)


class _Service:
    """The rpcs of one service."""

    def __init__(self, connection: BlockingConnection) -> None:
        self._connection = connection


class Sessions(_Service):
    """The sessions of the caller's tenant."""

    def list(self, **more: Unpack[fields.SessionsList]) -> t.SessionsListResponse:
        """Lists a page of sessions, newest write first."""
        return self._connection.unary(calls.SESSIONS_LIST, **more)

    def get(self, session: t.SessionRef, **more: Unpack[fields.Call]) -> t.SessionsGetResponse:
        """Answers one session."""
        return self._connection.unary(calls.SESSIONS_GET, session=session, **more)

    def import_session(
        self, session: t.SessionRef, messages: Iterable[t.Message], **more: Unpack[fields.Import]
    ) -> t.ImportResponse:
        """Stores a whole session, all or none. Messages keep the ids they have; the very same again
        is no error."""
        timeout = more.pop("timeout", None)
        return self._connection.stream_unary(
            calls.IMPORT, import_requests(session, messages, more), timeout
        )

    def export(
        self, session: t.SessionRef, **more: Unpack[fields.Export]
    ) -> Stream[t.ExportResponse]:
        """Streams a session's rows as they are stored: the session, its messages in order, its
        summaries."""
        return self._connection.unary_stream(calls.EXPORT, session=session, **more)

    def delete(
        self, session: t.SessionRef | None = None, **more: Unpack[fields.Delete]
    ) -> t.DeleteResponse:
        """Erases a session and everything derived from it, or for an operator, with `everything_of`
        in its place, a part of an agent or tenant. This cannot be undone."""
        return self._connection.unary(calls.DELETE, session=session, **more)

    def watch(self, **more: Unpack[fields.Watch]) -> Stream[t.WatchResponse]:
        """Streams what happens to sessions, from now or from a resume position."""
        return self._connection.unary_stream(calls.WATCH, **more)


class Engines(_Service):
    """The engines that the server hosts."""

    def list(self, **more: Unpack[fields.Call]) -> t.EnginesListResponse:
        """Lists the engines, the default first."""
        return self._connection.unary(calls.ENGINES_LIST, **more)

    def get(self, **more: Unpack[fields.EnginesGet]) -> t.EnginesGetResponse:
        """Answers one engine with its options, by its id or for a session."""
        return self._connection.unary(calls.ENGINES_GET, **more)

    def doctor(self, **more: Unpack[fields.Doctor]) -> t.DoctorResponse:
        """Checks settings, store, engines and limits, and says what to do about what is wrong."""
        return self._connection.unary(calls.DOCTOR, **more)

    def assign(self, **more: Unpack[fields.Assign]) -> t.AssignResponse:
        """Chooses an engine or an option for a tenant, an agent or a session. Operators only."""
        return self._connection.unary(calls.ASSIGN, **more)

    def list_quotas(self, **more: Unpack[fields.ListQuotas]) -> t.ListQuotasResponse:
        """Lists what tenants may hold of the server at once, and what they hold. Operators only."""
        return self._connection.unary(calls.LIST_QUOTAS, **more)

    def set_quota(self, tenant: str, **more: Unpack[fields.SetQuota]) -> t.SetQuotaResponse:
        """Stores a quota of a tenant, or removes it. The server's owner only."""
        return self._connection.unary(calls.SET_QUOTA, tenant=tenant, **more)


class Recall(_Service):
    """Finds and brings back what an assembly does not show."""

    def search(
        self, session: t.SessionRef, query: str, **more: Unpack[fields.Search]
    ) -> t.SearchResponse:
        """Searches messages, summaries or memory, by words or by a regular expression."""
        return self._connection.unary(calls.SEARCH, session=session, query=query, **more)

    def inspect(
        self, session: t.SessionRef, summary_id: str, **more: Unpack[fields.Spawned]
    ) -> t.InspectResponse:
        """Answers what a summary covers."""
        return self._connection.unary(calls.INSPECT, session=session, summary_id=summary_id, **more)

    def expand(self, session: t.SessionRef, **more: Unpack[fields.Expand]) -> t.ExpandResponse:
        """Brings back summaries and messages under a summary, or a range of messages."""
        return self._connection.unary(calls.EXPAND, session=session, **more)


class Projection(_Service):
    """Renders contexts for harnesses and providers."""

    def project(
        self, options: t.ProjectionOptions, **more: Unpack[fields.Project]
    ) -> t.ProjectResponse:
        """Projects a session, or a list, into a target's form. Writes nothing."""
        return self._connection.unary(calls.PROJECT, options=options, **more)
