"""What every part of the engines' suite is told, and how hard it looks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from contextengine_server.engines.contract import Engine
from contextengine_server.engines.registration import Registration
from contextengine_server.testing.contexts import AIRLINE
from contextengine_server.testing.oracle.pairs import ViewRow

from .real_sessions import real_sessions

_STEADY = settings(
    deadline=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_PROFILES = {
    "explore": settings(_STEADY, derandomize=False, max_examples=2_000),
    "glance": settings(_STEADY, max_examples=25),
}


class EngineCase:
    """An engine under test."""

    registration: ClassVar[Registration]
    variants: ClassVar[Sequence[Mapping[str, Any]]] = ({},)
    """Options that it is tried with, each by the Python names; the first is what it is served
    with."""
    files: ClassVar[Sequence[Path]] = (AIRLINE,)
    """Real sessions, in formats that `contextengine import` reads."""
    search: ClassVar[settings] = _PROFILES.get(os.environ.get("HYPOTHESIS_PROFILE", ""), _STEADY)
    """How hard random sessions are looked through: the same examples in every run, unless
    HYPOTHESIS_PROFILE says `explore`; a quarter of them where it says `glance`."""

    def engines(self) -> list[Engine]:
        """The engine with each of the variants."""
        registration = self.registration
        return [registration.make(registration.options(**one)) for one in self.variants]

    def any_engine(self) -> st.SearchStrategy[Engine]:
        """One of them."""
        return st.sampled_from(self.engines())

    def sessions(self) -> Iterator[tuple[str, list[ViewRow]]]:
        """The real sessions, each with a name."""
        for file in self.files:
            for number, rows in enumerate(_read(file)):
                yield f"session {number} of {file.name}", rows


@cache
def _read(file: Path) -> list[list[ViewRow]]:
    return list(real_sessions(file))
