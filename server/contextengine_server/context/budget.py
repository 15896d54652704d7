"""The budget: available = window - system prompt - tools - output reserve - safety margin - rot
buffer.

The defaults are those of Comis (packages/agent/src/context-engine/constants.ts): output reserve
8,192, margin the larger of 5 % and 2,048, rot buffer 25 % of the window. Tokens of the window and
its parts are the model's; what an engine plans with is in the reference encoding. Each has a type,
so that the type checker refuses one in place of the other; the model's factor leads from one to the
other, here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NewType

import msgspec

from .message import Slot

ModelTokens = NewType("ModelTokens", int)
"""Tokens as the model's provider counts them: of windows, of bills and of all that a caller is told
of its budget."""

ReferenceTokens = NewType("ReferenceTokens", int)
"""Tokens of the reference encoding, in which messages are counted and engines plan."""

DEFAULT_WINDOW = 128_000
CELLS_PER_OCTAVE = 8
LEAST_SHARE = 4
"""Defaults leave at least this part (a quarter) of what the caller's own parts leave."""


def in_model(tokens: ReferenceTokens, factor: float) -> ModelTokens:
    """Tokens of the reference encoding in the model's, to the nearest. `factor`: the model's tokens
    per token of the reference encoding."""
    return ModelTokens(round(tokens * factor))


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

    available: ModelTokens
    """For messages and for all that the service adds."""
    window: ModelTokens = ModelTokens(0)
    source: str = "message_tokens"
    """What bound the window: request, model, cap, served, default; or message_tokens."""
    assumed: bool = False
    system_prompt: ModelTokens = ModelTokens(0)
    tools: ModelTokens = ModelTokens(0)
    output_reserve: ModelTokens = ModelTokens(0)
    safety_margin: ModelTokens = ModelTokens(0)
    rot_buffer: ModelTokens = ModelTokens(0)
    factor: float = 1.0
    """The model's tokens per token of the reference encoding."""

    @property
    def reference(self) -> ReferenceTokens:
        """`available` in the reference encoding, rounded down: what is promised fits."""
        return ReferenceTokens(math.floor(self.available / self.factor))


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
    """The algebra, in the model's tokens as they were given. Parts that are None take their
    defaults. Raises ImpossibleBudget where nothing would be left.

    What the caller gave is kept as it is. Of what that leaves, the defaults take no more than three
    quarters, so a larger window never leaves less for messages, nor a smaller system prompt.
    """
    rules = rules or BudgetRules()
    if output_reserve is not None and output_reserve >= window:
        raise ImpossibleBudget(
            f"output_reserve {output_reserve} is not below the window of {window} tokens"
        )
    given = (output_reserve or 0, safety_margin or 0, rot_buffer or 0)
    free = window - system_prompt - tools - sum(given)
    if free <= 0:
        raise ImpossibleBudget(
            f"nothing is left of the window of {window} tokens: system prompt {system_prompt},"
            f" tools {tools}, output reserve {given[0]}, safety margin {given[1]},"
            f" rot buffer {given[2]}"
        )
    wanted = _defaults(window, rules, max_output, (output_reserve, safety_margin, rot_buffer))
    available = max(free - sum(wanted), -(-free // LEAST_SHARE))
    reserve, margin, rot = map(sum, zip(given, _spread(free - available, wanted), strict=True))
    return Budget(
        available=ModelTokens(available),
        window=ModelTokens(window),
        source=source,
        assumed=assumed,
        system_prompt=ModelTokens(system_prompt),
        tools=ModelTokens(tools),
        output_reserve=ModelTokens(reserve),
        safety_margin=ModelTokens(margin),
        rot_buffer=ModelTokens(rot),
        factor=factor,
    )


def _defaults(
    window: int,
    rules: BudgetRules,
    max_output: int | None,
    given: tuple[int | None, int | None, int | None],
) -> tuple[int, int, int]:
    """The output reserve, the safety margin and the rot buffer that the rules want; 0 for those
    that are given."""
    reserve, margin, rot = 0, 0.0, 0.0
    if given[0] is None:
        reserve = min(rules.output_reserve, max_output or rules.output_reserve)
    if given[1] is None:
        margin = max(window * rules.margin_ratio, float(rules.margin_floor))
    if given[2] is None:
        rot = window * rules.rot_ratio
    # Rounded together: rounded apart, one more token of window could leave one less.
    return reserve, math.floor(margin), math.floor(margin + rot) - math.floor(margin)


def _spread(tokens: int, wanted: tuple[int, int, int]) -> list[int]:
    """So many tokens, given to the parts in proportion to what each wants, and to none more."""
    whole, shared, sums = sum(wanted), [], 0
    for part in wanted:
        before, sums = sums, sums + part
        shared.append(sums * tokens // whole - before * tokens // whole if whole else 0)
    return shared


@lru_cache(maxsize=1024)
def cell(tokens: int) -> ReferenceTokens:
    """A budget in the reference encoding rounded down on a geometric grid of eight cells an octave,
    so that small changes change nothing."""
    if tokens <= CELLS_PER_OCTAVE:
        return ReferenceTokens(max(tokens, 0))
    octave = tokens.bit_length() - 1
    best = 1 << octave
    for step in range(1, CELLS_PER_OCTAVE):
        edge = math.floor(2 ** (octave + step / CELLS_PER_OCTAVE))
        if edge > tokens:
            break
        best = edge
    return ReferenceTokens(best)


# Sharing too little room among messages: small ones stand whole, large ones get equal shares, as
# water finds its level; and each is cut, head and tail, to what it gets.

LEAST_CHARS = 40
"""Less of a text than this says nothing."""
_TRIES = 8


def level(sizes: Sequence[int], room: int) -> int:
    """The most that each may take so that all of them take no more than the room together; the
    largest size where they do anyway."""
    left, waiting = room, sorted(sizes)
    for at, size in enumerate(waiting):
        share = left // (len(waiting) - at)
        if size > share:
            return max(0, share)
        left -= size
    return waiting[-1] if waiting else 0


def cut_to(show: Callable[[int], Slot | None], chars: int, tokens: int) -> tuple[Slot | None, int]:
    """A message in no more than so many tokens, and the characters of it that this leaves; None
    where so few cannot be had. `show` shows so many characters of it, None where it has no more;
    `chars` is where the search begins."""
    for tried in range(_TRIES):
        if chars < LEAST_CHARS:
            break
        shown = show(chars)
        if shown is None:  # its texts have no more: it is large by something else
            chars //= 2
            continue
        if shown.tokens <= tokens:
            return shown, chars
        # By more each time: where many results share it, a few characters less are none less.
        chars = min(chars - 1 - chars * tried // 64, chars * tokens // shown.tokens)
    return None, 0
