"""Which transport carries the calls of servers that tests start: `CONTEXTENGINE_TRANSPORT=native`
holds the native one to all that grpcio is held to."""

from __future__ import annotations

import os

from contextengine_server.api.pipeline import server
from contextengine_server.api.transports.kinds import TRANSPORTS

TESTED = os.environ.get("CONTEXTENGINE_TRANSPORT", "grpcio")

if TESTED != "grpcio":
    tested = {**TRANSPORTS, "grpcio": TRANSPORTS[TESTED]}
    setattr(server, "TRANSPORTS", tested)  # noqa: B010
    os.environ["CONTEXTENGINE_SERVER__TRANSPORT"] = TESTED
