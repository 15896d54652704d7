"""What compose makes of the variables that a file of its own asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ASKED = re.compile(r"\$\{(?P<name>[A-Z_]+)(?::-(?P<default>[^}]*)|:\?[^}]*)\}")


def with_variables(environment: Mapping[str, str], **given: str) -> dict[str, str]:
    """A service's environment, where these variables are set. Raises KeyError where one that must
    be set is not among them."""

    def put_in(asked: re.Match[str]) -> str:
        if asked["default"] is None:
            return given[asked["name"]]
        return given.get(asked["name"]) or asked["default"]

    return {name: _ASKED.sub(put_in, str(value)) for name, value in environment.items()}
