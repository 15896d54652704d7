"""Settings from file, environment and flags; their documentation; checks; other hosts'
configuration made ours.

`lint`, `docs` and `importing` are modules of their own, since a server that starts needs none of
them.
"""

from contextengine_server.config.loading import (
    DEFAULT_FILE,
    FILE_VARIABLE,
    SettingsError,
    load_settings,
)
from contextengine_server.config.settings import Settings, TokenSettings
from contextengine_server.engines.fields import Problem

__all__ = [
    "DEFAULT_FILE",
    "FILE_VARIABLE",
    "Problem",
    "Settings",
    "SettingsError",
    "TokenSettings",
    "load_settings",
]
