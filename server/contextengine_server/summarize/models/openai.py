"""Summaries by a model behind an endpoint that speaks the OpenAI chat completions API.

The prompt is made in a worker process, without secrets. The SDK sends it, waits and tries again as
the service asks; what comes back is read here as the plain JSON that it is, since compatible
services differ in what they leave out.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from contextengine_server.summarize.chain.chain import accept
from contextengine_server.summarize.models.answers import ModelAnswer, code_in
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
    Failure,
    Summarizer,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
    TooLong,
)
from contextengine_server.summarize.workers.pool import WorkerPool
from contextengine_server.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from openai import AsyncOpenAI

TOKENIZER_MARGIN = 1.1
"""The window is in the model's own tokens; they are counted here in another encoding."""

_TOO_LONG = re.compile(
    r"(?i)context.{0,3}(length|window|size)|(prompt|input|request|messages?) (is|are) too"
    r" (long|large)|too many (input )?tokens"
    r"|maximum.{1,30}tokens|reduce the length"
)
_LOGGERS = ("openai", "httpx2", "httpcore2", "httpx", "httpcore")


class Endpoint(msgspec.Struct, frozen=True):
    """Where a model is asked, and how."""

    name: str
    base_url: str
    """Such as https://api.openai.com/v1."""
    model: str
    api_key_env: str = ""
    """The environment variable with the key; empty: the service asks for none."""
    timeout: float = 60.0
    """Seconds for one try; all tries together, waits included, may take `retries + 1` times as
    long."""
    retries: int = 2
    """Further tries after a lost connection, a time-out, 408, 409, 429 and 5xx, when Retry-After
    says, else with growing waits."""
    window: int = 128_000
    """The model's context window in its own tokens: prompt and answer."""
    stream: bool = False
    """Reads the answer as it is written: one that never ends is cut off, and a slow one is not
    taken for a dead service. Costs the serving process some 0.1 ms a token, so that it is not the
    default."""
    length_parameter: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """What the service calls the limit on an answer."""

    def answer_tokens(self, target: int) -> int:
        """The limit on an answer."""
        return min(target + THINKING_TOKENS, self.window // 2)

    def room(self, target: int) -> int:
        """The tokens that a prompt may have, in the reference encoding, where the answer should
        have `target`."""
        return int((self.window - self.answer_tokens(target)) / TOKENIZER_MARGIN)

    def capacity(self, target: int, previous: int) -> int:
        """The tokens of messages that one request holds beside a previous summary of `previous`
        tokens."""
        return max(0, self.room(target) - TEMPLATE_TOKENS - previous)


class EndpointConnection:
    """The way to an endpoint: made at the first use, kept, and closed once. Belongs to one event
    loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._client: AsyncOpenAI | None = None
        self._opening = asyncio.Lock()

    async def client(self) -> AsyncOpenAI:
        """The SDK's client. Raises SummarizerFailed where the key is missing."""
        async with self._opening:
            if self._client is None:
                endpoint = self.endpoint
                key = os.environ.get(endpoint.api_key_env, "") if endpoint.api_key_env else "none"
                if not key:
                    raise SummarizerFailed(
                        f"the environment variable {endpoint.api_key_env}, which should hold the"
                        " key, is not set",
                        asked=False,
                        kind="auth",
                    )
                # In a thread: the import alone takes half a second.
                self._client = await asyncio.to_thread(_client, endpoint, key)
            return self._client

    async def close(self) -> None:
        """Closes what was opened. Safe twice."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _client(endpoint: Endpoint, key: str) -> AsyncOpenAI:
    from openai import AsyncOpenAI

    # At debug level some releases of these libraries log whole requests and their headers.
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    return AsyncOpenAI(
        api_key=key,
        base_url=endpoint.base_url,
        timeout=endpoint.timeout,
        max_retries=endpoint.retries,
    )


class OpenAISummarizer:
    """Asks one model once, in the form that the request says. `count` counts tokens in the
    reference encoding."""

    def __init__(
        self,
        connection: EndpointConnection,
        pool: WorkerPool,
        encoding: str,
        count: Callable[[str], int],
        calls: ModelCalls,
        model: str = "",
    ) -> None:
        self._connection = connection
        self._endpoint = connection.endpoint
        self._pool = pool
        self._encoding = encoding
        self._count = count
        self._calls = calls
        self._model = model or connection.endpoint.model
        self.name = f"{connection.endpoint.name}:{self._model}"

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The summary. Raises TooLong, Unacceptable, SummarizerFailed; none with text of messages
        or of the service."""
        room = self._endpoint.room(target_of(request))
        prompt = await self._pool.run(request.tenant, prepare, request, self._encoding, room)
        if prompt.tokens > room:
            raise TooLong(
                f"the prompt of {prompt.tokens:,} tokens is more than the {room:,} that the window"
                f" of {self._endpoint.window:,} leaves for it",
                asked=False,
            )
        client = await self._connection.client()
        answer = ModelAnswer()
        with self._calls.call(self._model, self._limit(prompt)) as call:
            try:
                async with asyncio.timeout(self._endpoint.timeout * (self._endpoint.retries + 1)):
                    await self._ask(client, prompt, answer)
            except Exception as error:
                # Once an answer has begun, the provider bills the prompt, whether or not it ends.
                raise _failure(
                    error, answer.spent(prompt, self._count) if answer.began else 0
                ) from None
            given, taken = answer.tokens(prompt, self._count)
            call.answered(
                given,
                taken,
                model=answer.model,
                response_id=answer.id,
                finish=code_in(answer.finish),
            )
        spent = answer.spent(prompt, self._count)
        try:
            text, tokens = accept(answer.summary(), request, self._count)
            if request.handoff is not None:
                text = await self._pool.run(
                    request.tenant, finish, text, replace(request, messages=())
                )
                text, tokens = accept(text, request, self._count)
        except SummarizerFailed as error:
            error.spent = spent
            raise
        return SummaryResult(text, tokens, self.name, spent=spent)

    def _limit(self, prompt: SummaryPrompt) -> int | None:
        """The most tokens of the answer; None: as many as the model writes."""
        return self._endpoint.answer_tokens(prompt.target) if prompt.limited else None

    async def _ask(self, client: AsyncOpenAI, prompt: SummaryPrompt, answer: ModelAnswer) -> None:
        """Reads the service's answer into `answer`, so that what was read is known whatever ends
        it."""
        most = self._limit(prompt)
        limit = {} if most is None else {self._endpoint.length_parameter: most}
        if not self._endpoint.stream:
            reply = await client.chat.completions.with_raw_response.create(
                model=self._model,
                messages=[
                    {"role": "system", "content": prompt.system},
                    {"role": "user", "content": prompt.user},
                ],
                extra_body=limit,
            )
            answer.add(json.loads(reply.content))
            return
        stream = await client.chat.completions.create(
            model=self._model,
            messages=[
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            stream=True,
            stream_options={"include_usage": True},
            extra_body=limit,
        )
        async with stream:
            async for chunk in stream:
                answer.add(chunk.model_dump(warnings=False))


class EndpointSource:
    """The models of one endpoint."""

    passing = False

    def __init__(
        self,
        endpoint: Endpoint,
        pool: WorkerPool,
        encoding: str,
        count: Callable[[str], int],
        metrics: Metrics,
    ) -> None:
        self.model = endpoint.model
        self._connection = EndpointConnection(endpoint)
        self._pool = pool
        self._encoding = encoding
        self._count = count
        # The semantic conventions have the name `openai` for OpenAI alone; another endpoint of the
        # same wire format has the name that the configuration gives it.
        own = urlsplit(endpoint.base_url).hostname == "api.openai.com"
        self._calls = ModelCalls(
            metrics, "openai" if own else endpoint.name, endpoint.model, endpoint.base_url
        )

    async def there(self, request: SummaryRequest, model: str) -> bool:
        """Always: whether it answers is seen when it is asked."""
        return True

    def summarizer(self, model: str) -> Summarizer:
        """Asks a model once."""
        return OpenAISummarizer(
            self._connection, self._pool, self._encoding, self._count, self._calls, model
        )

    def capacity(self, request: SummaryRequest, previous: int) -> int | None:
        """See `Endpoint.capacity`."""
        return self._connection.endpoint.capacity(request.target_tokens, previous)

    async def close(self) -> None:
        """Closes the connection."""
        await self._connection.close()


def _failure(error: Exception, spent: int) -> SummarizerFailed:
    """What went wrong, in words of our own and the service's codes: its texts may quote the
    prompt."""
    import openai

    if isinstance(error, SummarizerFailed):
        error.spent = spent
        return error
    if isinstance(error, (openai.APITimeoutError, TimeoutError)):
        return SummarizerFailed("no answer in time", spent=spent, kind="timeout")
    if isinstance(error, openai.APIConnectionError):
        return SummarizerFailed("the connection failed", spent=spent, kind="connection")
    if isinstance(error, openai.APIStatusError):
        codes = " ".join(
            filter(None, (str(error.status_code), code_in(error.code) or code_in(error.type)))
        )
        if error.status_code == 413 or (error.status_code in (400, 422) and _says_too_long(error)):
            return TooLong(f"more than the model's context: {codes}", spent=spent)
        return SummarizerFailed(codes, spent=spent, kind=_kind_of(error.status_code, codes))
    if isinstance(error, openai.APIError):
        code = code_in(error.code) or code_in(error.type) or "unknown"
        kind = TooLong if _says_too_long(error) else SummarizerFailed
        return kind(f"an error within the answer: {code}", spent=spent)
    if isinstance(error, ValueError):
        return SummarizerFailed("a malformed answer", spent=spent, kind="malformed")
    return SummarizerFailed(type(error).__name__, spent=spent)


def _kind_of(status: int, codes: str) -> Failure:
    """How a service failed that answered with an error."""
    if status in (401, 402, 403) or "quota" in codes:
        return "auth"
    if status == 529 or "overloaded" in codes:
        return "overload"
    return "busy" if status in (408, 429, 502, 504) else "other"


def _says_too_long(error: Any) -> bool:
    return error.code == "context_length_exceeded" or bool(
        _TOO_LONG.search(str(error.message)[:2_000])
    )
