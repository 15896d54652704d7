"""ReportUsage: what the provider billed, or refused."""

from __future__ import annotations

from msgspec import Struct

from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.change import Editor, PreparedChange
from contextengine_server.session.model import Report, meter_usage, noting
from contextengine_server.session.receipt import Request
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import ModelFacts, SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.telemetry.meters import Meters


class Reported(Struct, frozen=True):
    """What became of a report."""

    model: ModelFacts
    revision: int


class ReportUsage(Struct, frozen=True):
    """Counts what was billed and learns from it; nothing of it changes an assembly before a
    compaction or UpdateModel."""

    addresses: Addresses
    sessions: Sessions
    editor: Editor
    meters: Meters

    async def run(self, tenant: str, ref: Ref, report: Report, request: Request | None) -> Reported:
        """Adds a report to the session's usage. Raises SessionNotFound."""

        def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange:
            return PreparedChange(noting(head, state, report), head)

        address = await self.addresses.find(tenant, ref)
        async with self.sessions.open(address.scope, lock=True) as session:
            session.require()
            done = await self.editor.change(session, address, edit, request=request)
            if not done.repeated:
                meter_usage(self.meters, report)
            return Reported(session.state.model, done.revision)
