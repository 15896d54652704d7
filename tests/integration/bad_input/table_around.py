"""The table of bad requests for the services Sessions, Engines and Runtime."""

from __future__ import annotations

from typing import Any

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


def header(session: t.SessionRef, **more: Any) -> t.ImportRequest:
    return t.ImportRequest(header=t.ImportRequest.Header(session=session, **more))


HELLO = t.AttachRequest(hello=t.AttachRequest.Hello(host_id="h"))


def hello(what: str, *fields: str, **said: object) -> Case:
    """A harness that introduces itself badly."""
    wrong = t.AttachRequest(hello=t.AttachRequest.Hello(**said))  # type: ignore[arg-type]
    return Case(what, [wrong], [f"hello.{field}" for field in fields])


def completion(what: str, *fields: str, **said: object) -> Case:
    """A harness that answers badly."""
    wrong = t.AttachRequest.Completion(**{"job_id": "j", "lease_id": "l", **said})  # type: ignore[arg-type]
    return Case(
        what,
        [HELLO, t.AttachRequest(completion=wrong)],
        [f"completion.{field}" for field in fields],
    )


def keeping(what: str, field: str, **said: str) -> Case:
    """A harness that keeps a lease badly."""
    wrong = t.AttachRequest.KeepLease(**{"job_id": "j", "lease_id": "l", **said})
    return Case(what, [HELLO, t.AttachRequest(keep_lease=wrong)], [f"keep_lease.{field}"])


def quota(**given: float) -> t.SetQuotaRequest:
    """A quota that is wrong somewhere."""
    return t.SetQuotaRequest(tenant="a", quota=t.Quota(**given))  # type: ignore[arg-type]


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
        Case(
            "a wrong message",
            [header(NONE), t.ImportRequest(message=t.Message())],
            ["message[0].role"],
        ),
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
        bad(
            "a revision below 0",
            t.ExportRequest(session=S, at_least_revision=-1),
            "at_least_revision",
        ),
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
        bad(
            "everything of nobody",
            t.DeleteRequest(everything_of=t.DeleteRequest.Everything()),
            "everything_of.tenant",
        ),
        bad(
            "everything of less than none",
            t.DeleteRequest(
                everything_of=t.DeleteRequest.Everything(tenant="default", max_sessions=-1)
            ),
            "everything_of.max_sessions",
        ),
        bad(
            "everything of an agent whose name is too long",
            t.DeleteRequest(
                everything_of=t.DeleteRequest.Everything(tenant="default", agent_id="x" * 257)
            ),
            "everything_of.agent_id",
        ),
        Case(
            "a session and everything",
            [
                t.DeleteRequest(
                    session=S, everything_of=t.DeleteRequest.Everything(tenant="default")
                )
            ],
            ["session", "everything_of"],
            "INVALID_ARGUMENT",
            "CONTRADICTORY_FIELDS",
        ),
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
    "Runtime/Attach": [
        Case("nothing", [], ["hello"]),
        Case("an empty introduction", [t.AttachRequest()], ["hello"]),
        Case(
            "no introduction",
            [t.AttachRequest(keep_lease=t.AttachRequest.KeepLease(job_id="j", lease_id="l"))],
            ["hello"],
        ),
        Case("two introductions", [HELLO, HELLO], ["hello"]),
        Case("an empty message", [HELLO, t.AttachRequest()], ["kind"]),
        hello("a long name", "host_id", host_id=LONG_ID),
        hello("a long agent", "agent_id", agent_id=LONG_ID),
        hello("many models", "models", models=["m"] * 101),
        hello("a model without a name", "models[1]", models=["m", ""]),
        hello("a long model", "models[0]", models=[LONG_ID]),
        hello("fewer jobs than none", "max_concurrent_jobs", max_concurrent_jobs=-1),
        hello("too many jobs", "max_concurrent_jobs", max_concurrent_jobs=1_001),
        hello("no room", "max_input_tokens", max_input_tokens=-1),
        hello("more room than there is", "max_input_tokens", max_input_tokens=MAX),
        completion("of no job", "job_id", job_id=""),
        completion("of a long job", "job_id", job_id=LONG_ID),
        completion("without a lease", "lease_id", lease_id=""),
        completion("under a long lease", "lease_id", lease_id=LONG_ID),
        *(
            completion(
                f"{field.name} is {value}",
                f"usage.{field.name}",
                usage=t.Usage(**{field.name: value}),
            )
            for field in t.Usage.DESCRIPTOR.fields
            for value in (-1, MAX)
        ),
        keeping("of no job", "job_id", job_id=""),
        keeping("of a long job", "job_id", job_id=LONG_ID),
        keeping("no lease", "lease_id", lease_id=""),
        keeping("a long lease", "lease_id", lease_id=LONG_ID),
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
            {"engine": "none", "available": "compressor,dag,layered,legacy,pipeline"},
        ),
    ],
    "Engines/Doctor": bad_refs("session", lambda r: t.DoctorRequest(session=r)),
    "Engines/Assign": [
        *bad_refs("scope", lambda r: t.AssignRequest(scope=r, engine_id="legacy"))[:1],
        *bad_refs("scope", lambda r: t.AssignRequest(scope=r, engine_id="legacy"))[2:],
        bad("nothing to assign", t.AssignRequest(scope=S), "engine_id"),
        bad("no JSON", t.AssignRequest(scope=S, options_json=b"{"), "options_json"),
        bad(
            "no such model",
            t.AssignRequest(scope=S, options_json=b'{"compactionModel":"none"}'),
            "options_json",
        ),
        contradictory(
            "made and removed",
            t.AssignRequest(scope=S, clear=True, engine_id="dag"),
            "clear",
            "engine_id",
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
            {"engine": "none", "available": "compressor,dag,layered,legacy,pipeline"},
        ),
        long_id("request_id", t.AssignRequest, engine_id="dag"),
        long_id("engine_id", t.AssignRequest),
    ],
    "Engines/ListQuotas": [
        bad("a name too long", t.ListQuotasRequest(tenant="x" * 257), "tenant"),
        bad("a name not printable", t.ListQuotasRequest(tenant="a\nb"), "tenant"),
    ],
    "Engines/SetQuota": [
        bad("no tenant", t.SetQuotaRequest(clear=True), "tenant"),
        bad("a name too long", t.SetQuotaRequest(tenant="x" * 257, clear=True), "tenant"),
        bad("a name not printable", t.SetQuotaRequest(tenant="a\nb", clear=True), "tenant"),
        bad("nothing to set", t.SetQuotaRequest(tenant="a"), "quota"),
        bad("an empty quota", t.SetQuotaRequest(tenant="a", quota=t.Quota()), "quota"),
        *(
            bad(f"{name} {value}", quota(**{name: value}), f"quota.{name}")
            for name in ("calls", "long_calls", "streams", "waits")
            for value in (-1, 0, 1_000_001, 2**62)
        ),
        *(
            bad(f"weight {value}", quota(weight=value), "quota.weight")
            for value in (-1.0, 0.0, 1_000.5, float("inf"), float("nan"))
        ),
        contradictory(
            "set and removed",
            t.SetQuotaRequest(tenant="a", quota=t.Quota(calls=1), clear=True),
            "clear",
            "quota",
        ),
        long_id("request_id", t.SetQuotaRequest, tenant="a", clear=True),
    ],
}
"""By the rpc's name below the package. An empty list: there is nothing in the request that could be
wrong."""
