"""What waits for a dead service: in order, within bounds, past restarts of the process, and no
conflict blocks it."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from contextengine import types as t
from contextengine.calls import AFTER_TURN, ASSEMBLE, REPORT_USAGE
from tests.clients.conftest import running
from tests.clients.drivers import NAMED, PATIENCE_S, Driver, Json, Refused
from tests.unit.client.conftest import Server
from tests.unit.client.test_errors import failing, info

DEAD = "127.0.0.1:1"
"""Where nobody listens."""
RPCS = ("Assemble", "AfterTurn", "Ingest", "ReportUsage")
QUICK = {f"ContextEngine.{rpc}": 0.2 for rpc in RPCS}
"""For who waits for nobody."""
PATIENT: Json = {
    "retry_for": 0,
    "timeouts": {f"ContextEngine.{rpc}": PATIENCE_S for rpc in RPCS},
}
"""For a server that says it is away, and later that it is there, on a machine that may stand
still."""


def user(id: str, text: str = "hello") -> t.Message:
    return t.Message(id=id, role=t.ROLE_USER, parts=[t.Part(text=t.TextPart(text=text))])


def step(*messages: t.Message) -> t.AssembleRequest:
    return t.AssembleRequest(ingest=messages, budget=t.Budget(message_tokens=10_000))


def ids_of(driver: Driver, session: Json) -> list[str]:
    return [t.Message.FromString(message).id for message in driver.export(session)]


def test_it_is_sent_again_in_order(alone: Driver, scripted: Server, session: Json) -> None:
    down = failing(grpc.StatusCode.UNAVAILABLE)
    scripted.answers |= {ASSEMBLE.path: down, AFTER_TURN.path: down, REPORT_USAGE.path: down}
    scripted.answers["/contextengine.v1.ContextEngine/Ingest"] = down
    alone.connect(scripted.address, **PATIENT)
    alone.assemble(session, step(user("a")))
    # Behind what waits, nothing else is sent before it.
    scripted.requests.clear()
    reply = alone.session(session, "ingest", t.IngestRequest(message=user("b")), t.IngestResponse)
    assert reply == t.IngestResponse()
    assert {type(request) for request in scripted.requests} <= {t.AfterTurnRequest}
    turn = t.AfterTurnRequest(messages=[user("c")], advancement_key="k", is_heartbeat=True)
    assert alone.session(session, "after_turn", turn, t.AfterTurnResponse) == t.AfterTurnResponse()
    usage = t.ReportUsageRequest(usage=t.Usage(input_tokens=3))
    assert (
        alone.session(session, "report_usage", usage, t.ReportUsageResponse)
        == t.ReportUsageResponse()
    )
    context = alone.assemble(session, step(user("d")))
    assert context.ids == ["a", "b", "c", "d"]
    assert alone.pending(session) == 4
    other = {**session, "session_id": "other"}
    assert alone.assemble(other, step(user("x"))).ids == ["x"]
    assert alone.pending() == 5

    scripted.answers.clear()
    scripted.requests.clear()
    alone.assemble(session, step(user("e")))
    assert alone.pending(session) == 0
    assert alone.pending() == 1
    *waited, last = scripted.requests
    assert [[m.id for m in request.messages] for request in waited] == [["a"], ["b"], ["c"], ["d"]]
    assert [request.advancement_key for request in waited] == ["", "", "k", ""]
    assert waited[2].is_heartbeat
    assert all(request.request_id for request in waited)
    assert [m.id for m in last.ingest] == ["e"]
    alone.ask("flush")
    assert alone.pending() == 0
    assert [m.id for m in scripted.requests[-1].messages] == ["x"]


def test_a_service_that_hangs_is_away_too(alone: Driver, scripted: Server, session: Json) -> None:
    release = threading.Event()
    scripted.answers[ASSEMBLE.path] = lambda *_: release.wait(PATIENCE_S)
    alone.connect(scripted.address, timeouts=QUICK)
    began = time.monotonic()
    context = alone.assemble(session, step(user("a")))
    took = time.monotonic() - began
    release.set()
    assert context.degraded == {"reason": "DEADLINE_EXCEEDED", "unqueued": 0}
    assert context.ids == ["a"]
    assert took < PATIENCE_S / 2


def test_its_bounds(alone: Driver, session: Json) -> None:
    alone.connect(DEAD, timeouts=QUICK, max_queued_messages=2, max_queued_bytes=1_000)
    context = alone.assemble(session, step(user("a", "x" * 2_000)))
    assert context.degraded is not None
    assert context.degraded["unqueued"] == 1
    for id in "bc":
        alone.session(session, "ingest", t.IngestRequest(message=user(id)), t.IngestResponse)
    with pytest.raises(Refused) as caught:
        alone.session(session, "ingest", t.IngestRequest(message=user("d")), t.IngestResponse)
    assert caught.value.error["type"] == "QueueFull"
    assert caught.value.error["reason"] == "QUEUE_FULL"
    context = alone.assemble(session, step(user("e")))
    assert context.degraded is not None
    assert context.degraded["unqueued"] == 1
    assert context.ids == ["a", "b", "c", "e"]
    assert alone.pending() == 2


def test_a_refused_entry_does_not_block_what_follows(
    alone: Driver, scripted: Server, session: Json
) -> None:
    scripted.answers[ASSEMBLE.path] = failing(grpc.StatusCode.UNAVAILABLE)
    scripted.answers[AFTER_TURN.path] = failing(grpc.StatusCode.UNAVAILABLE)
    alone.connect(scripted.address, **PATIENT)
    for id in "abc":
        alone.assemble(session, step(user(id)))

    def refuse(request: t.AfterTurnRequest, context: grpc.ServicerContext) -> t.AfterTurnResponse:
        if request.messages[0].id == "a":
            failing(grpc.StatusCode.RESOURCE_EXHAUSTED, info("TOO_LARGE"))(request, context)
        if request.messages[0].id == "c":
            failing(grpc.StatusCode.FAILED_PRECONDITION, info("UNKNOWN_ENGINE"))(request, context)
        return t.AfterTurnResponse()

    scripted.answers[AFTER_TURN.path] = refuse
    with pytest.raises(Refused) as caught:
        alone.ask("flush", session=session)
    # What an operator can mend keeps the entry.
    assert caught.value.error["type"] == "UnknownEngine"
    assert alone.ask("pending", session=session) == {"pending": 1, "rejected": 1}


@pytest.mark.parametrize("code", ["RESOURCE_EXHAUSTED", "CANCELLED"])
def test_one_session_that_cannot_be_sent_holds_up_no_other(
    code: str, alone: Driver, scripted: Server, session: Json
) -> None:
    down = failing(grpc.StatusCode.UNAVAILABLE)
    scripted.answers |= {ASSEMBLE.path: down, AFTER_TURN.path: down}
    alone.connect(scripted.address, **PATIENT)
    ids = ("away", "quota", "well", "fine")
    for turn in "12":
        for id in ids:
            alone.assemble({**session, "session_id": id}, step(user(f"{id}{turn}")))

    def some(request: t.AfterTurnRequest, context: grpc.ServicerContext) -> t.AfterTurnResponse:
        if request.session.session_id == "away":
            down(request, context)
        if request.session.session_id == "quota":
            failing(grpc.StatusCode[code], info("SPAWN_LIMIT"))(request, context)
        return t.AfterTurnResponse()

    scripted.answers[AFTER_TURN.path] = some
    scripted.requests.clear()
    with pytest.raises(Refused) as caught:
        alone.ask("flush")
    # It says what went wrong first, and sends nothing of a session behind what it could not send.
    assert caught.value.error["code"] == "UNAVAILABLE"
    sent = [request.messages[0].id for request in scripted.requests]
    assert sorted(sent) == ["away1", "fine1", "fine2", "quota1", "well1", "well2"]
    assert alone.pending() == 4
    scripted.answers.clear()
    alone.ask("flush")
    assert alone.pending() == 0


def test_what_waits_is_erased_with_its_session(
    alone: Driver, scripted: Server, address: str, session: Json, spill: str
) -> None:
    alone.connect(DEAD, timeouts=QUICK, spill_file=spill)
    alone.assemble(session, step(user("a")))
    alone.connect(address, spill_file=spill)
    assert alone.session(session, "delete", t.DeleteRequest(), t.DeleteResponse).deleted
    assert alone.ask("pending") == {"pending": 0, "rejected": 0}
    alone.ask("flush")
    with pytest.raises(Refused, match="SESSION_NOT_FOUND"):
        alone.export(session)


def test_a_conflict_does_not_block_what_follows(
    alone: Driver, address: str, session: Json, spill: str
) -> None:
    alone.connect(address)
    alone.session(session, "ingest", t.IngestRequest(message=user("a", "first")), t.IngestResponse)
    alone.connect(DEAD, timeouts=QUICK, spill_file=spill)
    alone.assemble(session, step(user("a", "second"), user("b")))
    alone.connect(address, spill_file=spill)
    assert alone.pending() == 2
    context = alone.assemble(session, step(user("c")))
    assert context.ids == ["a", "b", "c"]
    assert context.items[0].message.parts[0].text.text == "first"
    assert alone.ask("pending") == {"pending": 0, "rejected": 0}
    assert ids_of(alone, session) == ["a", "b", "c"]


def test_it_outlives_the_process(alone: Driver, address: str, session: Json, spill: str) -> None:
    with running(alone.language) as mortal:
        mortal.connect(DEAD, timeouts=QUICK, spill_file=spill)
        for n in range(3):
            assert mortal.assemble(session, step(user(f"m{n}"), user(f"n{n}"))).degraded
    whole = Path(spill).read_bytes()
    assert not Path(spill).stat().st_mode & 0o077, "what was said is for others to read"
    # A last record that was being written when the process died is dropped.
    Path(spill).write_bytes(whole + whole[: len(whole) // 6])
    alone.connect(address, spill_file=spill)
    assert Path(spill).read_bytes() == whole
    assert alone.pending(session) == 6
    alone.ask("flush")
    assert Path(spill).read_bytes() == b""
    assert ids_of(alone, session) == ["m0", "n0", "m1", "n1", "m2", "n2"]
    # Records that were answered before a crash are sent again, which does no harm.
    Path(spill).write_bytes(whole)
    alone.connect(address, spill_file=spill)
    alone.ask("flush")
    assert ids_of(alone, session) == ["m0", "n0", "m1", "n1", "m2", "n2"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory with room for 16 KB."""
    directory = tmp_path / "disk"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(directory)]
    if (
        not shutil.which("mount")
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("file systems cannot be mounted here")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def test_a_full_disk_is_a_full_queue(
    alone: Driver, address: str, session: Json, small_disk: Path
) -> None:
    spill = str(small_disk / "spill")
    small, large = user("one"), user("two", "x" * 40_000)
    alone.connect(DEAD, timeouts=QUICK, spill_file=spill)
    context = alone.assemble(session, t.AssembleRequest(ingest=[small]))
    assert context.degraded is not None
    assert context.degraded["unqueued"] == 0
    context = alone.assemble(session, t.AssembleRequest(ingest=[large]))
    assert context.degraded is not None
    assert context.degraded["unqueued"] == 1
    assert context.ids == ["one", "two"]
    with pytest.raises(Refused, match="spill file") as caught:
        alone.session(session, "ingest", t.IngestRequest(message=large), t.IngestResponse)
    assert caught.value.error["type"] == "QueueFull"
    alone.session(session, "ingest", t.IngestRequest(message=user("three")), t.IngestResponse)
    assert alone.pending() == 2
    alone.connect(address, spill_file=spill)
    alone.ask("flush")
    assert ids_of(alone, session) == ["one", "three"]


def test_a_damaged_spill_file_is_an_error(alone: Driver, spill: str) -> None:
    Path(spill).write_bytes(b"\x03abc" * 20)
    with pytest.raises((Refused, AssertionError), match="spill"):
        alone.connect(DEAD, spill_file=spill)


@pytest.mark.parametrize("reader", NAMED)
def test_spill_files_are_the_same_in_every_language(
    reader: str, alone: Driver, everyone: dict[str, Driver], address: str, session: Json, spill: str
) -> None:
    alone.connect(DEAD, timeouts=QUICK, spill_file=spill)
    alone.assemble(session, step(user("a", "🦔")))
    turn = t.AfterTurnRequest(messages=[user("b")], pre_prompt_message_count=0)
    alone.session(session, "after_turn", turn, t.AfterTurnResponse)
    # The file of one client is not opened by another at the same time.
    alone.connect(address)
    everyone[reader].connect(address, spill_file=spill)
    assert everyone[reader].assemble(session, step(user("c"))).ids == ["a", "b", "c"]


def test_codex_goes_on_without_the_service(alone: Driver, session: Json) -> None:
    alone.connect(DEAD, timeouts=QUICK)
    prompt = [t.Part(text=t.TextPart(text=text)) for text in ("one", "two")]
    options = t.ProjectionOptions(base_instructions="Base.")
    request = t.AssembleRequest(prompt=prompt, projection=options, ingest=[user("a")])
    reply = alone.project_codex(session, request)
    assert (reply.action, reply.prompt, reply.instructions) == (
        t.PROJECTION_ACTION_START,
        "one\ntwo",
        "Base.",
    )
    assert reply.warnings[0].startswith("degraded:")
    request.projection.binding.thread_id = "thread"
    reply = alone.project_codex(session, request)
    assert reply.action == t.PROJECTION_ACTION_RESUME
    assert reply.binding == request.projection.binding
    assert alone.pending() == 2
