"""The engines that can be chosen, with their configured options, and the instances of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from contextengine_server.config.schema import OptionsError, merge, parse, read_names
from contextengine_server.errors import InvalidField, UnknownEngine

from .catalogue import CORE, FALLBACK, Catalogue, Refused
from .contract import Engine
from .guard import GuardedEngine
from .members import check_engine
from .patience import LOAD_S, TookTooLong, kind_of, within
from .pruned import PrunedEngine, PruningRules
from .registration import InvalidEngine, Registration
from .rewrite import rewriter_of


class Registry:
    """The engines by id, and their instances by options. Resolution fails closed, and the error
    lists the ids that exist."""

    def __init__(
        self,
        catalogue: Catalogue,
        configured: Mapping[str, BaseModel] | None = None,
        pruning: PruningRules | None = None,
        patience_s: float = LOAD_S,
    ) -> None:
        """`patience_s`: how long the factory of a plugin may take."""
        self._known = {one.id: one for one in catalogue.registrations}
        self._configured = dict(configured or {})
        self._pruning = pruning
        self._instances: dict[tuple[str, str], Engine] = {}
        self._disabled = catalogue.disabled
        self._hung: dict[str, InvalidEngine] = {}
        self._patience_s = patience_s
        self.refused: tuple[Refused, ...] = catalogue.refused

    @property
    def ids(self) -> list[str]:
        """The ids that exist, sorted."""
        return sorted(self._known)

    def registration(self, engine_id: str) -> Registration:
        """The engine's registration. Raises UnknownEngine; InvalidEngine where it was refused."""
        known = self._known.get(engine_id)
        if known is not None:
            return known
        for refused in self.refused:
            if refused.id == engine_id:
                raise refused.why
        off = f": the plugin {engine_id!r} is not enabled" if engine_id in self._disabled else ""
        broken = ", ".join(sorted({one.owner for one in self.refused}))
        raise UnknownEngine(
            f"engine {engine_id!r} is not registered{off}. Available engines:"
            f" {', '.join(self.ids) or '(none)'}"
            + (f". What {broken} brings along cannot be used" if broken else ""),
            metadata={"engine": engine_id, "available": ",".join(self.ids)},
        )

    def model(self, engine_id: str) -> type[BaseModel]:
        """What the engine's options are declared as. Raises as `registration`."""
        return self.registration(engine_id).options

    def options(self, engine_id: str, *layers: Mapping[str, Any]) -> BaseModel:
        """The configured options with others over them, layer by layer, validated. Raises
        InvalidField, and as `registration`."""
        model = self.model(engine_id)
        base = self._configured.get(engine_id) or model()
        given: dict[str, Any] = {}
        try:
            for layer in layers:
                # What is given is checked by itself first, so that its own names stand in the
                # message.
                named, problems = read_names(model, layer)
                if problems:
                    raise OptionsError(problems)
                given = merge(given, named)
            return parse(model, merge(base.model_dump(), given)) if given else base
        except OptionsError as error:
            raise InvalidField("options_json", str(error)) from error

    def named(self, engine_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options that were found valid, under their Python names."""
        return read_names(self.model(engine_id), options)[0]

    def engine(self, engine_id: str, options: BaseModel) -> Engine:
        """The engine with these options, made once. Raises as `registration`, and InvalidEngine
        where what its factory makes is no engine."""
        key = (engine_id, options.model_dump_json())
        made = self._instances.get(key)
        if made is None:
            made = GuardedEngine(self._made(self.registration(engine_id), options))
            if self._pruning is not None and self._pruning.any:
                made = PrunedEngine(made, self._pruning)
            self._instances[key] = made
        return made

    def _made(self, registration: Registration, options: BaseModel) -> Engine:
        """What the factory makes, checked. A plugin's that did not come back is not asked again
        until an operator says so: each time would hold up every session. Raises InvalidEngine."""
        engine_id, owner = registration.id, registration.owner
        hung = self._hung.get(engine_id)
        if hung is not None:
            raise hung

        def make() -> Engine:
            made = registration.make(options)
            check_engine(registration, made)
            return made

        try:
            return make() if owner == CORE else within(self._patience_s, make)
        except InvalidEngine:
            raise
        except TookTooLong as error:
            why = InvalidEngine(f"engine {engine_id!r} of {owner} cannot be made: it {error}")
            self._hung[engine_id] = why
            raise why from error
        except Exception as error:
            raise InvalidEngine(
                f"engine {engine_id!r} of {owner} cannot be made: {kind_of(error)}"
            ) from error

    def try_again(self) -> None:
        """An operator says that what did not come back may be asked again."""
        self._hung.clear()
        for made in self._instances.values():
            rewriter = rewriter_of(made)
            if rewriter is not None:
                rewriter.try_again()

    def configured(self, engine_id: str) -> Engine:
        """The engine with its configured options. Raises as `engine`."""
        return self.engine(engine_id, self.options(engine_id))

    def fallback(self) -> Engine:
        """The engine that stands in for one that failed."""
        return self.configured(FALLBACK)

    def unusable(self) -> Iterator[Refused]:
        """Every engine that cannot serve as it is installed and configured, and why."""
        yield from self.refused
        for engine_id in self.ids:
            try:
                self.configured(engine_id)
            except InvalidEngine as why:
                yield Refused(engine_id, self._known[engine_id].owner, why)

    def instances(self) -> list[Engine]:
        """Every engine that was made, to be disposed of once each."""
        return list(self._instances.values())
