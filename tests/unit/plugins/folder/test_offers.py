"""What packages bring along for other hosts, and what is said of those that bring less."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contextengine_server.config.load import SettingsError, load_settings
from contextengine_server.engines.hosted.engine import HostedEngine
from contextengine_server.engines.registration import InvalidEngine, Registration
from contextengine_server.engines.registry import Registry
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.plugins.folder.directory import PluginDirectory
from contextengine_server.plugins.folder.engines import engines_of
from tests.unit.plugins.folder.made import plugin

HERMES = """
from agent.context_engine import ContextEngine

class Engine(ContextEngine):
    name = "mine"
    def __init__(self, keep: int = 3, word: str = "w"):
        self.keep, self.word = keep, word
    def update_from_response(self, usage): pass
    def should_compress(self, prompt_tokens=None): return True
    def compress(self, messages, current_tokens=None): return messages[-self.keep:]
"""


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    installed_engines.cache_clear()
    yield
    installed_engines.cache_clear()


@pytest.fixture
def directory(tmp_path: Path) -> PluginDirectory:
    return PluginDirectory(tmp_path / "plugins")


def offered(directory: PluginDirectory, source: str, yaml: str = "name: p\n") -> Registration:
    plugin(directory.path, "p", source, yaml)
    directory.enable("p")
    [found] = engines_of(directory)
    if isinstance(found.offer, InvalidEngine):
        raise found.offer
    return found.offer


def host_of(registration: Registration, **options: Any) -> Any:
    engine = registration.make(registration.options(**options))
    assert isinstance(engine, HostedEngine)
    return engine._host


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            HERMES.replace("def compress", "def compact"),
            "plugin:p cannot be used: its engine Engine lacks compress",
        ),
        (
            "class Engine:\n    pass\ndef register(ctx): ctx.register_context_engine(Engine())",
            "its engine Engine lacks name, update_from_response, should_compress, compress",
        ),
        ("def register(ctx): ctx.register_tool('x')", "its register(ctx) registers no engine"),
        ("def register(ctx): ctx.nonesuch", "plugin:p cannot be imported: AttributeError"),
        (HERMES.replace('"mine"', '""'), "its engine Engine has no name"),
        (
            "from pyclaw.agents.context.plugins.base import ContextEnginePlugin\n"
            "class Mine(ContextEnginePlugin):\n    name = 'x'\n",
            "its engine Mine lacks assemble, bootstrap, compact, ingest",
        ),
        (
            HERMES + "\n    def is_available(self): return False\n",
            "its engine Engine says that it is not available",
        ),
        (
            "from agent.context_engine import ContextEngine",
            "nor a subclass of ContextEngine or of ContextEnginePlugin",
        ),
    ],
)
def test_what_a_package_lacks_is_said(directory: PluginDirectory, source: str, why: str) -> None:
    with pytest.raises(InvalidEngine) as caught:
        offered(directory, source)
    assert why in str(caught.value)


CONFIG = """
name: p
config:
  keep: {type: integer, default: 5, description: How many stay.}
  word: {default: hello}
"""


def test_an_engine_has_a_block_of_its_own_options(directory: PluginDirectory) -> None:
    registration = offered(directory, HERMES, CONFIG)
    engine = host_of(registration, keep=9).make()
    assert (engine.keep, engine.word) == (9, "hello")
    assert host_of(registration).make() is not host_of(registration).make()
    where = {"plugins.directory": str(directory.path)}
    settings = load_settings(None, {**where, "engine.mine.keep": 7}, {})
    assert settings.engine.options("mine").keep == 7
    with pytest.raises(SettingsError, match=r"engine.mine.keep: must be a whole number"):
        load_settings(None, {**where, "engine.mine.keep": "many"}, {})
    with pytest.raises(SettingsError, match=r"engine.mine.timeoutSeconds: must be more than 0"):
        load_settings(None, {**where, "engine.mine.timeoutSeconds": 0}, {})


def test_options_may_be_written_as_their_defaults(directory: PluginDirectory) -> None:
    """As plugins of other hosts have them; lists and groups are their own affair."""
    plain = "name: p\nconfig:\n  keep: 6\n  word: hi\n  group: {a: 1}\n  most: null\n  all: [1]\n"
    registration = offered(directory, HERMES, plain)
    engine = host_of(registration, keep=9).make()
    assert (engine.keep, engine.word) == (9, "hi")
    assert not {"group", "most", "all"} & set(registration.options.model_fields)


@pytest.mark.parametrize("name", ["timeout_seconds", "model_dump", "summarizer", "not a name"])
def test_no_option_takes_the_name_of_another(directory: PluginDirectory, name: str) -> None:
    with pytest.raises(InvalidEngine, match="which cannot be one's name"):
        offered(directory, HERMES, f"name: p\nconfig:\n  {name}: {{}}\n")


@pytest.mark.parametrize(
    "clones", ["", "\n    def clone_for_agent(self): self.cloned = True; return type(self)()\n"]
)
def test_one_engine_for_all_is_copied_for_each_session(
    directory: PluginDirectory, clones: str
) -> None:
    source = (
        f"{HERMES}{clones}\nONE = Engine()\ndef register(ctx): ctx.register_context_engine(ONE)"
    )
    host = host_of(offered(directory, source))
    one, other = host.make(), host.make()
    assert one is not other
    assert type(one) is type(other)


def test_the_first_engine_of_a_plugin_is_its_engine(directory: PluginDirectory) -> None:
    source = (
        f"{HERMES}\ndef register(ctx):\n    ctx.register_context_engine(Engine())\n"
        "    ctx.register_context_engine(object())\n    ctx.register_command('x', print)\n"
    )
    assert offered(directory, source).id == "mine"


def test_what_it_says_of_its_threshold_is_taken_where_it_can_be(
    directory: PluginDirectory,
) -> None:
    plugin(directory.path, "p", HERMES.replace("name =", "threshold_percent = 50\n    name ="))
    directory.enable("p")
    registry = Registry(installed_engines(directory.path))
    assert registry.configured("mine").threshold == 0.75
    chosen = registry.options("mine", {"threshold": 0.4})
    assert registry.engine("mine", chosen).threshold == 0.4


def test_a_plugin_may_give_its_engine_another_id(directory: PluginDirectory) -> None:
    assert offered(directory, HERMES, "name: p\nengine: other\n").id == "other"
