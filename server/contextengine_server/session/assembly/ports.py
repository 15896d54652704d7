"""What an assembler asks of those who look after the usage of model calls."""

from __future__ import annotations

from typing import Protocol

from contextengine_server.session.assembly.assembly import Allowance, AssembleCall
from contextengine_server.session.session import Session


class Guard(Protocol):
    """Watches over what agents spend."""

    @property
    def engines(self) -> frozenset[str]:
        """Whose sessions it watches over."""

    async def admit(
        self, call: AssembleCall, session: Session, allowance: Allowance, *, begins: bool
    ) -> None:
        """Raises BudgetSpent where the call may not be made."""


class DefinitionFilter(Protocol):
    """Decides which definitions of tools are shown."""

    engines: frozenset[str]
    """Those that show not all."""

    async def apply(self, call: AssembleCall, session: Session) -> AssembleCall:
        """The call with the definitions that are shown."""
