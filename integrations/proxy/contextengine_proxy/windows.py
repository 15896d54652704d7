"""How large a model's window is, as far as who runs the proxy says. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows by patterns of models' names; the first that fits counts."""

    patterns: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, given: Iterable[str]) -> Windows:
        """From `MODEL=TOKENS`, or `TOKENS` for every model. Raises ValueError."""
        patterns = []
        for one in given:
            model, _, tokens = one.rpartition("=")
            if not tokens.isdecimal() or int(tokens) < 1:
                raise ValueError(
                    f"{one!r}: MODEL=TOKENS or TOKENS is needed, such as gpt-5*=400000"
                )
            patterns.append((model or "*", int(tokens)))
        return cls(tuple(patterns))

    def window(self, model: str) -> int | None:
        """The window in tokens. None: the service decides."""
        return next((size for name, size in self.patterns if fnmatchcase(model, name)), None)
