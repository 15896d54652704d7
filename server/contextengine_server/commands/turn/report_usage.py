"""ReportUsage: what the provider billed, or refused."""

from __future__ import annotations

from msgspec import Struct

from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.change import Editor, PreparedChange
from contextengine_server.session.model import Report
from contextengine_server.session.receipt import Request
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import ModelFacts, SessionState
from contextengine_server.session.usage.bills import Billing
from contextengine_server.store.rows import SessionHead


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
    billing: Billing

    async def run(self, tenant: str, ref: Ref, report: Report, request: Request | None) -> Reported:
        """Adds a report to the session's usage. Raises SessionNotFound."""

        async def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange:
            charge = self.billing.charge(session.head, report)
            noted = self.billing.noting(head, state, report, charge)
            return PreparedChange(noted, head, charge=charge)

        address = await self.addresses.find(tenant, ref)
        async with self.sessions.open(address.scope, lock=True) as session:
            session.require()
            done = await self.editor.change(session, address, edit, request=request)
            if not done.repeated:
                self.billing.meter(report, done.charge)
            return Reported(session.state.model, done.revision)
