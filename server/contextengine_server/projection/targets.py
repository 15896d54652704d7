"""The table of targets: those of this package, to which those of installed packages are added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import anthropic, codex, gemini, openai_chat, openai_responses
from .target import Target

OWN = (
    codex.TARGET,
    openai_chat.TARGET,
    openai_responses.TARGET,
    anthropic.TARGET,
    gemini.TARGET,
)
"""The targets of this package, in the order in which they are listed."""


class Targets:
    """Targets by name and by number. Raises ValueError where two have the same."""

    def __init__(self, targets: Iterable[Target] = OWN) -> None:
        self._named: dict[str, Target] = {}
        self._numbered: dict[int, Target] = {}
        for target in targets:
            if target.name in self._named:
                raise ValueError(f"there are two targets of the name {target.name}")
            self._named[target.name] = target
            if target.number in self._numbered:
                raise ValueError(f"there are two targets of the number {target.number}")
            if target.number:
                self._numbered[target.number] = target

    def __iter__(self) -> Iterator[Target]:
        return iter(self._named.values())

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return list(self._named)

    def named(self, name: str) -> Target | None:
        """The target that is called so."""
        return self._named.get(name)

    def numbered(self, number: int) -> Target | None:
        """The target with this value in the enum ProjectionTarget."""
        return self._numbered.get(number)
