"""The table of bad requests: every rpc of the contract that is served has its cases."""

from __future__ import annotations

from contextengine import types as t
from contextengine.messages import user
from tests.integration.bad_input import (
    table_around,
    table_projection,
    table_recall,
    table_subagents,
)
from tests.integration.bad_input.cases import (
    LONG_ID,
    MAX,
    Case,
    S,
    absent,
    bad,
    bad_budgets,
    bad_messages,
    bad_refs,
    bad_usage,
    contradictory,
    long_id,
    refs_of,
)
from tests.integration.harness import ref

NONE = ref("none")
Change = t.RecordHostChangeRequest


def change(**kind: object) -> Change:
    return Change(session=S, change_id="c1", **kind)  # type: ignore[arg-type]


CASES: dict[str, list[Case]] = {
    "ContextEngine/Bootstrap": [
        *refs_of("ContextEngine/Bootstrap"),
        *bad_messages("history[0]", lambda m: t.BootstrapRequest(session=NONE, history=[m])),
        *bad_refs("continues", lambda r: t.BootstrapRequest(session=NONE, continues=r))[1:],
        bad(
            "another agent",
            t.BootstrapRequest(session=S, continues=ref("x", agent="b")),
            "continues.agent_id",
        ),
        bad("itself", t.BootstrapRequest(session=S, continues=S), "continues"),
        bad("window", t.BootstrapRequest(session=NONE, window=-1), "window"),
        bad("a huge window", t.BootstrapRequest(session=NONE, window=MAX), "window"),
        bad(
            "a huge host",
            t.BootstrapRequest(session=NONE, host=t.HostInfo(locator="x" * 70_000)),
            "host",
        ),
        long_id("request_id", t.BootstrapRequest, session=NONE),
        long_id("model", t.BootstrapRequest, session=NONE),
        long_id("provider", t.BootstrapRequest, session=NONE),
        *table_subagents.BOOTSTRAP,
    ],
    "ContextEngine/Ingest": [
        *refs_of("ContextEngine/Ingest"),
        *bad_messages("message", lambda m: t.IngestRequest(session=S, message=m)),
        bad("no message", t.IngestRequest(session=S), "message"),
        long_id("request_id", t.IngestRequest, session=S, message=user("x")),
        Case(
            "other content",
            [t.IngestRequest(session=S, message=user("edited", id="m1"))],
            ["message[0].id"],
            "ALREADY_EXISTS",
            "MESSAGE_CONFLICT",
        ),
    ],
    "ContextEngine/IngestBatch": [
        *refs_of("ContextEngine/IngestBatch"),
        *bad_messages(
            "messages[1]", lambda m: t.IngestBatchRequest(session=S, messages=[user("x"), m])
        ),
        bad("no messages", t.IngestBatchRequest(session=S), "messages"),
        long_id("request_id", t.IngestBatchRequest, session=S, messages=[user("x")]),
    ],
    "ContextEngine/Assemble": [
        *refs_of("ContextEngine/Assemble")[1:],
        *bad_messages("ingest[0]", lambda m: t.AssembleRequest(session=S, ingest=[m])),
        *bad_messages(
            "live.messages[0]",
            lambda m: t.AssembleRequest(session=S, live=t.LiveList(messages=[m])),
        ),
        *bad_budgets(lambda b: t.AssembleRequest(session=S, budget=b, ingest=[user("x")])),
        contradictory(
            "the new and the whole",
            t.AssembleRequest(session=S, ingest=[user("x")], live=t.LiveList()),
            "ingest",
            "live",
        ),
        contradictory(
            "two prompts",
            t.AssembleRequest(session=S, prompt=[t.Part()], current_message_id="m1"),
            "prompt",
            "current_message_id",
        ),
        Case(
            "a prompt that is not stored",
            [t.AssembleRequest(session=S, ingest=[user("x")], current_message_id="none")],
            ["current_message_id"],
            "NOT_FOUND",
            "ROW_NOT_FOUND",
        ),
        bad(
            "measured", t.AssembleRequest(session=S, current_token_count=-1), "current_token_count"
        ),
        bad(
            "a revision below 0",
            t.AssembleRequest(session=S, at_least_revision=-1),
            "at_least_revision",
        ),
        bad(
            "a revision above all",
            t.AssembleRequest(session=S, at_least_revision=MAX),
            "at_least_revision",
        ),
        bad(
            "a file in the prompt",
            t.AssembleRequest(session=S, prompt=[t.Part(file=t.FilePart(size_bytes=MAX))]),
            "prompt[0].file.size_bytes",
        ),
        long_id("request_id", t.AssembleRequest, session=S, ingest=[user("x")]),
        long_id("model", t.AssembleRequest, session=S),
        long_id("provider", t.AssembleRequest, session=S),
        long_id("channel_type", t.AssembleRequest, session=S),
        bad(
            "a projection into nothing",
            t.AssembleRequest(session=S, ingest=[user("x")], projection=t.ProjectionOptions()),
            "projection.target",
        ),
        bad(
            "a retention that is none",
            t.AssembleRequest(session=S, cache_retention=9),  # type: ignore[arg-type]
            "cache_retention",
        ),
        bad(
            "an objective of many pages",
            t.AssembleRequest(session=S, objective="x" * 16_385),
            "objective",
        ),
        bad(
            "a file without a path",
            t.AssembleRequest(session=S, workspace_files=[t.WorkspaceFile(text="x")]),
            "workspace_files[0].path",
        ),
        bad(
            "a file with a path of a page",
            t.AssembleRequest(
                session=S, workspace_files=[t.WorkspaceFile(path="x" * 1_025, text="x")]
            ),
            "workspace_files[0].path",
        ),
        bad(
            "more files than a workspace has",
            t.AssembleRequest(session=S, workspace_files=[t.WorkspaceFile(path="x")] * 65),
            "workspace_files",
        ),
        bad(
            "more sections of memory than are taken",
            t.AssembleRequest(session=S, memory_sections=[t.MemorySection(text="x")] * 33),
            "memory_sections",
        ),
        bad(
            "memory that is too long",
            t.AssembleRequest(session=S, memory_sections=[t.MemorySection(text="x" * 16_385)]),
            "memory_sections",
        ),
        long_id("citations_mode", t.AssembleRequest, session=S),
    ],
    "ContextEngine/Compact": [
        *refs_of("ContextEngine/Compact"),
        *bad_budgets(lambda b: t.CompactRequest(session=S, budget=b)),
        absent(t.CompactRequest(session=NONE)),
        bad("measured", t.CompactRequest(session=S, current_token_count=-1), "current_token_count"),
        bad("a target that is not known", t.CompactRequest(session=S, target=99), "target"),  # type: ignore[arg-type]
        long_id("request_id", t.CompactRequest, session=S),
        *bad_messages(
            "live.messages[0]",
            lambda m: t.CompactRequest(session=S, live=t.LiveCompaction(messages=[m])),
        ),
        contradictory(
            "a proposal in the background",
            t.CompactRequest(session=S, propose_only=True, no_wait=True),
            "propose_only",
            "no_wait",
        ),
        bad(
            "less than no generation",
            t.CompactRequest(session=S, undo_to_generation=-1),
            "undo_to_generation",
        ),
        bad(
            "a generation to come",
            t.CompactRequest(session=S, undo_to_generation=1),
            "undo_to_generation",
        ),
        contradictory(
            "taken back and made",
            t.CompactRequest(session=S, undo_to_generation=0, force=True),
            "undo_to_generation",
            "force",
        ),
        Case(
            "another revision",
            [t.CompactRequest(session=S, expected_revision=9)],
            ["expected_revision"],
            "FAILED_PRECONDITION",
            "REVISION_MISMATCH",
            {"expected": "9", "actual": "1"},
        ),
    ],
    "ContextEngine/CommitCompaction": [
        *refs_of("ContextEngine/CommitCompaction"),
        absent(t.CommitCompactionRequest(session=NONE, proposal_id="p1")),
        bad("no proposal", t.CommitCompactionRequest(session=S), "proposal_id"),
        Case(
            "no such proposal",
            [t.CommitCompactionRequest(session=S, proposal_id="p1", accept=True)],
            ["proposal_id"],
            "NOT_FOUND",
            "ROW_NOT_FOUND",
            {"field": "proposal_id"},
        ),
    ],
    "ContextEngine/ShouldCompact": [
        *refs_of("ContextEngine/ShouldCompact"),
        *bad_budgets(lambda b: t.ShouldCompactRequest(session=S, budget=b)),
        absent(t.ShouldCompactRequest(session=NONE)),
        bad("measured", t.ShouldCompactRequest(session=S, prompt_tokens=-1), "prompt_tokens"),
        *bad_messages(
            "live.messages[0]",
            lambda m: t.ShouldCompactRequest(session=S, live=t.LiveCompaction(messages=[m])),
        ),
    ],
    "ContextEngine/AfterTurn": [
        *refs_of("ContextEngine/AfterTurn"),
        *bad_messages("messages[0]", lambda m: t.AfterTurnRequest(session=S, messages=[m])),
        *bad_budgets(lambda b: t.AfterTurnRequest(session=S, budget=b, messages=[user("x")])),
        *bad_usage(lambda u: t.AfterTurnRequest(session=S, messages=[user("x")], usage=u)),
        bad(
            "more than all",
            t.AfterTurnRequest(session=S, pre_prompt_message_count=1),
            "pre_prompt_message_count",
        ),
        bad(
            "less than none",
            t.AfterTurnRequest(session=S, pre_prompt_message_count=-1),
            "pre_prompt_message_count",
        ),
        bad(
            "measured",
            t.AfterTurnRequest(session=S, current_token_count=MAX),
            "current_token_count",
        ),
        long_id("request_id", t.AfterTurnRequest, session=S),
        long_id("advancement_key", t.AfterTurnRequest, session=S),
    ],
    "ContextEngine/RecordHostChange": [
        *refs_of("ContextEngine/RecordHostChange"),
        absent(Change(session=NONE, change_id="c1", rewind=Change.Rewind())),
        bad("no id", Change(session=S, rewind=Change.Rewind()), "change_id"),
        bad("a long id", Change(session=S, change_id=LONG_ID, rewind=Change.Rewind()), "change_id"),
        bad("no change", Change(session=S, change_id="c1"), "change"),
        bad("before all", change(rewind=Change.Rewind(after_sequence=-1)), "rewind.after_sequence"),
        bad("behind all", change(rewind=Change.Rewind(after_sequence=4)), "rewind.after_sequence"),
        bad(
            "no summary",
            change(compacted=Change.HostCompaction(first_sequence=1, last_sequence=2)),
            "compacted.summary",
        ),
        bad(
            "a huge summary",
            change(
                compacted=Change.HostCompaction(
                    first_sequence=1, last_sequence=2, summary="x" * 1_100_000
                )
            ),
            "compacted.summary",
        ),
        bad(
            "a range outside",
            change(
                compacted=Change.HostCompaction(first_sequence=1, last_sequence=MAX, summary="x")
            ),
            "compacted.first_sequence",
        ),
    ],
    "ContextEngine/Maintain": [
        *refs_of("ContextEngine/Maintain"),
        absent(t.MaintainRequest(session=NONE)),
    ],
    "ContextEngine/ReportUsage": [
        *refs_of("ContextEngine/ReportUsage"),
        *bad_usage(lambda u: t.ReportUsageRequest(session=S, usage=u)),
        absent(t.ReportUsageRequest(session=NONE, usage=t.Usage(input_tokens=1))),
        bad("nothing reported", t.ReportUsageRequest(session=S), "usage"),
        bad(
            "no assembly of ours",
            t.ReportUsageRequest(session=S, usage=t.Usage(), assembly_id="a1.x.y.z"),
            "assembly_id",
        ),
        bad(
            "a limit below 0",
            t.ReportUsageRequest(
                session=S, overflow=t.ReportUsageRequest.Overflow(limit_tokens=-1)
            ),
            "overflow.limit_tokens",
        ),
        bad(
            "observed below 0",
            t.ReportUsageRequest(
                session=S, overflow=t.ReportUsageRequest.Overflow(observed_tokens=-1)
            ),
            "overflow.observed_tokens",
        ),
        long_id("request_id", t.ReportUsageRequest, session=S, usage=t.Usage()),
    ],
    "ContextEngine/UpdateModel": [
        *refs_of("ContextEngine/UpdateModel"),
        bad("a window below 0", t.UpdateModelRequest(session=S, window=-1), "window"),
        bad("a huge window", t.UpdateModelRequest(session=S, window=MAX), "window"),
        bad(
            "output below 0",
            t.UpdateModelRequest(session=S, max_output_tokens=-1),
            "max_output_tokens",
        ),
        long_id("model", t.UpdateModelRequest, session=S),
        long_id("provider", t.UpdateModelRequest, session=S),
        long_id("request_id", t.UpdateModelRequest, session=S),
    ],
    "ContextEngine/GetStatus": [
        *refs_of("ContextEngine/GetStatus"),
        absent(t.GetStatusRequest(session=NONE)),
        bad(
            "a revision below 0",
            t.GetStatusRequest(session=S, at_least_revision=-1),
            "at_least_revision",
        ),
    ],
    "ContextEngine/ResetSession": [
        *refs_of("ContextEngine/ResetSession"),
        absent(t.ResetSessionRequest(session=NONE)),
        long_id("request_id", t.ResetSessionRequest, session=S),
    ],
    "ContextEngine/EndSession": [
        *refs_of("ContextEngine/EndSession"),
        absent(t.EndSessionRequest(session=NONE)),
        long_id("request_id", t.EndSessionRequest, session=S),
    ],
    "ContextEngine/DisposeSession": refs_of("ContextEngine/DisposeSession"),
    "ContextEngine/ListTools": refs_of("ContextEngine/ListTools"),
    "ContextEngine/CallTool": [
        *refs_of("ContextEngine/CallTool"),
        absent(
            t.CallToolRequest(session=NONE, name="ctx_search", arguments_json=b'{"query": "x"}')
        ),
        *table_subagents.CALL_TOOL,
    ],
    **table_recall.CASES,
    **table_around.CASES,
    **table_subagents.CASES,
    **table_projection.CASES,
}
"""By the rpc's name below the package. An empty list: there is nothing in the request that could be
wrong."""

EMPTY: dict[str, str] = {
    **table_subagents.EMPTY,
    "ContextEngine/Assemble": "",
    "ContextEngine/Ingest": "message",
    "ContextEngine/IngestBatch": "messages",
    "ContextEngine/RecordHostChange": "change_id",
    "ContextEngine/ReportUsage": "usage",
    "Recall/Search": "query",
    "Recall/Inspect": "summary_id",
    "Recall/Expand": "summary_ids",
    "Projection/Project": "options",
    "Runtime/Attach": "hello",
    "Sessions/List": "",
    "Sessions/Import": "header",
    "Sessions/Delete": "session.session_id",
    "Sessions/Watch": "",
    "Engines/List": "",
    "Engines/Get": "",
    "Engines/Doctor": "",
    "Engines/Assign": "engine_id",
    "Engines/ListQuotas": "",
    "Engines/SetQuota": "tenant",
}
"""What an empty request is refused for, where it is not `session.agent_id`. Empty: it is taken."""
