"""The endpoints that are configured, in the order in which a request asks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from contextengine_server.summarize.escalation import ATTEMPTS, EscalatingSummarizer
from contextengine_server.summarize.guarding import (
    Failover,
    GuardedSummarizer,
    GuardStates,
    MeteredSummarizer,
)
from contextengine_server.summarize.openai import Connection, Endpoint, OpenAISummarizer
from contextengine_server.summarize.request import (
    Summarizer,
    SummarizerFailed,
    SummaryPolicy,
    SummaryRequest,
    SummaryResult,
)
from contextengine_server.summarize.workers import WorkerPool


class Endpoints:
    """Connections to all endpoints, and who is asked for a request.

    `wrap` is put around each model: how often it is asked, and what its calls count for. `policy` is for requests that
    bring none of their own.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        pool: WorkerPool,
        encoding: str,
        count: Callable[[str], int],
        wrap: Callable[[Summarizer], Summarizer],
        policy: SummaryPolicy,
    ) -> None:
        self._connections = {endpoint.name: Connection(endpoint) for endpoint in endpoints}
        self._pool = pool
        self._encoding = encoding
        self._count = count
        self._wrap = wrap
        self._policy = policy

    def order(self, request: SummaryRequest) -> list[Summarizer]:
        """Whom to ask, first to last, each model once."""
        chosen = dict.fromkeys(self._models(request.policy or self._policy))
        return [self._summarizer(name, model) for name, model in chosen]

    def capacity(self, target: int, previous: int = 0, policy: SummaryPolicy | None = None) -> int | None:
        """The tokens of messages that the model asked first takes at once, for a summary of `target` tokens beside a
        previous one of `previous`; None where there is no such endpoint."""
        for name, _ in self._models(policy or self._policy):
            if name in self._connections:
                return self._connections[name].endpoint.capacity(target, previous)
        return None

    async def close(self) -> None:
        """Closes all connections."""
        for connection in self._connections.values():
            await connection.close()

    def _models(self, policy: SummaryPolicy) -> list[tuple[str, str]]:
        """(endpoint, model) in order."""
        others = policy.fallbacks or tuple(self._connections)
        first = (policy.model,) if policy.model else tuple(self._connections)[:1]
        models = []
        for reference in (*first, *others):
            name, _, model = reference.partition(":")
            known = self._connections.get(name)
            models.append((name, model or (known.endpoint.model if known else "")))
        return models

    def _summarizer(self, name: str, model: str) -> Summarizer:
        connection = self._connections.get(name)
        if connection is None:
            return _Unknown(name)
        return self._wrap(OpenAISummarizer(connection, self._pool, self._encoding, self._count, model))


class _Unknown:
    """Stands for an endpoint that a policy names and nobody configured."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        raise SummarizerFailed("no endpoint of this name is configured", asked=False)


def guarded_models(
    endpoints: Sequence[Endpoint],
    states: GuardStates,
    clock_ms: Callable[[], int],
    policy: SummaryPolicy,
    pool: WorkerPool,
    encoding: str,
    count: Callable[[str], int],
    attempts: int = ATTEMPTS,
) -> tuple[Endpoints, Summarizer]:
    """All endpoints as one summarizer with its guards, and the endpoints themselves, to be closed at the end.

    From the outside in: the breaker around the whole; one model after the other; of each, the normal form `attempts`
    times and the aggressive one; around each call, the caps.
    """

    def wrap(model: Summarizer) -> Summarizer:
        return EscalatingSummarizer(MeteredSummarizer(model, states, clock_ms, policy), attempts)

    made = Endpoints(endpoints, pool, encoding, count, wrap, policy)
    return made, GuardedSummarizer(Failover(made.order, count), states, clock_ms, policy)
