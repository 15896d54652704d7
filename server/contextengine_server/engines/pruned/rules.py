"""What session pruning keeps to. Names and defaults are OpenClaw's `agents.defaults.contextPruning`
(src/agents/pi-extensions/context-pruning/settings.ts)."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

CLEARED = "[Old tool result content cleared]"
"""What stands in place of a result that is cleared, where an operator says nothing else."""


class PruningRules(msgspec.Struct, frozen=True):
    """When old results of tools are shown in short, and how."""

    on: bool = False
    """False: pictures alone."""
    ttl_ms: int = 300_000
    """How long a provider's cache lasts after the model has spoken."""
    keep_last_assistants: int = 3
    """From so many of the newest messages of the model on nothing is shown in short."""
    soft_trim_ratio: float = 0.3
    """The share of the budget from which on long results are trimmed."""
    hard_clear_ratio: float = 0.5
    """The share from which on results are cleared, until it is less."""
    min_prunable_chars: int = 50_000
    """The characters that may be shown in short, below which nothing is cleared."""
    max_chars: int = 4_000
    """A result that says more is trimmed."""
    head_chars: int = 1_500
    tail_chars: int = 1_500
    clears: bool = True
    placeholder: str = CLEARED
    allow: tuple[str, ...] = ()
    """The tools whose results are shown in short, as globs; none: those of all tools."""
    deny: tuple[str, ...] = ()
    """The tools whose results never are, whatever `allow` says."""

    picture_turns: int = 0
    """For so many of the newest turns that the model has answered pictures stay; 0: for good."""

    @property
    def any(self) -> bool:
        """True where there is anything that may be shown in short."""
        return self.on or self.picture_turns > 0

    def prunes(self, tool: str) -> bool:
        """True for a tool whose results may be shown in short."""
        name = tool.strip().lower()
        return not _named(name, self.deny) and (not self.allow or _named(name, self.allow))


def _named(tool: str, globs: tuple[str, ...]) -> bool:
    return any(_pattern(glob).fullmatch(tool) for glob in globs)


@lru_cache(maxsize=256)
def _pattern(glob: str) -> re.Pattern[str]:
    """`*` stands for any characters; case is not looked at."""
    pieces = glob.strip().lower().split("*")
    return re.compile(".*".join(map(re.escape, pieces)), re.DOTALL)
