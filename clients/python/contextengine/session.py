"""A handle on one session, blocking. `aio_session` has the same for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from . import fields
from . import types as t
from .deltas import Assembly, Holder
from .refs import watchable
from .transport import Stream

if TYPE_CHECKING:
    from .client import Client


class Session:
    """One session of an agent. Remembers its last assembly, so that replies carry only what is new."""

    def __init__(self, client: Client, ref: t.SessionRef) -> None:
        self._client = client
        self.ref = ref
        """What names the session in every call."""
        self._holder = Holder()

    def bootstrap(self, **more: Unpack[fields.Bootstrap]) -> t.BootstrapResponse:
        """Introduces a host and the session to each other. Optional."""
        return self._client.bootstrap(self.ref, **more)

    def ingest(self, message: t.Message, **more: Unpack[fields.Write]) -> t.IngestResponse:
        """Stores one message durably. The same id with other content is MessageConflict."""
        return self._client.ingest(self.ref, message, **more)

    def ingest_batch(
        self, messages: Sequence[t.Message], **more: Unpack[fields.Write]
    ) -> t.IngestBatchResponse:
        """Stores messages durably, all or none."""
        return self._client.ingest_batch(self.ref, messages, **more)

    def assemble(self, *, delta: bool = True, **more: Unpack[fields.Assemble]) -> Assembly:
        """Answers the whole context for one model call. Stores `ingest` first.

        What the handle holds of its last assembly is not sent again; `delta=False` asks for everything. Raises
        DeltaMismatch where the reply does not fit what is held; the next call then gets everything.
        """
        held, known = self._holder.begin(delta)
        return self._holder.take(held, self._client.assemble(self.ref, **known, **more))

    def after_turn(
        self, messages: Sequence[t.Message] = (), **more: Unpack[fields.AfterTurn]
    ) -> t.AfterTurnResponse:
        """Says that a turn is over and hands over what it added. Conflicts are listed and stop nothing."""
        return self._client.after_turn(self.ref, messages, **more)

    def compact(self, **more: Unpack[fields.Compact]) -> t.CompactResponse:
        """Compacts the stored view, or proposes to."""
        return self._client.compact(self.ref, **more)

    def record_rewind(
        self, after_sequence: int, **more: Unpack[fields.Recorded]
    ) -> t.RecordHostChangeResponse:
        """Says that the harness went back: what follows `after_sequence` leaves the view. 0: everything."""
        rewind = t.RecordHostChangeRequest.Rewind(after_sequence=after_sequence)
        return self._client.record_host_change(self.ref, rewind=rewind, **more)

    def record_compaction(
        self, first_sequence: int, last_sequence: int, summary: str, **more: Unpack[fields.Recorded]
    ) -> t.RecordHostChangeResponse:
        """Says that the harness compacted its transcript: the range is shown as `summary` from now on."""
        compacted = t.RecordHostChangeRequest.HostCompaction(
            first_sequence=first_sequence, last_sequence=last_sequence, summary=summary
        )
        return self._client.record_host_change(self.ref, compacted=compacted, **more)

    def record_native_compaction(
        self, thread_id: str = "", **more: Unpack[fields.Recorded]
    ) -> t.RecordHostChangeResponse:
        """Says that the harness's runtime compacted its native thread. Empty `thread_id`: the bound one."""
        native = t.RecordHostChangeRequest.NativeCompaction(thread_id=thread_id)
        return self._client.record_host_change(self.ref, native_compacted=native, **more)

    def report_usage(self, **more: Unpack[fields.ReportUsage]) -> t.ReportUsageResponse:
        """Says what the provider billed for an assembly, or that it refused one for its length."""
        return self._client.report_usage(self.ref, **more)

    def update_model(self, **more: Unpack[fields.UpdateModel]) -> t.UpdateModelResponse:
        """Sets the session's model, its window and its factor."""
        return self._client.update_model(self.ref, **more)

    def status(self, **more: Unpack[fields.Read]) -> t.GetStatusResponse:
        """Answers how the session is: counts, tokens, engine, jobs, usage."""
        return self._client.get_status(self.ref, **more)

    def reset(self, **more: Unpack[fields.Guarded]) -> t.ResetSessionResponse:
        """Empties the session's view. Rows stay."""
        return self._client.reset_session(self.ref, **more)

    def end(self, **more: Unpack[fields.EndSession]) -> t.EndSessionResponse:
        """Ends the conversation for now. A later write opens it again."""
        return self._client.end_session(self.ref, **more)

    def dispose(self, **more: Unpack[fields.Call]) -> t.DisposeSessionResponse:
        """Frees what the server holds in memory for the session."""
        return self._client.dispose_session(self.ref, **more)

    def export(self, **more: Unpack[fields.Export]) -> Stream[t.ExportResponse]:
        """Streams the session's rows as they are stored: the session, its messages in order, its summaries."""
        return self._client.sessions.export(self.ref, **more)

    def delete(self, **more: Unpack[fields.Delete]) -> t.DeleteResponse:
        """Erases the session and everything derived from it. This cannot be undone."""
        return self._client.sessions.delete(self.ref, **more)

    def watch(self, **more: Unpack[fields.Resume]) -> Stream[t.WatchResponse]:
        """Streams what happens to the session, from now or from a resume position. Needs a `session_id`."""
        return self._client.sessions.watch(agent_id=self.ref.agent_id, session_id=watchable(self.ref), **more)
