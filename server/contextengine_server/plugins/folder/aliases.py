"""The names that plugins from other hosts import: ours stand in where the host is not installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from contextengine_server.plugins import context_store, dag_compressor, hermes, pyclaw


def stand_in(home: Path) -> None:
    """Makes `agent.context_engine` and `hermes_constants` of Hermes importable, and
    `pyclaw.agents.context.plugins` and `pyclaw.memory.context_store` of PyClaw, unless something of
    that name is. `home`: where plugins for Hermes keep their files; those that go by the
    environment find it in `HERMES_HOME`, unless that is set."""
    os.environ.setdefault("HERMES_HOME", str(home))

    def get_hermes_home() -> Path:
        home.mkdir(parents=True, exist_ok=True)
        return home

    constants = ModuleType("hermes_constants")
    constants.get_hermes_home = get_hermes_home  # type: ignore[attr-defined]
    _offer({"agent": _package("agent"), "agent.context_engine": hermes})
    _offer({"hermes_constants": constants})
    above = ("pyclaw", "pyclaw.agents", "pyclaw.agents.context", "pyclaw.memory")
    _offer(
        {name: _package(name) for name in above}
        | {
            "pyclaw.agents.context.plugins": pyclaw,
            "pyclaw.agents.context.plugins.base": pyclaw,
            "pyclaw.agents.context.plugins.dag_compressor": dag_compressor,
            "pyclaw.memory.context_store": context_store,
        }
    )


def _package(name: str) -> ModuleType:
    package = ModuleType(name)
    package.__path__ = []
    return package


def _offer(modules: dict[str, ModuleType]) -> None:
    """All of these or none: half a package of ours beside half of another's would be neither."""
    top = next(iter(modules))
    known = sys.modules.get(top)
    if known is None and importlib.util.find_spec(top) is None:
        sys.modules.update(modules)
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent and sys.modules.get(parent) is modules.get(parent):
            setattr(sys.modules[parent], child, module)
