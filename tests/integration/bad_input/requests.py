"""A good request for every rpc that is served: what is bad is one change away from it."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from tests.integration.harness import ref

Requests = list[Message]


def _full() -> list[t.Message]:
    """Messages with every kind of part."""
    parts = [
        t.Part(reasoning=t.ReasoningPart(text="hm", signature=b"sig")),
        t.Part(text=t.TextPart(text="text")),
        t.Part(image=t.ImagePart(uri="http://127.0.0.1/p.png", width=3, height=4)),
        t.Part(file=t.FilePart(uri="file-1", size_bytes=10)),
        t.Part(opaque=t.OpaquePart(format="x", json=b"{}")),
        t.Part(tool_call=tool_call("c1", "look")),
    ]
    return [t.Message(role=t.ROLE_ASSISTANT, parts=parts), tool_result("c1", "found", id="")]


def _window() -> t.Budget:
    return t.Budget(window=t.WindowBudget(window=50_000, output_reserve=1_000))


Make = Callable[[t.SessionRef], Requests]

GOOD: dict[str, Make] = {
    "ContextEngine/Bootstrap": lambda s: [
        t.BootstrapRequest(session=s, history=_full(), host=t.HostInfo(host_id="h"))
    ],
    "ContextEngine/Ingest": lambda s: [t.IngestRequest(session=s, message=_full()[0])],
    "ContextEngine/IngestBatch": lambda s: [t.IngestBatchRequest(session=s, messages=_full())],
    "ContextEngine/Assemble": lambda s: [
        t.AssembleRequest(session=s, ingest=[user("new", id="")], budget=_window())
    ],
    "ContextEngine/Compact": lambda s: [t.CompactRequest(session=s, budget=_window())],
    "ContextEngine/CommitCompaction": lambda s: [
        t.CommitCompactionRequest(session=s, proposal_id="p1", refuse_reason="later")
    ],
    "ContextEngine/ShouldCompact": lambda s: [t.ShouldCompactRequest(session=s, budget=_window())],
    "ContextEngine/AfterTurn": lambda s: [
        t.AfterTurnRequest(
            session=s, messages=_full(), usage=t.Usage(input_tokens=1), budget=_window()
        )
    ],
    "ContextEngine/RecordHostChange": lambda s: [
        t.RecordHostChangeRequest(
            session=s, change_id="c1", rewind=t.RecordHostChangeRequest.Rewind(after_sequence=1)
        )
    ],
    "ContextEngine/Maintain": lambda s: [t.MaintainRequest(session=s)],
    "ContextEngine/ReportUsage": lambda s: [
        t.ReportUsageRequest(session=s, usage=t.Usage(input_tokens=1, output_tokens=2))
    ],
    "ContextEngine/UpdateModel": lambda s: [t.UpdateModelRequest(session=s, model="gpt-5")],
    "ContextEngine/GetStatus": lambda s: [t.GetStatusRequest(session=s)],
    "ContextEngine/ResetSession": lambda s: [t.ResetSessionRequest(session=s)],
    "ContextEngine/EndSession": lambda s: [t.EndSessionRequest(session=s)],
    "ContextEngine/DisposeSession": lambda s: [t.DisposeSessionRequest(session=s)],
    "ContextEngine/ListTools": lambda s: [t.ListToolsRequest(session=s)],
    "ContextEngine/CallTool": lambda s: [
        t.CallToolRequest(session=s, name="ctx_search", arguments_json=b'{"query": "q1"}')
    ],
    "ContextEngine/PrepareSubagentSpawn": lambda s: [
        t.PrepareSubagentSpawnRequest(
            parent=s,
            child=ref(f"{s.session_id}-child"),
            context_mode=t.CONTEXT_MODE_FORK,
            ttl=Duration(seconds=60),
            grant=t.RecallGrant(max_tokens=10),
        )
    ],
    "ContextEngine/RollbackSubagentSpawn": lambda s: [
        t.RollbackSubagentSpawnRequest(spawn_token="t", parent=s)
    ],
    "ContextEngine/EndSubagent": lambda s: [
        t.EndSubagentRequest(child=ref(f"{s.session_id}-child"))
    ],
    "Recall/Search": lambda s: [t.SearchRequest(session=s, query="q1")],
    "Recall/Inspect": lambda s: [t.InspectRequest(session=s, summary_id="s2-aa")],
    "Recall/Expand": lambda s: [t.ExpandRequest(session=s, sequences=[1])],
    "Projection/Project": lambda s: [
        t.ProjectRequest(
            session=s,
            budget=_window(),
            options=t.ProjectionOptions(
                target=t.PROJECTION_TARGET_CODEX,
                binding=t.ProjectionBinding(schema_version=1, thread_id="t1", last_sequence=1),
                host_events=[t.HostEvent(kind=t.HostEvent.KIND_MODEL_CHANGED)],
            ),
        )
    ],
    "Runtime/Attach": lambda s: [
        t.AttachRequest(
            hello=t.AttachRequest.Hello(host_id="h", agent_id=s.agent_id, models=["m"])
        ),
        t.AttachRequest(
            completion=t.AttachRequest.Completion(
                job_id="j", lease_id="l", text="x", usage=t.Usage(output_tokens=1)
            )
        ),
        t.AttachRequest(keep_lease=t.AttachRequest.KeepLease(job_id="j", lease_id="l")),
    ],
    "Sessions/List": lambda s: [t.SessionsListRequest(agent_id=s.agent_id)],
    "Sessions/Get": lambda s: [t.SessionsGetRequest(session=s)],
    "Sessions/Import": lambda s: [
        t.ImportRequest(header=t.ImportRequest.Header(session=ref(f"{s.session_id}-copy"))),
        t.ImportRequest(message=_full()[0]),
    ],
    "Sessions/Export": lambda s: [t.ExportRequest(session=s)],
    "Sessions/Delete": lambda s: [t.DeleteRequest(session=s)],
    "Sessions/Watch": lambda s: [t.WatchRequest(agent_id=s.agent_id, session_id=s.session_id)],
    "Engines/List": lambda s: [t.EnginesListRequest()],
    "Engines/Get": lambda s: [t.EnginesGetRequest(session=s)],
    "Engines/Doctor": lambda s: [t.DoctorRequest(session=s)],
    "Engines/Assign": lambda s: [t.AssignRequest(scope=s, engine_id="legacy")],
    "Engines/ListQuotas": lambda s: [t.ListQuotasRequest(tenant="acme")],
    "Engines/SetQuota": lambda s: [
        t.SetQuotaRequest(tenant="acme", quota=t.Quota(weight=2.0, calls=1_000))
    ],
}
"""By the rpc's name below the package."""

NOT_THERE = {"Recall/Inspect", "ContextEngine/CommitCompaction"}
"""Good requests that name what a session of three messages does not have: a summary, a proposal."""


def history() -> list[t.Message]:
    """What a session holds before it is treated badly."""
    return [user("q1", id="m1"), assistant("a1", id="m2"), user("q2", id="m3")]
