"""The models that may be asked for a summary, in the order in which a request asks them, behind
their guards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Protocol

from contextengine_server.summarize.chain.escalation import ATTEMPTS, EscalatingSummarizer
from contextengine_server.summarize.guards.guarded import (
    Failover,
    GuardedSummarizer,
    GuardStates,
    MeteredSummarizer,
)
from contextengine_server.summarize.request import (
    NobodyThere,
    Summarizer,
    SummarizerFailed,
    SummaryPolicy,
    SummaryRequest,
    SummaryResult,
)


class ModelSource(Protocol):
    """Where models are asked: an endpoint, or the harnesses that lend theirs."""

    model: str
    """Its own; empty: whoever is asked chooses."""
    passing: bool
    """True where it comes and goes: while it is not there, the next is the first."""

    async def there(self, request: SummaryRequest, model: str) -> bool:
        """True where somebody can be asked."""

    def summarizer(self, model: str) -> Summarizer:
        """Asks a model once."""

    def capacity(self, request: SummaryRequest, previous: int) -> int | None:
        """The tokens of messages that it takes at once, for a summary of the request's target
        beside a previous one of so many; None: nobody knows, or nobody is there."""

    async def close(self) -> None:
        """Closes what is open."""


class Models:
    """All sources as one summarizer with its guards. `sources` is in the order of the chain.

    From the outside in: the breaker around the whole; one model after the other; of each, the
    normal form `attempts` times and the aggressive one; around each call, the caps. `policy` is for
    requests that bring none of their own.
    """

    name = "models"

    def __init__(
        self,
        sources: Mapping[str, ModelSource],
        states: GuardStates,
        clock_ms: Callable[[], int],
        policy: SummaryPolicy,
        count: Callable[[str], int],
        attempts: int = ATTEMPTS,
    ) -> None:
        self._sources = dict(sources)
        self._states = states
        self._clock_ms = clock_ms
        self._policy = policy
        self._count = count
        self._attempts = attempts

    @property
    def names(self) -> tuple[str, ...]:
        """What a policy may name: the endpoints, and `runtime` where harnesses are asked."""
        return tuple(self._sources)

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The summary. Raises SummarizerFailed, with every reason, where no model gave one."""
        asked = list(
            takewhile(lambda one: one.name != request.better_than, await self.order(request))
        )
        # Before the guards: a tenant without models costs no look at its breaker.
        if not asked:
            raise NobodyThere("no model is configured, and no harness lends one")
        if request.resting:
            raise SummarizerFailed(
                "models rest after a failure", asked=False, causes=("breaker_open",)
            )
        models = Failover(asked, self._count)
        return await GuardedSummarizer(
            models, self._states, self._clock_ms, self._policy
        ).summarize(request)

    async def order(self, request: SummaryRequest) -> list[Summarizer]:
        """Whom to ask, first to last, each model once."""
        asked: list[Summarizer] = []
        for name, model in self._chosen(request):
            source = self._sources.get(name)
            if source is None:
                asked.append(_Unknown(name))
            elif await source.there(request, model):
                metered = MeteredSummarizer(
                    source.summarizer(model), self._states, self._clock_ms, self._policy
                )
                asked.append(EscalatingSummarizer(metered, self._attempts))
        return asked

    def capacity(self, request: SummaryRequest, previous: int = 0) -> int | None:
        """The tokens of messages that the model asked first takes at once, beside a previous
        summary of so many; None where there is none. The request's own messages do not matter."""
        for name, _ in self._chosen(request):
            capacity = (
                self._sources[name].capacity(request, previous) if name in self._sources else None
            )
            if capacity is not None:
                return capacity
        return None

    async def close(self) -> None:
        """Closes all sources."""
        for source in self._sources.values():
            await source.close()

    def _chosen(self, request: SummaryRequest) -> list[tuple[str, str]]:
        """(source, model) in order, each once."""
        policy = request.policy or self._policy
        names = tuple(self._sources)
        steady = next(
            (at for at, name in enumerate(names) if not self._sources[name].passing), len(names)
        )
        first: Sequence[str] = (policy.model,) if policy.model else names[: steady + 1]
        chosen = []
        for reference in (*first, *(policy.fallbacks or names)):
            name, _, model = reference.partition(":")
            source = self._sources.get(name)
            chosen.append((name, model or (source.model if source else "")))
        return list(dict.fromkeys(chosen))


class _Unknown:
    """Stands for a source that a policy names and nobody configured."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        raise SummarizerFailed("no endpoint of this name is configured", asked=False)
