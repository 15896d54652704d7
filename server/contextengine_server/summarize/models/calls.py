"""What is seen of calls to models: a span and two histograms each, by OpenTelemetry's semantic
conventions for generative AI.

No text of prompts or answers is in any of it.
"""

from __future__ import annotations

from time import perf_counter
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from contextengine_server.telemetry.metrics import TOKENS, Histogram, Metrics
from contextengine_server.telemetry.tracing import CURRENT, Trace

_DURATION = "gen_ai.client.operation.duration"
_USAGE = "gen_ai.client.token.usage"


class ModelCalls:
    """Observes the calls to one provider's models. `provider` and the models asked for are named by
    operators, so that there are few of them."""

    def __init__(
        self, metrics: Metrics, provider: str, model: str = "", base_url: str = ""
    ) -> None:
        self._metrics = metrics
        self._provider = provider
        self._server = urlsplit(base_url)
        # There from the beginning, so that a rate has a zero to begin with.
        self._duration(model)
        self._usage(model, "input")
        self._usage(model, "output")

    def call(self, model: str, max_tokens: int | None) -> ModelCall:
        """One call; use it as a context manager. `max_tokens` of the answer; None: no limit."""
        span = CURRENT.get().span(f"chat {model}".strip(), "client")
        span.set("gen_ai.operation.name", "chat")
        span.set("gen_ai.provider.name", self._provider)
        if max_tokens is not None:
            span.set("gen_ai.request.max_tokens", max_tokens)
        if model:
            span.set("gen_ai.request.model", model)
        if self._server.hostname:
            span.set("server.address", self._server.hostname)
            span.set(
                "server.port", self._server.port or (443 if self._server.scheme == "https" else 80)
            )
        return ModelCall(self, span, model)

    def took(self, model: str, seconds: float, error: str) -> None:
        """Counts a call's time, in seconds; `error`: what kind it ended in, empty: none."""
        self._duration(model, error).observe(seconds)

    def used(self, model: str, input_tokens: int, output_tokens: int) -> None:
        """Counts a call's tokens."""
        self._usage(model, "input").observe(input_tokens)
        self._usage(model, "output").observe(output_tokens)

    def _duration(self, model: str, error: str = "") -> Histogram:
        labels = self._labels(model) | ({"error.type": error} if error else {})
        return self._metrics.histogram(
            _DURATION,
            "How long a call to a model took; `error.type` says what it failed with",
            labels,
        )

    def _usage(self, model: str, kind: str) -> Histogram:
        labels = self._labels(model) | {"gen_ai.token.type": kind}
        return self._metrics.histogram(
            _USAGE, "Tokens of a call to a model", labels, unit="{token}", bounds=TOKENS
        )

    def _labels(self, model: str) -> dict[str, str]:
        named = {"gen_ai.request.model": model} if model else {}
        return {"gen_ai.operation.name": "chat", "gen_ai.provider.name": self._provider, **named}


class ModelCall:
    """A call that is under way."""

    def __init__(self, calls: ModelCalls, span: Trace, model: str) -> None:
        self._calls, self._span, self._model = calls, span, model

    def answered(
        self,
        input_tokens: int,
        output_tokens: int,
        *,
        model: str = "",
        response_id: str = "",
        finish: str = "",
    ) -> None:
        """What the model said of its answer: the tokens, its own name, the answer's, and why it
        stopped."""
        self._calls.used(self._model, input_tokens, output_tokens)
        self._span.set("gen_ai.usage.input_tokens", input_tokens)
        self._span.set("gen_ai.usage.output_tokens", output_tokens)
        if model:
            self._span.set("gen_ai.response.model", model)
        if response_id:
            self._span.set("gen_ai.response.id", response_id)
        if finish:
            self._span.set("gen_ai.response.finish_reasons", (finish,))

    def __enter__(self) -> Self:
        self._began = perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # The original exception says more than the one of ours that it was turned into.
        cause = (error.__context__ or error) if error is not None else None
        failed = type(cause).__name__ if cause is not None else ""
        self._calls.took(self._model, perf_counter() - self._began, failed)
        self._span.__exit__(type(cause) if cause is not None else None, cause, traceback)
