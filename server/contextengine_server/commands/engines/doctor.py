"""Doctor: what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.compaction.remake import Remake
from contextengine_server.errors import DomainError
from contextengine_server.health.checks import (
    ERROR,
    OK,
    WARNING,
    Check,
    Examine,
    integrity_checks,
)
from contextengine_server.health.integrity import MADE_AGAIN, Integrity, Issue
from contextengine_server.session.address import Address, Addresses, Ref
from contextengine_server.session.selection import Selection
from contextengine_server.session.sessions import Sessions
from contextengine_server.store.errors import StoreUnavailable

UNREADABLE = Check(
    "session.integrity.unreadable",
    ERROR,
    "rows of the session cannot be read as they are stored",
    "Restore the database from a backup, unless the checks of the store say why it cannot be read"
    " at all.",
)


class Doctor(msgspec.Struct, frozen=True):
    """Checks settings, store and engines, and the rows of a session where one is named."""

    addresses: Addresses
    sessions: Sessions
    selection: Selection
    integrity: Integrity
    remake: Remake
    examine: Examine

    async def run(
        self,
        tenant: str,
        ref: Ref | None,
        *,
        repair: bool = False,
        clear_failures: bool = False,
        operator: bool = True,
    ) -> Sequence[Check]:
        """What was found. `repair`: what follows from the messages of the session is put right.
        `clear_failures`: failures of engines are struck off once they are told. `operator`: say
        what a failing engine said as well."""
        address = await self.addresses.find(tenant, ref) if ref is not None else None
        checks = await self.examine(tenant, operator=operator)
        if clear_failures:
            self.selection.failures.clear(tenant)
            self.selection.registry.try_again()
        if address is not None:
            checks.append(await self._engine_check(address))
            checks += await self._rows_checks(address, repair=repair)
        return checks

    async def _rows_checks(self, address: Address, *, repair: bool) -> Sequence[Check]:
        """Whether the session's rows agree with each other; of a session that is not there, whether
        anything is left."""
        try:
            if await self.sessions.store.head(address.scope) is not None:
                report = await self.integrity.examine(address, mend=repair)
                again = [issue for issue in report.issues if issue.kind in MADE_AGAIN]
                if again and repair:
                    await self._make_again(address, again)
                return integrity_checks(report)
        except StoreUnavailable:
            return [UNREADABLE]
        left = await self.integrity.left_over(address.scope, mend=repair)
        return integrity_checks(left) if left.issues else []

    async def _make_again(self, address: Address, issues: Sequence[Issue]) -> None:
        """Makes summaries again that stood in for better ones, and those that quote private
        reasoning."""
        engine = (await self.selection.engine_for(address.scope)).engine
        sessions = self.sessions
        async with sessions.open(address.scope) as session, sessions.compacting(session):
            await self.remake.run(address, engine, force=True)
        left = {issue.kind for issue in (await self.integrity.examine(address)).issues}
        for issue in issues:
            issue.mended = issue.kind not in left

    async def _engine_check(self, address: Address) -> Check:
        try:
            selected = await self.selection.engine_for(address.scope)
        except DomainError as error:
            return Check(
                "session.engine", WARNING, error.text, "Assign one of the engines that exist."
            )
        return Check("session.engine", OK, f"{selected.engine.id}, chosen by {selected.source}")
