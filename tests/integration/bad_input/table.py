"""The table of bad requests: every rpc of the contract that is served has its cases."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from contextengine import types as t
from contextengine.messages import user
from tests.integration.bad_input import table_around, table_projection, table_subagents
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
    later,
    long_id,
    refs_of,
)
from tests.integration.harness import ref

NONE = ref("none")
DAG, COMPRESSOR = "the dag engine", "the compressor and layered engines"
PIPELINE = "the pipeline engine"
Change = t.RecordHostChangeRequest


def change(**kind: object) -> Change:
    return Change(session=S, change_id="c1", **kind)  # type: ignore[arg-type]


def search(query: str, **more: object) -> t.SearchRequest:
    return t.SearchRequest(session=S, query=query, **more)  # type: ignore[arg-type]


def time(seconds: int) -> Timestamp:
    return Timestamp(seconds=seconds)


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
        bad(
            "a projection into nothing",
            t.AssembleRequest(session=S, ingest=[user("x")], projection=t.ProjectionOptions()),
            "projection.target",
        ),
        later(
            "a preamble",
            t.AssembleRequest(session=S, preamble=t.Preamble(date_time="now")),
            "preamble",
            PIPELINE,
        ),
        later(
            "an objective",
            t.AssembleRequest(session=S, objective="Find it."),
            "objective",
            PIPELINE,
        ),
        later(
            "memory",
            t.AssembleRequest(session=S, memory_sections=[t.MemorySection(text="x")]),
            "memory_sections",
            COMPRESSOR,
        ),
    ],
    "ContextEngine/Compact": [
        *refs_of("ContextEngine/Compact"),
        *bad_budgets(lambda b: t.CompactRequest(session=S, budget=b)),
        absent(t.CompactRequest(session=NONE)),
        bad("measured", t.CompactRequest(session=S, current_token_count=-1), "current_token_count"),
        bad("a target that is not known", t.CompactRequest(session=S, target=99), "target"),  # type: ignore[arg-type]
        long_id("request_id", t.CompactRequest, session=S),
        later("a list", t.CompactRequest(session=S, live=t.LiveCompaction()), "live", COMPRESSOR),
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
    "Recall/Search": [
        *refs_of("Recall/Search"),
        absent(t.SearchRequest(session=NONE, query="x")),
        bad("no query", t.SearchRequest(session=S), "query"),
        bad("a blank query", t.SearchRequest(session=S, query=" \t"), "query"),
        bad("a long query", t.SearchRequest(session=S, query="ü" * 2_049), "query"),
        bad("no expression", search("(", mode=t.SEARCH_MODE_REGEX), "query"),
        bad("an expression with references", search(r"(a)\1", mode=t.SEARCH_MODE_REGEX), "query"),
        bad("an unknown scope", search("x", scope=99), "scope"),
        bad("an unknown mode", search("x", mode=99), "mode"),
        bad("less than no hits", search("x", limit=-1), "limit"),
        bad("a sequence below none", search("x", first_sequence=-1), "first_sequence"),
        bad("a last sequence below none", search("x", last_sequence=-1), "last_sequence"),
        bad(
            "a range that ends first",
            search("x", first_sequence=3, last_sequence=2),
            "last_sequence",
        ),
        bad("times that end first", search("x", start_time=time(9), end_time=time(9)), "end_time"),
        bad("no time", search("x", start_time=time(2**40)), "start_time"),
        bad("a page of nobody's", search("x", page_token="AAAA"), "page_token"),
        bad("a long page", search("x", page_token="A" * 2_000), "page_token"),
        bad("a revision below none", search("x", at_least_revision=-1), "at_least_revision"),
        contradictory(
            "roles of summaries",
            search("x", roles=[t.ROLE_USER], scope=t.SEARCH_SCOPE_SUMMARIES),
            "roles",
            "scope",
        ),
        later("memory", search("x", scope=t.SEARCH_SCOPE_MEMORY), "scope", COMPRESSOR),
        later("all sessions", search("x", all_sessions=True), "all_sessions", PIPELINE),
        *table_subagents.SEARCH,
    ],
    "Recall/Inspect": [
        *refs_of("Recall/Inspect"),
        absent(t.InspectRequest(session=NONE, summary_id="x")),
        bad("no summary", t.InspectRequest(session=S), "summary_id"),
        long_id("summary_id", t.InspectRequest, session=S),
        Case(
            "a summary of nobody's",
            [t.InspectRequest(session=S, summary_id="s9-aa")],
            (),
            "NOT_FOUND",
            "ROW_NOT_FOUND",
            {"field": "summary_id"},
        ),
        *table_subagents.INSPECT,
    ],
    "Recall/Expand": [
        *refs_of("Recall/Expand"),
        absent(t.ExpandRequest(session=NONE, sequences=[1])),
        bad("nothing to expand", t.ExpandRequest(session=S), "summary_ids"),
        bad("a long id", t.ExpandRequest(session=S, summary_ids=["x", LONG_ID]), "summary_ids[1]"),
        bad("a sequence below none", t.ExpandRequest(session=S, sequences=[1, -1]), "sequences[1]"),
        bad(
            "less than no tokens",
            t.ExpandRequest(session=S, sequences=[1], max_tokens=-1),
            "max_tokens",
        ),
        bad(
            "hardly a token",
            t.ExpandRequest(session=S, sequences=[1], max_tokens=255),
            "max_tokens",
        ),
        bad(
            "less than no depth",
            t.ExpandRequest(session=S, sequences=[1], max_depth=-1),
            "max_depth",
        ),
        bad(
            "a page of nobody's",
            t.ExpandRequest(session=S, sequences=[1], page_token="x"),
            "page_token",
        ),
        Case(
            "many sequences",
            [t.ExpandRequest(session=S, sequences=range(1, 1_002))],
            (),
            "RESOURCE_EXHAUSTED",
            "TOO_LARGE",
            {"limit": "1000", "size": "1001", "field": "sequences"},
        ),
        *table_subagents.EXPAND,
    ],
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
}
"""What an empty request is refused for, where it is not `session.agent_id`. Empty: it is taken."""
