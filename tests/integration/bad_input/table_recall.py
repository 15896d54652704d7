"""Bad requests of the service Recall."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from contextengine import types as t
from tests.integration.bad_input import table_subagents
from tests.integration.bad_input.cases import (
    LONG_ID,
    Case,
    S,
    absent,
    bad,
    contradictory,
    long_id,
    refs_of,
)
from tests.integration.harness import ref

NONE = ref("none")


def search(query: str, **more: object) -> t.SearchRequest:
    return t.SearchRequest(session=S, query=query, **more)  # type: ignore[arg-type]


def time(seconds: int) -> Timestamp:
    return Timestamp(seconds=seconds)


CASES: dict[str, list[Case]] = {
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
        contradictory(
            "a sequence and an id",
            search("x", last_sequence=1, last_message_id="m"),
            "last_sequence",
            "last_message_id",
        ),
        long_id("first_message_id", t.SearchRequest, session=S, query="x"),
        Case(
            "an id of nobody's",
            [search("x", last_message_id="nobody's")],
            ("last_message_id",),
            "NOT_FOUND",
            "ROW_NOT_FOUND",
            {"id": "nobody's"},
        ),
        bad("times that end first", search("x", start_time=time(9), end_time=time(9)), "end_time"),
        bad("no time", search("x", start_time=time(2**40)), "start_time"),
        bad("a page of nobody's", search("x", page_token="AAAA"), "page_token"),
        bad("a long page", search("x", page_token="A" * 9_000), "page_token"),
        bad("a revision below none", search("x", at_least_revision=-1), "at_least_revision"),
        contradictory(
            "roles of summaries",
            search("x", roles=[t.ROLE_USER], scope=t.SEARCH_SCOPE_SUMMARIES),
            "roles",
            "scope",
        ),
        *(
            contradictory(
                f"memory and {name}",
                search("x", scope=t.SEARCH_SCOPE_MEMORY, **{name: value}),
                "scope",
                name,
            )
            for name, value in {
                "roles": [t.ROLE_USER],
                "spawn_token": "x",
                "first_sequence": 1,
                "last_sequence": 1,
                "first_message_id": "x",
                "last_message_id": "x",
            }.items()
        ),
        bad(
            "a pattern of memory that is none",
            search("(", scope=t.SEARCH_SCOPE_MEMORY, mode=t.SEARCH_MODE_REGEX),
            "query",
        ),
        bad(
            "a page of nobody's memory",
            search("x", scope=t.SEARCH_SCOPE_MEMORY, page_token="AAAA"),
            "page_token",
        ),
        contradictory(
            "all sessions and those of the key",
            search("x", all_sessions=True, key_sessions=True),
            "all_sessions",
            "key_sessions",
        ),
        *(
            contradictory(
                f"{others} and {name}",
                search("x", **{others: True, name: value}),
                others,
                name,
            )
            for others in ("all_sessions", "key_sessions")
            for name, value in {
                "first_sequence": 1,
                "last_sequence": 1,
                "first_message_id": "x",
                "last_message_id": "x",
                "spawn_token": "x",
            }.items()
        ),
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
        bad("no id", t.ExpandRequest(session=S, message_ids=["x", ""]), "message_ids[1]"),
        bad("a long one", t.ExpandRequest(session=S, message_ids=[LONG_ID]), "message_ids[0]"),
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
}
