"""The table of bad requests for the services Sessions and Engines."""

from __future__ import annotations

from contextengine import types as t
from contextengine.messages import assistant, user
from tests.integration.bad_input.cases import (
    LONG_ID,
    MAX,
    Case,
    S,
    absent,
    bad,
    bad_refs,
    contradictory,
    long_id,
    refs_of,
)
from tests.integration.harness import ref

NONE = ref("none")


def header(session: t.SessionRef, **more: str) -> t.ImportRequest:
    return t.ImportRequest(header=t.ImportRequest.Header(session=session, **more))


CASES: dict[str, list[Case]] = {
    "Sessions/List": [
        bad("a page below 0", t.SessionsListRequest(page_size=-1), "page_size"),
        bad("no page of ours", t.SessionsListRequest(page_token="x"), "page_token"),
        long_id("agent_id", t.SessionsListRequest),
        long_id("session_key", t.SessionsListRequest),
    ],
    "Sessions/Get": [*refs_of("Sessions/Get"), absent(t.SessionsGetRequest(session=NONE))],
    "Sessions/Import": [
        *bad_refs("header.session", header),
        Case("nothing", [], ["header"]),
        Case("no header", [t.ImportRequest(message=user("x"))], ["header"]),
        Case("two headers", [header(NONE), header(NONE)], ["header"]),
        Case("an empty part", [header(NONE), t.ImportRequest()], ["message[0]"]),
        Case("a wrong message", [header(NONE), t.ImportRequest(message=t.Message())], ["message[0].role"]),
        Case("a long model", [header(NONE, model=LONG_ID)], ["header.model"]),
        Case("a long provider", [header(NONE, provider=LONG_ID)], ["header.provider"]),
        Case(
            "another session",
            [header(S), t.ImportRequest(message=assistant("other"))],
            [],
            "ALREADY_EXISTS",
            "SESSION_EXISTS",
            {"session_id": "s1", "messages": "3"},
        ),
    ],
    "Sessions/Export": [
        *refs_of("Sessions/Export"),
        absent(t.ExportRequest(session=NONE)),
        bad("a revision below 0", t.ExportRequest(session=S, at_least_revision=-1), "at_least_revision"),
        bad("as of before all", t.ExportRequest(session=S, as_of_revision=-1), "as_of_revision"),
        Case(
            "as of later",
            [t.ExportRequest(session=S, as_of_revision=2)],
            ["as_of_revision"],
            "NOT_FOUND",
            "ROW_NOT_FOUND",
        ),
    ],
    "Sessions/Delete": [
        *refs_of("Sessions/Delete"),
        bad("a key alone", t.DeleteRequest(session=ref("", key="main")), "session.session_id"),
        long_id("request_id", t.DeleteRequest, session=S),
        Case(
            "another revision",
            [t.DeleteRequest(session=S, expected_revision=MAX)],
            ["expected_revision"],
            "FAILED_PRECONDITION",
            "REVISION_MISMATCH",
            {"expected": str(MAX), "actual": "1"},
        ),
    ],
    "Sessions/Watch": [
        long_id("agent_id", t.WatchRequest),
        long_id("session_id", t.WatchRequest),
    ],
    "Engines/List": [],
    "Engines/Get": [
        *bad_refs("session", lambda r: t.EnginesGetRequest(session=r))[:1],
        *bad_refs("session", lambda r: t.EnginesGetRequest(session=r))[2:],
        Case(
            "no such engine",
            [t.EnginesGetRequest(engine_id="none")],
            [],
            "FAILED_PRECONDITION",
            "UNKNOWN_ENGINE",
            {"engine": "none", "available": "dag,legacy"},
        ),
    ],
    "Engines/Doctor": bad_refs("session", lambda r: t.DoctorRequest(session=r)),
    "Engines/Assign": [
        *bad_refs("scope", lambda r: t.AssignRequest(scope=r, engine_id="legacy"))[:1],
        *bad_refs("scope", lambda r: t.AssignRequest(scope=r, engine_id="legacy"))[2:],
        bad("nothing to assign", t.AssignRequest(scope=S), "engine_id"),
        bad("no JSON", t.AssignRequest(scope=S, options_json=b"{"), "options_json"),
        contradictory(
            "made and removed", t.AssignRequest(scope=S, clear=True, engine_id="dag"), "clear", "engine_id"
        ),
        contradictory(
            "made and removed again",
            t.AssignRequest(scope=S, clear=True, options_json=b"{}"),
            "clear",
            "options_json",
        ),
        Case(
            "no such engine",
            [t.AssignRequest(scope=S, engine_id="none")],
            [],
            "FAILED_PRECONDITION",
            "UNKNOWN_ENGINE",
            {"engine": "none", "available": "dag,legacy"},
        ),
        long_id("request_id", t.AssignRequest, engine_id="dag"),
        long_id("engine_id", t.AssignRequest),
    ],
}
"""By the rpc's name below the package. An empty list: there is nothing in the request that could be wrong."""
