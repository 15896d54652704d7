"""Whose rows these are: the one key that every read and write is made under."""

from __future__ import annotations

from typing import NamedTuple


class Scope(NamedTuple):
    """(tenant, agent, session). The tenant comes from the caller's credentials, never from a
    request (law 8)."""

    tenant: str
    agent: str
    session: str

    @property
    def complete(self) -> bool:
        """True where all three are named. An incomplete scope reads nothing."""
        return bool(self.tenant and self.agent and self.session)
