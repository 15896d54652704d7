"""The settings of engines: which one serves, and a block for each as the engine declares it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator

from contextengine_server.config.group import Group
from contextengine_server.engines.catalogue import DEFAULT, Catalogue, block_name
from contextengine_server.engines.registration import ENGINE_ID
from contextengine_server.plugins.engines import installed_engines

DIRECTORY = "var/plugins"
"""Beside the store's own default."""


class EngineSettings(Group):
    """Which engine serves, and how. Each engine that is installed has a block of its own, with the
    options that it declares."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    known: ClassVar[Catalogue | None] = None
    """The engines that have a block; None: what is installed, each with its defaults."""

    default: str = Field(
        DEFAULT,
        min_length=1,
        max_length=256,
        description="The engine of every session that an operator assigned no other.",
    )
    on_engine_failure: Literal["fail_closed", "legacy"] = Field(
        "fail_closed",
        description=(
            "When an engine fails: answer the error, or serve the call by the legacy engine."
        ),
    )

    @classmethod
    def catalogue(cls) -> Catalogue:
        """The engines that there are."""
        return cls.known if cls.known is not None else installed_engines()

    def options(self, engine_id: str) -> Any:
        """The configured options of an engine of the catalogue."""
        if self.known is not None:
            return getattr(self, _block(engine_id))
        return next(one.options() for one in self.catalogue().registrations if one.id == engine_id)

    def configured(self) -> dict[str, BaseModel]:
        """The configured options of every engine, by its id."""
        return {one.id: self.options(one.id) for one in self.catalogue().registrations}

    @field_validator("default")
    @classmethod
    def _is_an_id(cls, engine: str) -> str:
        if not ENGINE_ID.fullmatch(engine):
            raise ValueError("must be the id of an engine: letters, digits and @ . _ / : - only")
        return engine


class PluginSettings(Group):
    """Plugins in a directory, each with a plugin.yaml. Their code runs where `contextengine plugins
    enable` was said, and not before."""

    directory: str = Field(
        DIRECTORY,
        min_length=1,
        max_length=4096,
        description="The directory of plugins. Where there is none, there are no plugins in it.",
    )


class Unchecked(BaseModel):
    """The block of an engine that was refused: nobody knows its options."""

    model_config = ConfigDict(extra="allow")


@lru_cache(maxsize=16)
def engine_settings(catalogue: Catalogue) -> type[EngineSettings]:
    """The group where these engines have blocks."""
    declared: dict[str, type[BaseModel]] = {one.id: Unchecked for one in catalogue.refused}
    declared |= {one.id: one.options for one in catalogue.registrations}
    blocks: dict[str, Any] = {
        _block(engine_id): (model, Field(model(), alias=engine_id))
        for engine_id, model in declared.items()
    }
    group = create_model(
        "EngineSettings", __base__=EngineSettings, __doc__=EngineSettings.__doc__, **blocks
    )
    group.known = catalogue
    return group


def _block(engine_id: str) -> str:
    """The name of an engine's block, which must be none that every model has."""
    name = block_name(engine_id)
    return f"{name}_" if hasattr(EngineSettings, name) else name
