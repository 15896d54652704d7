"""The suite that every engine passes.

    class TestMine(EngineSuite):
        registration = ENGINE

`variants` are options that it is tried with besides its defaults, `files` real sessions besides
those that come with the suite. docs/engines.md says how to write an engine.
"""

from __future__ import annotations

from .compactions import CompactionCases
from .contract import ContractCases
from .hosts import HostCases
from .laws import LawCases
from .real_cases import RealSessionCases
from .served import ServedCases
from .steadiness import SteadinessCases

__all__ = ["EngineSuite", "RealSessionCases"]


class EngineSuite(
    ContractCases,
    LawCases,
    SteadinessCases,
    CompactionCases,
    RealSessionCases,
    ServedCases,
    HostCases,
):
    """All that an engine promises: the laws, by its plans' segments and by independent oracles over
    the lists as they are sent; steadiness; compactions that end; its life behind a server, and
    what hosts rely on."""
