"""Which transport carries the calls of servers that tests start: `CONTEXTENGINE_TRANSPORT=native`
holds the native one to all that grpcio is held to."""

from __future__ import annotations

import os

from contextengine_server.api.pipeline import server
from contextengine_server.api.transports.kinds import TRANSPORTS

_SETTINGS = "CONTEXTENGINE_"
TESTED = os.environ.get("CONTEXTENGINE_TRANSPORT", "grpcio")

if TESTED != "grpcio":
    tested = {**TRANSPORTS, "grpcio": TRANSPORTS[TESTED]}
    setattr(server, "TRANSPORTS", tested)  # noqa: B010
    os.environ["CONTEXTENGINE_SERVER__TRANSPORT"] = TESTED


def environment() -> dict[str, str]:
    """The environment of a server in a process of its own: no setting of whoever runs tests, but
    the transport under test."""
    kept = {name: said for name, said in os.environ.items() if not name.startswith(_SETTINGS)}
    return kept if TESTED == "grpcio" else kept | {"CONTEXTENGINE_SERVER__TRANSPORT": TESTED}
