"""A plugin's package, imported under a name of its own."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

NAMESPACE = "contextengine_plugins"
"""The package in which those of plugins stand, so that none takes the name of another module."""


def load_package(name: str, start: Path) -> ModuleType:
    """The package of the plugin `name`, which begins with the file `start`. Raises what its code
    raises, and leaves nothing of it behind then."""
    parent = sys.modules.setdefault(NAMESPACE, ModuleType(NAMESPACE))
    parent.__path__ = []
    module_name = f"{NAMESPACE}.{re.sub(r'[^0-9A-Za-z_]', '_', name)}"
    forget(module_name)
    spec = importlib.util.spec_from_file_location(
        module_name, start, submodule_search_locations=[str(start.parent)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        forget(module_name)
        raise
    return module


def forget(module_name: str) -> None:
    """A package and its modules are imported anew when they are next asked for."""
    for known in list(sys.modules):
        if known == module_name or known.startswith(f"{module_name}."):
            del sys.modules[known]
