"""The rpcs, each with its types, its deadline and whether it is safe to send twice; and gRPC's
retries from that."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message as ProtoMessage

from . import types as t

PACKAGE = "contextengine.v1"
MAX_ATTEMPTS = 4
"""How often a call is sent at most; gRPC itself allows no more than five."""

Request = TypeVar("Request", bound=ProtoMessage)
Response = TypeVar("Response", bound=ProtoMessage)

# Deadlines in seconds. Rows are written or read in milliseconds; the rest is for a cold store and a
# queue of writers.
QUICK = 15.0
# Counting tokens of, or searching through, many megabytes.
LONG = 60.0
# A model writes summaries, or a whole session streams.
SLOW = 600.0


@dataclass(frozen=True)
class Call(Generic[Request, Response]):
    """One rpc."""

    service: str
    method: str
    request: type[Request]
    response: type[Response]
    timeout: float | None = QUICK
    """Seconds. None: no deadline."""
    retried: bool = True
    """Whether it may be sent again on UNAVAILABLE: reads, and writes that carry ids."""
    streams: bool = False
    """Whether it has many requests or replies: gRPC itself opens it again."""

    @property
    def name(self) -> str:
        """`Service.Rpc`: what a client's `timeouts` name it by."""
        return f"{self.service}.{self.method}"

    @property
    def path(self) -> str:
        """The path on the wire."""
        return f"/{PACKAGE}.{self.service}/{self.method}"


_CORE = "ContextEngine"
BOOTSTRAP = Call(_CORE, "Bootstrap", t.BootstrapRequest, t.BootstrapResponse, LONG)
INGEST = Call(_CORE, "Ingest", t.IngestRequest, t.IngestResponse, LONG)
INGEST_BATCH = Call(_CORE, "IngestBatch", t.IngestBatchRequest, t.IngestBatchResponse, LONG)
ASSEMBLE = Call(_CORE, "Assemble", t.AssembleRequest, t.AssembleResponse, LONG)
COMPACT = Call(_CORE, "Compact", t.CompactRequest, t.CompactResponse, SLOW)
COMMIT_COMPACTION = Call(
    _CORE, "CommitCompaction", t.CommitCompactionRequest, t.CommitCompactionResponse
)
AFTER_TURN = Call(_CORE, "AfterTurn", t.AfterTurnRequest, t.AfterTurnResponse, LONG)
RECORD_HOST_CHANGE = Call(
    _CORE, "RecordHostChange", t.RecordHostChangeRequest, t.RecordHostChangeResponse
)
MAINTAIN = Call(_CORE, "Maintain", t.MaintainRequest, t.MaintainResponse)
REPORT_USAGE = Call(_CORE, "ReportUsage", t.ReportUsageRequest, t.ReportUsageResponse)
SHOULD_COMPACT = Call(_CORE, "ShouldCompact", t.ShouldCompactRequest, t.ShouldCompactResponse, LONG)
UPDATE_MODEL = Call(_CORE, "UpdateModel", t.UpdateModelRequest, t.UpdateModelResponse)
GET_STATUS = Call(_CORE, "GetStatus", t.GetStatusRequest, t.GetStatusResponse)
LIST_TOOLS = Call(_CORE, "ListTools", t.ListToolsRequest, t.ListToolsResponse)
# An engine's tool may do anything, and the request has no id: it is sent once.
CALL_TOOL = Call(_CORE, "CallTool", t.CallToolRequest, t.CallToolResponse, LONG, retried=False)
PREPARE_SUBAGENT_SPAWN = Call(
    _CORE, "PrepareSubagentSpawn", t.PrepareSubagentSpawnRequest, t.PrepareSubagentSpawnResponse
)
ROLLBACK_SUBAGENT_SPAWN = Call(
    _CORE, "RollbackSubagentSpawn", t.RollbackSubagentSpawnRequest, t.RollbackSubagentSpawnResponse
)
END_SUBAGENT = Call(_CORE, "EndSubagent", t.EndSubagentRequest, t.EndSubagentResponse)
RESET_SESSION = Call(_CORE, "ResetSession", t.ResetSessionRequest, t.ResetSessionResponse)
END_SESSION = Call(_CORE, "EndSession", t.EndSessionRequest, t.EndSessionResponse, LONG)
DISPOSE_SESSION = Call(_CORE, "DisposeSession", t.DisposeSessionRequest, t.DisposeSessionResponse)

SESSIONS_LIST = Call("Sessions", "List", t.SessionsListRequest, t.SessionsListResponse)
SESSIONS_GET = Call("Sessions", "Get", t.SessionsGetRequest, t.SessionsGetResponse)
# All or none, and the very same again is no error.
IMPORT = Call("Sessions", "Import", t.ImportRequest, t.ImportResponse, SLOW, streams=True)
EXPORT = Call("Sessions", "Export", t.ExportRequest, t.ExportResponse, SLOW, streams=True)
DELETE = Call("Sessions", "Delete", t.DeleteRequest, t.DeleteResponse, LONG)
WATCH = Call("Sessions", "Watch", t.WatchRequest, t.WatchResponse, None, streams=True)

ENGINES_LIST = Call("Engines", "List", t.EnginesListRequest, t.EnginesListResponse)
ENGINES_GET = Call("Engines", "Get", t.EnginesGetRequest, t.EnginesGetResponse)
DOCTOR = Call("Engines", "Doctor", t.DoctorRequest, t.DoctorResponse, LONG)
ASSIGN = Call("Engines", "Assign", t.AssignRequest, t.AssignResponse)
LIST_QUOTAS = Call("Engines", "ListQuotas", t.ListQuotasRequest, t.ListQuotasResponse)
SET_QUOTA = Call("Engines", "SetQuota", t.SetQuotaRequest, t.SetQuotaResponse)

SEARCH = Call("Recall", "Search", t.SearchRequest, t.SearchResponse, LONG)
INSPECT = Call("Recall", "Inspect", t.InspectRequest, t.InspectResponse)
EXPAND = Call("Recall", "Expand", t.ExpandRequest, t.ExpandResponse, LONG)

PROJECT = Call("Projection", "Project", t.ProjectRequest, t.ProjectResponse, LONG)

# A conversation: what was said on a broken stream cannot be said again by gRPC.
ATTACH = Call(
    "Runtime", "Attach", t.AttachRequest, t.AttachResponse, None, retried=False, streams=True
)

CALLS: tuple[Call[Any, Any], ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Call)
)
"""All of them."""


def service_config(calls: Iterable[Call[Any, Any]] = CALLS, given: str = "{}") -> str:
    """gRPC's service config: a stream that is safe to open twice is opened again on UNAVAILABLE,
    after 0.1 to 1 seconds. Unary calls are sent again by `attempts`, for longer than gRPC would.
    What is `given` comes before it, field by field. Raises ValueError where that is no JSON
    object."""
    theirs = json.loads(given)
    if not isinstance(theirs, dict):
        raise ValueError("grpc.service_config: must be a JSON object")
    return json.dumps(
        {
            "methodConfig": [
                {
                    "name": [
                        {"service": f"{PACKAGE}.{call.service}", "method": call.method}
                        for call in calls
                        if call.retried and call.streams
                    ],
                    "retryPolicy": {
                        "maxAttempts": MAX_ATTEMPTS,
                        "initialBackoff": "0.1s",
                        "maxBackoff": "1s",
                        "backoffMultiplier": 3,
                        "retryableStatusCodes": ["UNAVAILABLE"],
                    },
                }
            ]
        }
        | theirs
    )
