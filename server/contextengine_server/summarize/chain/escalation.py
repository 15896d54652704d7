"""How one model is asked: in the normal form a few times, then once in the aggressive form. After
that the chain goes on."""

from __future__ import annotations

from msgspec.structs import replace

from contextengine_server.summarize.request import (
    Cause,
    Failure,
    NobodyThere,
    Summarizer,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
    TooLong,
    Unacceptable,
)

ATTEMPTS = 3
"""Times that the normal form is tried, as in Comis's leaf pass
(packages/agent/src/context-engine/lcd-leaf-summarizer.ts)."""


class EscalatingSummarizer:
    """Asks `inner` again where another answer may be better, and for less where what was asked is
    too much.

    A failure of neither kind ends it at once: a service that is down is not helped by other words.
    """

    def __init__(self, inner: Summarizer, attempts: int = ATTEMPTS) -> None:
        self.name = inner.name
        self._inner = inner
        self._attempts = attempts

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The summary, with what was refused before it. Raises SummarizerFailed, with every
        reason."""
        refused: list[tuple[str, str]] = []
        causes: dict[Cause, None] = {}
        spent, asked = 0, False
        kind: Failure = "other"
        left = 0 if request.aggressive else self._attempts
        while left >= 0:
            form = request if left else replace(request, aggressive=True)
            try:
                result = await self._inner.summarize(form)
            except NobodyThere:
                if not refused:
                    raise
                break
            except SummarizerFailed as error:
                causes |= dict.fromkeys(error.causes)
                refused.append((self.name, str(error)))
                kind = error.kind
                spent, asked = spent + error.spent, asked or error.asked
                if isinstance(error, TooLong):
                    # What is too long for the model now is as long at the next attempt: one more,
                    # in the shorter form, is all that may help.
                    left = min(left, 1)
                elif not isinstance(error, Unacceptable):
                    break
                left -= 1
            else:
                return replace(result, refused=tuple(refused), spent=spent + result.spent)
        raise SummarizerFailed(
            refused[-1][1],
            asked=asked,
            spent=spent,
            refused=tuple(refused),
            causes=tuple(causes),
            kind=kind,
        )
