"""The audit's lines: who was turned away, what operators did, what was deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
from structlog.testing import capture_logs

from contextengine import AsyncClient
from contextengine import types as t
from contextengine.messages import user
from contextengine_proto.v1 import assemble_pb2, engines_pb2, engines_pb2_grpc
from contextengine_server.api.pipeline.audit import Audit
from contextengine_server.api.pipeline.auth import TokenGrant, hash_token
from contextengine_server.api.pipeline.server import ServerOptions
from contextengine_server.telemetry.logs import SECRET_KEYS, TEXT_KEYS
from tests.integration.api_infra.house import failure, house
from tests.integration.harness import ALICE, TOKENS, ref
from tests.integration.harness import house as living

SECRET, WEAK = "an operator's secret", "a runtime's secret"
GUARDED = ServerOptions(
    address="127.0.0.1:0",
    tokens=(
        TokenGrant(hash_token(SECRET), "acme", "operator", "ops laptop"),
        TokenGrant(hash_token(WEAK), "acme", "runtime", "agent pool"),
    ),
)
REQUEST = assemble_pb2.AssembleRequest()


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


def told(logs: list[Any], event: str) -> list[Any]:
    """The lines of an event, nothing of which the log withholds."""
    found = [entry for entry in logs if entry["event"] == event]
    for entry in found:
        assert not entry.keys() & (SECRET_KEYS | TEXT_KEYS)
    return found


async def test_who_is_turned_away_is_told_with_the_tokens_name() -> None:
    with capture_logs() as logs:
        async with house(options=GUARDED) as h:
            engines: Any = engines_pb2_grpc.EnginesStub(h.channel)
            await failure(engines.Assign(engines_pb2.AssignRequest(), metadata=bearer(WEAK)))
    [line] = told(logs, "credentials_refused")
    assert line["reason"] == "PERMISSION_DENIED"
    assert line["caller"] == "agent pool"
    assert line["rpc"] == "contextengine.v1.Engines/Assign"
    assert line["peer"].startswith("ipv4:127.0.0.1:")
    assert WEAK not in str(logs)


async def test_guesses_do_not_fill_the_log() -> None:
    class Call:
        """What the audit asks of a call."""

        def __getattr__(self, name: str) -> Any:
            return Call() if name in ("rpc", "caller") else name

    class Error:
        reason = "UNAUTHENTICATED"

    time = [100.0]
    audit = Audit(lambda: time[0])
    call: Any = Call()
    error: Any = Error()
    with capture_logs() as logs:
        for _ in range(50):
            audit.refused(call, error)
        time[0] += 1
        audit.refused(call, error)
        time[0] += 1
        audit.refused(call, error)
    assert [line["untold"] for line in told(logs, "credentials_refused")] == [0, 49, 0]


async def test_a_stranger_is_told_of_too() -> None:
    with capture_logs() as logs:
        async with house(options=GUARDED) as h:
            failed = await failure(h.engine.Assemble(REQUEST, metadata=bearer("a guess")))
            assert failed.code is grpc.StatusCode.UNAUTHENTICATED
    [line] = told(logs, "credentials_refused")
    assert (line["reason"], line["caller"]) == ("UNAUTHENTICATED", "")
    assert "a guess" not in str(logs)


async def test_what_operators_do_is_told() -> None:
    with capture_logs() as logs:
        async with house(options=GUARDED) as h:
            engines: Any = engines_pb2_grpc.EnginesStub(h.channel)
            await engines.Assign(engines_pb2.AssignRequest(), metadata=bearer(SECRET))
            await h.engine.Assemble(REQUEST, metadata=bearer(SECRET))
    [line] = told(logs, "operator_call")
    assert (line["rpc"], line["tenant"], line["caller"]) == (
        "contextengine.v1.Engines/Assign",
        "acme",
        "ops laptop",
    )
    assert SECRET not in str(logs)


async def test_what_is_deleted_is_told(tmp_path: Path) -> None:
    named = [{**TOKENS[0], "name": "alice's own"}, *TOKENS[1:]]
    with capture_logs() as logs:
        async with (
            living(tmp_path, **{"auth.tokens": named}) as at,
            AsyncClient(at.app.address, token=ALICE) as client,
        ):
            await client.ingest(ref(), user("a secret word"))
            for _ in range(2):
                await client.sessions.delete(t.SessionRef(agent_id="agent", session_id="s1"))
    [line] = told(logs, "deleted")
    assert (line["session"], line["sessions"]) == ("s1", 1)
    assert (line["tenant"], line["caller"]) == ("alice", "alice's own")
    assert "a secret word" not in str(logs)
