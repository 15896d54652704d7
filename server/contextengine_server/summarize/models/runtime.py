"""Summaries by the model of a harness that lends it. The server asks; how the harness asks its
model is its own affair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec.structs import replace

from contextengine_server.summarize.chain.chain import accept
from contextengine_server.summarize.guards.spend import MOST
from contextengine_server.summarize.models.answers import (
    MAX_ANSWER_CHARS,
    code_in,
    name_in,
    without_thoughts,
)
from contextengine_server.summarize.models.calls import ModelCalls
from contextengine_server.summarize.models.prompts import (
    TEMPLATE_TOKENS,
    THINKING_TOKENS,
    SummaryPrompt,
    finish,
    prepare,
    target_of,
)
from contextengine_server.summarize.request import (
    Summarizer,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
    TooLong,
    Unacceptable,
)
from contextengine_server.summarize.workers.pool import WorkerPool
from contextengine_server.telemetry.metrics import Metrics

NAME = "runtime"
"""How options name the harnesses' models: `runtime`, or `runtime:MODEL`."""

DEFAULT_ROOM = 128_000
"""The tokens of a prompt for a harness that does not say how many it takes."""

_WHOLE = {"", "stop", "end_turn", "stop_sequence", "completed", "endturn"}
_CUT = {"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"}
_REFUSED = {
    "refusal",
    "content_filter",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
}
"""Why a model stopped, in the words of the providers whose harnesses lend theirs."""


class Work(msgspec.Struct, frozen=True):
    """A completion that is wanted of a harness."""

    tenant: str
    agent: str
    session: str
    system: str
    user: str
    input_tokens: int
    """Of both, in the reference encoding."""
    max_output_tokens: int
    model: str = ""
    """The model wished for; empty: the harness's choice."""


class Completion(msgspec.Struct, frozen=True):
    """What a harness answered."""

    text: str = ""
    input_tokens: int = 0
    """0: not said."""
    output_tokens: int = 0
    model: str = ""
    stop_reason: str = ""
    error: str = ""
    """Why it failed; empty: it did not."""
    retryable: bool = False


class Lender(Protocol):
    """Knows the harnesses that lend their models."""

    async def there(self, tenant: str, agent: str, session: str, model: str) -> bool:
        """True where a harness is attached that suits, or one has a job of this session and may
        come back with it."""

    def room(self, tenant: str, agent: str, model: str = "") -> int | None:
        """The most input tokens that a harness takes, 0: it does not say; None: nobody is
        attached."""

    async def complete(self, work: Work) -> Completion:
        """What a harness answered. Raises SummarizerFailed where none did, NobodyThere where none
        is there any more."""


class RuntimeSummarizer:
    """Asks the harnesses once. `count` counts tokens in the reference encoding."""

    def __init__(
        self,
        lender: Lender,
        pool: WorkerPool,
        encoding: str,
        count: Callable[[str], int],
        calls: ModelCalls,
        model: str = "",
    ) -> None:
        self._lender = lender
        self._pool = pool
        self._encoding = encoding
        self._count = count
        self._calls = calls
        self._model = model
        self.name = f"{NAME}:{model}" if model else NAME

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The summary. Raises TooLong, Unacceptable, SummarizerFailed; none with text of messages
        or of the harness."""
        room = self._lender.room(request.tenant, request.agent, self._model) or DEFAULT_ROOM
        prompt = await self._pool.run(request.tenant, prepare, request, self._encoding, room)
        if prompt.tokens > room:
            raise TooLong(
                f"the prompt of {prompt.tokens:,} tokens is more than the {room:,} that a harness"
                " takes",
                asked=False,
            )
        most = target_of(request) + THINKING_TOKENS
        with self._calls.call(self._model, most) as call:
            answer = await self._lender.complete(
                Work(
                    request.tenant,
                    request.agent,
                    request.session,
                    prompt.system,
                    prompt.user,
                    prompt.tokens,
                    most,
                    self._model,
                )
            )
            if answer.error:
                # The word alone, where it is one: a text may quote the prompt.
                said = code_in(answer.error)
                raise SummarizerFailed(
                    f"the harness failed: {said}" if said else "the harness failed"
                )
            given, taken = self._tokens(answer, prompt)
            model = name_in(answer.model)
            call.answered(given, taken, model=model, finish=code_in(answer.stop_reason))
        try:
            text, tokens = accept(_summary(answer), request, self._count)
            if request.handoff is not None:
                text = await self._pool.run(
                    request.tenant, finish, text, replace(request, messages=())
                )
                text, tokens = accept(text, request, self._count)
        except SummarizerFailed as error:
            error.spent = given + taken
            raise
        return SummaryResult(
            text, tokens, f"{NAME}:{model}" if model else self.name, spent=given + taken
        )

    def _tokens(self, answer: Completion, prompt: SummaryPrompt) -> tuple[int, int]:
        """Tokens of the prompt and of the answer, as the harness reports them, else as they are
        counted here."""
        return (
            min(answer.input_tokens, MOST) or prompt.tokens,
            min(answer.output_tokens, MOST) or self._count(answer.text[:MAX_ANSWER_CHARS]),
        )


def _summary(answer: Completion) -> str:
    """The text of a complete answer. Raises SummarizerFailed for any other."""
    reason = answer.stop_reason.lower()
    if reason in _CUT:
        raise TooLong("cut off at the limit on its length", kind="truncated")
    if reason in _REFUSED:
        raise Unacceptable("refusal")
    if reason not in _WHOLE:
        raise Unacceptable(f"stop reason {code_in(answer.stop_reason) or 'unknown'}")
    if len(answer.text) > MAX_ANSWER_CHARS:
        raise Unacceptable(f"longer than {MAX_ANSWER_CHARS:,} characters")
    return without_thoughts(answer.text)


class RuntimeSource:
    """The models that harnesses lend."""

    model = ""
    passing = True

    def __init__(
        self,
        lender: Lender,
        pool: WorkerPool,
        encoding: str,
        count: Callable[[str], int],
        metrics: Metrics,
    ) -> None:
        self._lender = lender
        self._pool = pool
        self._encoding = encoding
        self._count = count
        self._calls = ModelCalls(metrics, NAME)

    async def there(self, request: SummaryRequest, model: str) -> bool:
        """See `Lender.there`."""
        return await self._lender.there(request.tenant, request.agent, request.session, model)

    def summarizer(self, model: str) -> Summarizer:
        """Asks the harnesses once."""
        return RuntimeSummarizer(
            self._lender, self._pool, self._encoding, self._count, self._calls, model
        )

    def capacity(self, request: SummaryRequest, previous: int) -> int | None:
        """The tokens of messages that the attached harnesses take; None where none is attached, or
        says."""
        room = self._lender.room(request.tenant, request.agent)
        return max(0, room - TEMPLATE_TOKENS - previous) if room else None

    async def close(self) -> None:
        """Holds nothing: the streams are the server's."""
