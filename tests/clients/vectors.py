"""Reading tests/conformance/vectors."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message as ProtoMessage

from tests.clients.drivers import ROOT

Kind = TypeVar("Kind", bound=ProtoMessage)


def vectors(name: str) -> Any:
    """The content of a file of vectors."""
    return json.loads(
        (ROOT / "tests" / "conformance" / "vectors" / name).read_text(encoding="utf-8")
    )


def parsed(kind: type[Kind], value: Any) -> Kind:
    """A message from protobuf's JSON form."""
    found: Kind = json_format.ParseDict(value, kind())
    return found
