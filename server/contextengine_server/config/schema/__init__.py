"""How settings and the options of engines are declared, read and documented.

Both are declared with these types, so that a wrong name or value is refused in the same words
wherever it comes from: a file, the environment, a flag or a call.
"""

from contextengine_server.config.schema.description import (
    SettingDoc,
    describe,
    hide_credentials,
    show,
)
from contextengine_server.config.schema.mapping import merge, parse, read_names
from contextengine_server.config.schema.problems import OptionsError, Problem, problems_of
from contextengine_server.config.schema.types import (
    Duration,
    OrOff,
    Ratio,
    Secret,
    Size,
    Whole,
    is_secret,
)

__all__ = [
    "Duration",
    "OptionsError",
    "OrOff",
    "Problem",
    "Ratio",
    "Secret",
    "SettingDoc",
    "Size",
    "Whole",
    "describe",
    "hide_credentials",
    "is_secret",
    "merge",
    "parse",
    "problems_of",
    "read_names",
    "show",
]
