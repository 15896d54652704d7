"""What keeps an engine from being registered, and what keeps a registered one from serving."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from msgspec.structs import replace
from pydantic import BaseModel, Field
from typing_extensions import get_protocol_members

from contextengine_server.context.plan import Declared
from contextengine_server.engines.base import BaseEngine
from contextengine_server.engines.catalogue import DEFAULT, FALLBACK, Catalogue
from contextengine_server.engines.contract import Engine, ToolName, Tools
from contextengine_server.engines.legacy import ENGINE as LEGACY
from contextengine_server.engines.legacy import LegacyEngine
from contextengine_server.engines.members import METHODS, EngineFacts
from contextengine_server.engines.options import Options
from contextengine_server.engines.registration import InvalidEngine, Registration
from contextengine_server.engines.registry import Registry
from contextengine_server.errors import InvalidField, UnknownEngine
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.recall.model_tools.definitions import TOOLS


class Few(Options):
    number: int = 3


class Plain(LegacyEngine):
    id = "plain"

    def __init__(self, options: Any) -> None:
        BaseEngine.__init__(self, options)


PLAIN = Registration("plain", Few, Plain, "plugin:test")


class Demanding(BaseModel):
    wanted: int


class Contradicting(Options):
    number: int = Field(3, gt=5, validate_default=True)


class Unspeakable(BaseModel):
    thing: Any = object()


class Usurping(BaseModel):
    summarizer: str = ""


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"id": ""}, "engine id '' must be letters"),
        ({"id": "  "}, "must be letters"),
        ({"id": "a b"}, "must be letters"),
        ({"id": "on_engine_failure"}, "is reserved"),
        ({"owner": ""}, "engine 'plain' has no owner"),
        ({"owner": " "}, "has no owner"),
        ({"options": dict}, "options of engine 'plain' are not a pydantic model"),
        ({"options": Demanding}, "options of engine 'plain' have no default: wanted"),
        (
            {"options": Contradicting},
            "the defaults of the options of engine 'plain' cannot be used: ValidationError",
        ),
        ({"options": Unspeakable}, "cannot be used: PydanticSerializationError"),
        ({"options": Usurping}, "has an option `summarizer`, which is every engine's"),
    ],
)
def test_a_registration_that_is_wrong_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidEngine) as caught:
        Catalogue().plus(replace(PLAIN, **changed))
    assert why in str(caught.value)


def test_an_id_is_registered_once() -> None:
    one = Catalogue().plus(PLAIN)
    with pytest.raises(InvalidEngine, match="'plain' is registered already by plugin:test"):
        one.plus(replace(PLAIN, owner="plugin:other"))
    with pytest.raises(InvalidEngine, match="'PLAIN' has the settings of 'plain' of plugin:test"):
        one.plus(replace(PLAIN, id="PLAIN", owner="plugin:other"))
    kept = one.tried(replace(PLAIN, owner="plugin:other"))
    assert kept.registrations == one.registrations
    assert [(refused.id, refused.owner) for refused in kept.refused] == [("plain", "plugin:other")]


MEMBERS = (
    *("id", "name", "version", "owns_compaction", "threshold", "declared", "defers", "notices"),
    *("chunk", "summary_tokens", "options", "tools", "fingerprint"),
    *("reach", "addition", "plan", "saved", "due", "limit", "compaction", "dispose"),
)


def test_a_whole_engine_is_one() -> None:
    registry = Registry(Catalogue().plus(PLAIN))
    assert registry.configured("plain") is registry.engine("plain", Few())
    assert list(registry.unusable()) == []


@pytest.mark.parametrize("member", MEMBERS)
def test_an_engine_lacks_nothing_of_the_contract(member: str) -> None:
    """One that did would fail at its first use, past what `on_engine_failure` says."""

    class Wanting:
        """The plain engine without one member."""

        def __init__(self, options: Few) -> None:
            self._whole = Plain(options)

        def __getattr__(self, name: str) -> Any:
            if name == member:
                raise AttributeError(name)
            return getattr(self._whole, name)

    registry = Registry(Catalogue().plus(replace(PLAIN, make=Wanting)))
    with pytest.raises(InvalidEngine, match=rf"missing {member}\b"):
        registry.configured("plain")
    assert [refused.id for refused in registry.unusable()] == ["plain"]


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"id": "other"}, "its own id is 'other'"),
        ({"id": " "}, "blank id"),
        ({"name": ""}, "blank name"),
        ({"version": " "}, "blank version"),
    ],
)
def test_an_engine_says_who_it_is(facts: dict[str, str], why: str) -> None:
    made = replace(PLAIN, make=type("Other", (Plain,), facts))
    with pytest.raises(InvalidEngine, match=why):
        Registry(Catalogue().plus(made)).configured("plain")


@pytest.mark.parametrize(
    ("member", "value", "why"),
    [
        ("id", 3, "id: Expected `str`, got `int`"),
        ("name", object(), "name: Encoding objects of type object is unsupported"),
        ("owns_compaction", "yes", "owns_compaction: Expected `bool`, got `str`"),
        ("threshold", "0.8", "threshold: Expected `float`, got `str`"),
        ("threshold", 80, "threshold: Expected `float` <= 1.0"),
        ("declared", {"tail_steps": 3}, "declared is a dict, not a Declared"),
        ("declared", Declared("8"), "declared: Expected `int`, got `str` - at `$.tail_steps`"),  # type: ignore[arg-type]
        ("declared", Declared(-1), "declared: Expected `int` >= 0 - at `$.tail_steps`"),
        ("chunk", 0, "chunk: Expected `int` >= 1"),
        ("chunk", True, "chunk: Expected `int | null`, got `bool`"),
        ("summary_tokens", None, "summary_tokens: Expected `int`, got `null`"),
        ("tools", ("ctx_search",), "tools is a tuple, not a Tools"),
        ("tools", Tools(("ctx_dream",)), "tools: Invalid enum value 'ctx_dream'"),  # type: ignore[arg-type]
        ("tools", Tools(page_tokens=0), "tools: Expected `int` >= 1"),
        ("options", {"number": 3}, "options is a dict, not a Few"),
        ("plan", "newest", "plan cannot be called"),
    ],
)
def test_each_member_is_of_its_kind(member: str, value: Any, why: str) -> None:
    """One that is not would fail where it is used, as a defect of the server."""

    class Odd(Plain):
        def __init__(self, options: Few) -> None:
            super().__init__(options)
            setattr(self, member, value)

    registry = Registry(Catalogue().plus(replace(PLAIN, make=Odd)))
    with pytest.raises(InvalidEngine) as caught:
        registry.configured("plain")
    assert f"engine 'plain' of plugin:test is not a valid engine: {why}" in str(caught.value)


def test_a_member_that_raises_is_none() -> None:
    class Shy(Plain):
        @property
        def version(self) -> str:  # type: ignore[override]
            raise RuntimeError("the password is swordfish")

    registry = Registry(Catalogue().plus(replace(PLAIN, make=Shy)))
    [refused] = registry.unusable()
    assert (
        str(refused.why)
        == "engine 'plain' of plugin:test is not a valid engine: version raises RuntimeError"
    )


def test_all_that_is_wrong_is_said_at_once() -> None:
    facts = {"threshold": 2, "chunk": "x", "reach": None}
    registry = Registry(Catalogue().plus(replace(PLAIN, make=type("Odd", (Plain,), facts))))
    with pytest.raises(InvalidEngine, match=r"threshold: .*, chunk: .*, reach cannot be called"):
        registry.configured("plain")


def test_every_member_of_the_contract_is_checked() -> None:
    facts = {field.name for field in msgspec.structs.fields(EngineFacts)}
    assert {*facts, *METHODS, "options"} == set(MEMBERS) == get_protocol_members(Engine)


def test_the_tools_of_the_contract_are_those_of_recall() -> None:
    assert set(get_args(ToolName)) == set(TOOLS)


def test_a_factory_that_raises_makes_no_engine() -> None:
    def make(options: Few) -> Plain:
        raise RuntimeError("the password is swordfish")

    with pytest.raises(InvalidEngine) as caught:
        Registry(Catalogue().plus(replace(PLAIN, make=make))).configured("plain")
    assert str(caught.value) == "engine 'plain' of plugin:test cannot be made: RuntimeError"
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_who_is_not_there_is_named_with_who_is() -> None:
    registry = Registry(Catalogue().plus(PLAIN).tried(replace(PLAIN, id="broken", options=dict)))
    with pytest.raises(UnknownEngine, match="Available engines: plain"):
        registry.configured("nonesuch")
    with pytest.raises(InvalidEngine, match="are not a pydantic model"):
        registry.configured("broken")


def test_options_are_laid_over_the_configured_ones() -> None:
    registry = Registry(Catalogue().plus(PLAIN), {"plain": Few(number=5)})
    assert registry.options("plain") == Few(number=5)
    assert registry.options("plain", {"number": 6}, {"number": 7}) == Few(number=7)
    with pytest.raises(InvalidField, match="numbre: is not a known name; did you mean number"):
        registry.options("plain", {"numbre": 7})


def test_the_default_and_the_one_that_stands_in_are_installed() -> None:
    registry = Registry(installed_engines())
    assert registry.configured(DEFAULT).id == DEFAULT
    assert registry.fallback().id == FALLBACK == LEGACY.id
