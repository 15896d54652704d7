"""What goes on for long: watching a session, and lending a model to the server."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Queue

import grpc
import pytest

from contextengine import Client, user
from contextengine import types as t
from contextengine.calls import ATTACH
from tests.clients.drivers import Driver, Json, Refused, written
from tests.clients.mortal import Mortal
from tests.unit.client.conftest import Server
from tests.unit.client.test_errors import failing

HELLO = t.AttachRequest.Hello(host_id="loop", max_concurrent_jobs=2, max_input_tokens=90_000)
TEXT = "The parcel 4711 went to Utrecht; the user asked when it will come."
# A crowded machine takes over ten seconds to start a server, which is then found within five.
PATIENCE_S = 60
Requests = Iterator[t.AttachRequest]
Replies = Iterator[t.AttachResponse]


def test_what_happens_is_watched(driver: Driver, session: Json, address: str) -> None:
    with Client(address) as client:
        handle = client.session(**session)
        seen = threading.Event()

        def ingest() -> None:
            # Nothing tells when a watch has begun: something happens until it is seen.
            while not seen.wait(0.05):
                handle.ingest(user("again"))

        busy = threading.Thread(target=ingest)
        busy.start()
        with handle.watch() as stream:
            first = next(stream)
            seen.set()
        busy.join()
        for text in "bc":
            handle.ingest(user(text))
        answer = driver.ask("watch", session=session, resume_position=first.position, count=2)
    events = [t.WatchResponse.FromString(base64.b64decode(event)) for event in answer["events"]]
    assert [(event.name, event.session_id) for event in events] == [
        ("session:ingested", session["session_id"])
    ] * 2
    assert len({first.position, *(event.position for event in events)}) == 3


class Asking:
    """The server's end of Attach, played by a test: one script a stream, and what the harness said
    on all of them."""

    def __init__(self, server: Server, *scripts: Callable[[Requests], Replies]) -> None:
        self._scripts = list(scripts)
        self._heard: Queue[t.AttachRequest] = Queue()
        server.answers[ATTACH.path] = self._serve

    def _serve(self, requests: Requests, context: grpc.ServicerContext) -> Replies:
        def listened() -> Requests:
            for request in requests:
                self._heard.put(request)
                yield request

        heard = listened()
        script, *self._scripts = self._scripts
        yield from script(heard)
        if self._scripts:
            context.abort(grpc.StatusCode.UNAVAILABLE, "this stream breaks")
        for _ in heard:
            pass

    def hears(self, *kinds: str) -> t.AttachRequest:
        """What the harness says next, which is of one of these kinds."""
        said = self._heard.get(timeout=PATIENCE_S)
        assert said.WhichOneof("kind") in kinds, said
        return said


def job(name: str, lease_s: float = 60) -> t.AttachResponse:
    """A job that is handed out now."""
    found = t.AttachResponse(job=t.AttachResponse.Job(job_id=name, lease_id=f"lease of {name}"))
    found.job.lease_expire_time.FromNanoseconds(int((time.time() + lease_s) * 1e9))
    return found


def received(name: str) -> t.AttachResponse:
    return t.AttachResponse(receipt=t.AttachResponse.Receipt(job_id=name, accepted=True))


def welcome(requests: Requests) -> t.AttachResponse:
    """The first answer, to the first thing said."""
    assert next(requests).hello == HELLO
    return t.AttachResponse(welcome=t.AttachResponse.Welcome(stream_id="s"))


def done(name: str, **more: object) -> t.AttachRequest.Completion:
    said = more or {"text": TEXT}
    return t.AttachRequest.Completion(job_id=name, lease_id=f"lease of {name}", **said)  # type: ignore[arg-type]


def lend(driver: Driver, server: Server, delay: float = 0, failures: int = 0) -> None:
    driver.connect(server.address)
    driver.ask("lend", hello=written(HELLO), text=TEXT, delay=delay, failures=failures)


def test_a_lent_model_answers_and_fails(alone: Driver, scripted: Server) -> None:
    def script(requests: Requests) -> Replies:
        yield welcome(requests)
        for name in ("one", "two", "three"):
            yield job(name)
            next(requests)
            yield received(name)

    asking = Asking(scripted, script)
    lend(alone, scripted, failures=2)
    asking.hears("hello")
    for name in ("one", "two"):
        failed = done(name, error="model_failed", retryable=True)
        assert asking.hears("completion").completion == failed
    assert asking.hears("completion").completion == done("three")
    assert alone.ask("lent") == {"jobs": 3}


def test_work_in_hand_outlives_a_stream(alone: Driver, scripted: Server) -> None:
    """A job of a stream that broke is answered on the next one, and again on the one after it where
    nobody received it."""

    def breaks(requests: Requests) -> Replies:
        yield welcome(requests)
        yield job("one")

    def forgets(requests: Requests) -> Replies:
        yield welcome(requests)
        assert next(requests).completion.job_id == "one"

    def receives(requests: Requests) -> Replies:
        yield welcome(requests)
        assert next(requests).completion.job_id == "one"
        yield received("one")
        yield job("two")

    asking = Asking(scripted, breaks, forgets, receives)
    lend(alone, scripted, delay=0.5)
    for kind in ("hello", "hello", "completion", "hello", "completion"):
        said = asking.hears(kind)
        assert kind == "hello" or said.completion == done("one")
    assert asking.hears("completion").completion == done("two")
    assert alone.ask("lent") == {"jobs": 2}


def test_a_lease_is_kept_and_what_nobody_wants_is_not_answered(
    alone: Driver, scripted: Server
) -> None:
    def script(requests: Requests) -> Replies:
        yield welcome(requests)
        # A lease that is kept is of a job in hand: a job that is cancelled sooner may never begin.
        yield job("unwanted", lease_s=1)
        assert next(requests).keep_lease.job_id == "unwanted"
        yield t.AttachResponse(cancel=t.AttachResponse.Cancel(job_id="unwanted", reason="late"))
        yield job("kept", lease_s=1)

    asking = Asking(scripted, script)
    # Each second that a job takes a lease is kept, of what is not wanted perhaps as well.
    lend(alone, scripted, delay=4)
    asking.hears("hello")
    assert asking.hears("keep_lease").keep_lease.job_id == "unwanted"
    while (kept := asking.hears("keep_lease").keep_lease).job_id == "unwanted":
        pass
    assert (kept.job_id, kept.lease_id) == ("kept", "lease of kept")
    while (said := asking.hears("keep_lease", "completion")).HasField("keep_lease"):
        pass
    assert said.completion == done("kept")
    assert alone.ask("lent") == {"jobs": 2}


def test_a_refused_stream_ends_the_lending(alone: Driver, scripted: Server) -> None:
    scripted.answers[ATTACH.path] = failing(grpc.StatusCode.PERMISSION_DENIED)
    refused = None
    # Nothing tells when a driver has heard that it is refused: it may be asked too soon.
    for pause_s in (0.3, 3, 30):
        scripted.requests.clear()
        lend(alone, scripted)
        deadline = time.monotonic() + PATIENCE_S
        while not scripted.requests:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(pause_s)
        try:
            alone.ask("lent")
        except Refused as error:
            refused = error
            break
    assert refused is not None
    assert refused.error["code"] == "PERMISSION_DENIED"
    assert len(scripted.requests) == 1


def test_a_server_is_lent_a_model_through_its_death(
    alone: Driver, session: Json, tmp_path: Path
) -> None:
    server = Mortal(tmp_path)
    server.start()
    try:
        alone.connect(server.address)
        alone.ask("lend", hello=written(HELLO), text=TEXT, delay=0, failures=0)
        for life in range(2):
            if life:
                server.kill()
                server.start()
            said = [
                user(f"{life} {n}: " + "The parcel 4711 went to Utrecht. " * 60) for n in range(20)
            ]
            alone.session(
                session, "ingest_batch", t.IngestBatchRequest(messages=said), t.IngestBatchResponse
            )
            wait_attached(alone, session)
            reply = alone.session(
                session, "compact", t.CompactRequest(force=True), t.CompactResponse
            )
            assert reply.compacted, reply.reason
            budget = t.Budget(message_tokens=50_000)
            context = alone.assemble(session, t.AssembleRequest(budget=budget), delta=False)
            texts = [
                item.message.parts[0].text.text
                for item in context.items
                if item.HasField("summary")
            ]
            assert len(texts) > life
            assert all(TEXT in text for text in texts)
        assert alone.ask("lent")["jobs"] >= 2
    finally:
        server.end()


def wait_attached(driver: Driver, session: Json) -> None:
    """Waits until the server has what was queued for it, and the harness."""
    request = t.GetStatusRequest(session=t.SessionRef(**session))
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(Refused):
            driver.ask("flush", session=session)
            status = driver.call("ContextEngine.GetStatus", request, t.GetStatusResponse)
            if status.summarizers.attached_harness_count == 1:
                return
        time.sleep(0.1)
    pytest.fail("the harness did not attach")
