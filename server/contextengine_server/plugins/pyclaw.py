"""The classes that plugins for PyClaw are written against, for those who write one here.

    from contextengine_server.plugins.pyclaw import ContextEnginePlugin, ContextState, CompactResult

A plugin that imports them from `pyclaw.agents.context.plugins` gets these where PyClaw is not
installed. What its members are asked for here is in docs/plugins.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, get_args

from contextengine_server.engines.layered import LayeredOptions
from contextengine_server.engines.layered.chat import steps_of
from contextengine_server.engines.layered.layers import Layer, Strategy

MAX_TOKENS = 128_000
"""What PyClaw compacts to where nobody says."""
CHARS = 4
"""Of a token, roughly."""
REQUIRED = ("name", "bootstrap", "ingest", "assemble", "compact")
"""What a plugin cannot be without."""


@dataclass
class ContextState:
    """What a plugin may keep of a session: one instance serves all of them in PyClaw."""

    session_id: str
    compaction_count: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class CompactResult:
    """What a plugin answers to a list of messages."""

    messages: list[dict[str, Any]]
    tokens_before: int = 0
    tokens_after: int = 0
    tokens_saved: int = 0
    summary: str | None = None
    """Of what is not in the messages any more, where they do not say it themselves."""


class ContextEnginePlugin(ABC):
    """An engine that compacts a list of messages."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The engine's id."""

    @property
    def description(self) -> str:
        """What people read."""
        return ""

    @abstractmethod
    async def bootstrap(self, state: ContextState) -> None:
        """A session begins, or is read again."""

    @abstractmethod
    async def ingest(self, messages: list[dict[str, Any]], state: ContextState) -> None:
        """Messages that it has not seen."""

    @abstractmethod
    async def assemble(self, state: ContextState) -> list[dict[str, Any]]:
        """The list as it would be sent."""

    @abstractmethod
    async def compact(
        self, messages: list[dict[str, Any]], state: ContextState, *, max_tokens: int | None = None
    ) -> CompactResult:
        """The list, compacted."""

    async def on_compact_complete(  # noqa: B027
        self, result: CompactResult, state: ContextState
    ) -> None:
        """Its result was read."""

    async def on_session_end(  # noqa: B027
        self, state: ContextState, messages: list[dict[str, Any]]
    ) -> None:
        """A session is at its end."""

    def get_status(self, state: ContextState) -> dict[str, Any]:
        """What people read of a session."""
        return {"session_id": state.session_id, "compaction_count": state.compaction_count}


class DefaultContextPlugin(ContextEnginePlugin):
    """Keeps what leads a session and its newest messages, and leaves out the rest, whose summary
    the server's summarizers write. To be derived from."""

    kept_share = 0.5
    """The newest messages take at most this share of `max_tokens`, at four characters a token."""

    @property
    def name(self) -> str:
        """As in PyClaw. No engine here can have it: plugin.yaml gives another."""
        return "default"

    async def bootstrap(self, state: ContextState) -> None:
        """Nothing."""

    async def ingest(self, messages: list[dict[str, Any]], state: ContextState) -> None:
        """Nothing."""

    async def assemble(self, state: ContextState) -> list[dict[str, Any]]:
        """As the server does."""
        return []

    async def compact(
        self, messages: list[dict[str, Any]], state: ContextState, *, max_tokens: int | None = None
    ) -> CompactResult:
        """What leads, and the newest."""
        leading = 0
        while leading < len(messages) and messages[leading].get("role") in ("system", "developer"):
            leading += 1
        room = MAX_TOKENS if max_tokens is None else max_tokens
        first, kept = len(messages), 0.0
        while first > leading:
            kept += _tokens(messages[first - 1])
            if kept > room * self.kept_share and first < len(messages):
                break
            first -= 1
        while leading < first < len(messages) and messages[first].get("role") == "tool":
            first += 1  # a result does not stand without its call
        answer = [*messages[:leading], *messages[first:]]
        before, after = (int(sum(map(_tokens, each))) for each in (messages, answer))
        return CompactResult(answer, before, after, before - after)

    def _load_chunk(self, chunk: Any) -> None:
        """A chunk of a store, read again. Nothing: what was compacted is among the session's
        summaries."""


@dataclass
class DagLayerConfig:
    """What a layer may take, and what becomes of its messages."""

    max_tokens: int
    strategy: str

    def __post_init__(self) -> None:
        if self.strategy not in get_args(Strategy):
            known = ", ".join(get_args(Strategy))
            raise ValueError(f"strategy {self.strategy!r} is none of {known}")


def _layers() -> dict[str, DagLayerConfig]:
    options = LayeredOptions()
    return {
        layer.name.lower(): DagLayerConfig(options.tokens_for(layer), options.strategy_of(layer))
        for layer in Layer
    }


class DagCompressorPlugin(DefaultContextPlugin):
    """Four layers of different worth: what is kept stays, and all else but the newest is left out,
    whose summary the server's summarizers write. To be derived from; the server's own engine of
    this kind is `layered`."""

    def __init__(
        self,
        layers: dict[str, DagLayerConfig] | None = None,
        total_max_tokens: int = MAX_TOKENS,
        engine: Any = None,
    ) -> None:
        """`engine` is kept and not asked: summaries are the server's. Raises ValueError where a
        layer is none."""
        self.layers = _layers() | (layers or {})
        unknown = sorted(self.layers.keys() - _layers().keys())
        if unknown:
            raise ValueError(f"layers {', '.join(unknown)} are none of {', '.join(_layers())}")
        self.total_max_tokens, self.engine = total_max_tokens, engine

    @property
    def name(self) -> str:
        """As in PyClaw."""
        return "dag-compressor"

    async def compact(
        self, messages: list[dict[str, Any]], state: ContextState, *, max_tokens: int | None = None
    ) -> CompactResult:
        """Up to the limit less the reserve the list as it is; else what leads, what is kept, the
        newest request and the newest step."""
        limit = self.total_max_tokens if max_tokens is None else max_tokens
        before = int(sum(map(_tokens, messages)))
        if before <= limit * (1 - LayeredOptions().compaction.reserve_ratio):
            return CompactResult(messages, before, before, 0)
        asked = max(
            (at for at, one in enumerate(messages) if one.get("role") == "user"), default=-1
        )
        answer: list[dict[str, Any]] = []
        for first, end, layer in steps_of(messages):
            kept = self.layers[layer.name.lower()].strategy == "keep"
            if kept or end == len(messages) or first <= asked < end:
                answer += messages[first:end]
        after = int(sum(map(_tokens, answer)))
        return CompactResult(answer, before, after, before - after)


def _tokens(message: dict[str, Any]) -> float:
    return len(str(message.get("content") or "")) / CHARS


class ContextEnginePluginRegistry:
    """Plugins by name. What the package of a plugin registers here when it is imported is its
    engine."""

    _instance: ContextEnginePluginRegistry | None = None

    def __init__(self) -> None:
        self._plugins: dict[str, ContextEnginePlugin] = {}
        self._default = ""

    @classmethod
    def get_instance(cls) -> ContextEnginePluginRegistry:
        """The one of the process."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    @classmethod
    def reset(cls) -> None:
        """The next one is empty."""
        cls._instance = None

    def register(
        self, plugin: ContextEnginePlugin, set_default: bool = False, allow_replace: bool = True
    ) -> None:
        """Adds a plugin under its name. Raises TypeError where it lacks a member, ValueError where
        the name is taken and may not be given to another."""
        lacking = [member for member in REQUIRED if not hasattr(plugin, member)]
        if lacking:
            raise TypeError(f"{type(plugin).__name__} lacks {', '.join(lacking)}")
        if plugin.name in self._plugins and not allow_replace:
            raise ValueError(f"context engine plugin {plugin.name!r} is already registered")
        self._plugins[plugin.name] = plugin
        if set_default:
            self._default = plugin.name

    def unregister(self, name: str) -> bool:
        """Takes a plugin away; False where there is none."""
        if self._default == name:
            self._default = ""
        return self._plugins.pop(name, None) is not None

    def get(self, name: str) -> ContextEnginePlugin | None:
        """The plugin of a name; None: there is none."""
        return self._plugins.get(name)

    def get_default(self) -> ContextEnginePlugin | None:
        """The one that was made the default, else the first; None: there is none."""
        first = next(iter(self._plugins.values()), None)
        return self._plugins.get(self._default, first)

    def list_plugins(self) -> list[dict[str, str]]:
        """Name and description of each, in the order in which they came."""
        return [
            {"name": one.name, "description": one.description} for one in self._plugins.values()
        ]
