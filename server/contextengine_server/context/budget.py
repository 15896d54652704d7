"""The budget: available = window - system prompt - tools - output reserve - safety margin - rot
buffer.

The defaults are those of Comis (packages/agent/src/context-engine/constants.ts): output reserve
8,192, margin the larger of 5 % and 2,048, rot buffer 25 % of the window. Tokens of the window and
its parts are the model's; what an engine plans with is in the reference encoding, which the model's
factor leads to.
"""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec

DEFAULT_WINDOW = 128_000
CELLS_PER_OCTAVE = 8
GRID_SHARE = 4
"""The cut moves in blocks of a quarter of the cell."""


class ImpossibleBudget(ValueError):
    """Reserves reach the window."""


class BudgetRules(msgspec.Struct, frozen=True):
    """What is kept free where a request does not say."""

    output_reserve: int = 8_192
    margin_ratio: float = 0.05
    margin_floor: int = 2_048
    rot_ratio: float = 0.25


class Budget(msgspec.Struct, frozen=True):
    """A budget in parts. All but `cell` in the model's tokens."""

    available: int
    """For messages and for all that the service adds."""
    window: int = 0
    source: str = "message_tokens"
    """What bound the window: request, model, cap, served, default; or message_tokens."""
    assumed: bool = False
    system_prompt: int = 0
    tools: int = 0
    output_reserve: int = 0
    safety_margin: int = 0
    rot_buffer: int = 0
    factor: float = 1.0
    """The model's tokens per token of the reference encoding."""

    @property
    def reference(self) -> int:
        """`available` in the reference encoding, rounded down."""
        return math.floor(self.available / self.factor)


def window_budget(
    window: int,
    *,
    source: str,
    assumed: bool = False,
    system_prompt: int = 0,
    tools: int = 0,
    output_reserve: int | None = None,
    max_output: int | None = None,
    safety_margin: int | None = None,
    rot_buffer: int | None = None,
    factor: float = 1.0,
    rules: BudgetRules | None = None,
) -> Budget:
    """The algebra. Parts that are None take their defaults. Raises ImpossibleBudget where nothing
    would be left.

    What the caller gave is kept as it is. Where the defaults alone would spend a small window, they
    give way: the reserve to a quarter of the window, then the rot buffer, then the margin.
    """
    rules = rules or BudgetRules()
    reserve = rules.output_reserve if output_reserve is None else output_reserve
    if output_reserve is None and max_output:
        reserve = min(reserve, max_output)
    margin = (
        max(math.floor(window * rules.margin_ratio), rules.margin_floor)
        if safety_margin is None
        else safety_margin
    )
    rot = math.floor(window * rules.rot_ratio) if rot_buffer is None else rot_buffer
    taken = system_prompt + tools
    if window - taken - reserve - margin - rot <= 0:
        if output_reserve is None:
            reserve = min(reserve, window // 4)
        if reserve >= window:
            raise ImpossibleBudget(
                f"output_reserve {reserve} is not below the window of {window} tokens"
            )
        if rot_buffer is None:
            rot = max(0, min(rot, (window - taken - reserve - margin) // 2))
        if safety_margin is None:
            margin = max(0, min(margin, (window - taken - reserve - rot) // 2))
    available = window - taken - reserve - margin - rot
    if available <= 0:
        raise ImpossibleBudget(
            f"nothing is left of the window of {window} tokens: system prompt {system_prompt},"
            f" tools {tools}, output reserve {reserve}, safety margin {margin}, rot buffer {rot}"
        )
    return Budget(
        available, window, source, assumed, system_prompt, tools, reserve, margin, rot, factor
    )


@lru_cache(maxsize=1024)
def cell(tokens: int) -> int:
    """The budget rounded down on a geometric grid of eight cells an octave, so that small changes
    change nothing."""
    if tokens <= CELLS_PER_OCTAVE:
        return max(tokens, 0)
    octave = tokens.bit_length() - 1
    best = 1 << octave
    for step in range(1, CELLS_PER_OCTAVE):
        edge = math.floor(2 ** (octave + step / CELLS_PER_OCTAVE))
        if edge > tokens:
            break
        best = edge
    return best


def largest_in(cell_tokens: int) -> int:
    """The largest budget of a cell."""
    if cell_tokens < CELLS_PER_OCTAVE:
        return cell_tokens
    octave = cell_tokens.bit_length() - 1
    edges = (
        math.floor(2 ** (octave + step / CELLS_PER_OCTAVE))
        for step in range(1, CELLS_PER_OCTAVE + 1)
    )
    return next(edge for edge in edges if edge > cell_tokens) - 1


def grid(cell_tokens: int) -> int:
    """The width of the blocks in which the cut moves, in tokens of the running sum."""
    return max(1, cell_tokens // GRID_SHARE)


def next_block(needed: int, block: int) -> int:
    """The first edge of the grid that is not before `needed`."""
    return -(-needed // block) * block
