"""Who is admitted, whose turn it is, and who is told to come back: in the order in which calls come
and go, without a server."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from contextengine_server.api.pipeline import admission, refusals
from contextengine_server.api.pipeline.admission import AHEAD_S, Admission
from contextengine_server.api.pipeline.limits import Limits
from contextengine_server.errors import Draining, Overloaded
from contextengine_server.fairness.presence import PRESENT_S
from contextengine_server.fairness.quota import Quota
from contextengine_server.telemetry.metrics import Metrics
from tests.unit.api.desk import Desk, FakeCall, told


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refusals are told at once, however fast they follow each other."""
    monkeypatch.setattr(refusals, "BURST", 1_000_000)


async def test_tenants_come_by_turns_however_many_calls_one_has() -> None:
    desk = Desk(working=4)
    noisy = [desk.ask("noisy") for _ in range(400)]
    quiet = [desk.ask("quiet") for _ in range(3)]
    # One place of five is left for others; the first of quiet has it at once.
    assert [call.working for call in noisy[:6]] == [True] * 4 + [False] * 2
    assert [call.working for call in quiet] == [True, False, False]
    order: list[str] = []
    working = [*noisy[:4], quiet[0]]
    while len(order) < 40:
        desk.done(working.pop(0))
        new = [one for one in (*noisy, *quiet) if one.working and one not in working]
        order += [one.tenant for one in new]
        working += new
    # quiet's two others were among the first that came; then noisy has all there is.
    assert Counter(order[:5])["quiet"] == 2
    assert Counter(order)["noisy"] == 38


async def test_a_tenant_has_few_places_while_another_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The clock stands: on a machine with much to do the other was there no longer.
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 1_000.0)
    desk = Desk(working=32, calls=1_000)
    noisy = [desk.ask("noisy") for _ in range(200)]
    assert sum(call.working for call in noisy) == 32
    assert not desk.admission.gives_way(noisy[0])
    quiet = desk.ask("quiet")
    assert quiet.working
    assert [desk.admission.gives_way(call) for call in (noisy[0], quiet)] == [True, False]
    # What is worked on already goes on; of 200 steps that follow none has more than one beside it.
    working = [call for call in noisy if call.working]
    beside = []
    for _ in range(100):
        desk.done(working.pop(0))
        working += [call for call in noisy if call.working and call not in working]
        beside.append(len(working))
    assert beside[31:] == [1] * 69
    # Between two calls of the other there are two.
    desk.done(quiet)
    assert sum(call.working for call in noisy) == 2


async def test_who_has_calls_waiting_or_hanging_goes_before_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock[0])
    desk = Desk(working=32, calls=1_000)
    for tenant in ("one", "other"):
        desk.done(desk.ask(tenant))
    many = {tenant: [desk.ask(tenant) for _ in range(9)] for tenant in ("one", "other")}
    # Both have more than their places: neither makes room for the other.
    assert [sum(call.working for call in calls) for calls in many.values()] == [2, 2]
    hanging = desk.ask("quiet")
    one, other = [[call for call in calls if call.working] for calls in many.values()]
    for call in (*one, *other):
        desk.done(call)
    assert [sum(call.working for call in calls) for calls in many.values()] == [1, 1]
    clock[0] += AHEAD_S + 0.1
    desk.done(next(call for call in many["one"] if call.working and call not in one))
    assert [sum(call.working for call in calls) for calls in many.values()] == [2, 2]
    assert hanging.working


async def test_a_place_that_time_gives_needs_no_other_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of two tenants hang; another of one of them has its place when theirs go before it no
    more."""
    monkeypatch.setattr(admission, "AHEAD_S", 0.02)
    desk = Desk(working=32, calls=1_000)
    for tenant in ("one", "other"):
        assert desk.ask(tenant).working
    more = desk.ask("one")
    assert not more.working
    async with asyncio.timeout(5):
        assert more.turn is not None
        await more.turn
    assert more.working


async def test_who_is_alone_again_has_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock[0])
    desk = Desk(working=32, calls=1_000)
    desk.done(desk.ask("quiet"))
    noisy = [desk.ask("noisy") for _ in range(100)]
    assert sum(call.working for call in noisy) == 2
    clock[0] += PRESENT_S + 0.1
    desk.done(noisy[0])
    assert sum(call.working for call in noisy) == 32


async def test_what_a_tenant_weighs_are_its_places_beside_others() -> None:
    desk = Desk({"heavy": Quota(weight=3.0), "light": Quota(weight=0.1)}, working=32)
    other = desk.ask("other")
    many = {tenant: [desk.ask(tenant) for _ in range(30)] for tenant in ("heavy", "light")}
    assert [sum(call.working for call in calls) for calls in many.values()] == [3, 1]
    desk.done(other)
    assert [sum(call.working for call in calls) for calls in many.values()] == [6, 1]


async def test_weights_are_the_shares_of_turns() -> None:
    desk = Desk({"heavy": Quota(weight=3.0)}, working=32, calls=1_000)
    calls = [desk.ask(tenant) for _ in range(100) for tenant in ("light", "heavy")]
    working = [call for call in calls if call.working]
    served = []
    for _ in range(100):
        desk.done(working.pop(0))
        (new,) = [call for call in calls if call.working and call not in working]
        served.append(new.tenant)
        working.append(new)
    assert 72 <= Counter(served)["heavy"] <= 78


async def test_what_hangs_for_one_tenant_leaves_places_for_others() -> None:
    desk = Desk(working=32)
    for _ in range(100):
        desk.ask("noisy")
    assert [desk.ask("quiet").working for _ in range(2)] == [True, True]


@pytest.mark.parametrize("kind", ["calls", "long_calls", "streams", "waits"])
async def test_where_all_is_taken_the_largest_makes_room_for_the_smaller(kind: str) -> None:
    desk = Desk(calls=10, long_calls=10, streams=10, waits=10, working=2)
    noisy = [desk.ask("noisy", kind) for _ in range(10)]
    with pytest.raises(Overloaded) as caught:
        desk.ask("noisy", kind)
    assert caught.value.metadata == {"limit": "10", "kind": kind, "cause": "limit"}
    quiet = [desk.ask("quiet", kind) for _ in range(5)]
    with pytest.raises(Overloaded):
        desk.ask("quiet", kind)
    assert desk.admission.held("noisy")[kind] == desk.admission.held("quiet")[kind] == 5
    gone = [one for one in noisy if one.stopped or told(one)]
    assert gone == noisy[5:]  # the newest: the least was done for them
    assert not any(one.working for one in gone)
    errors = [one.stopped or told(one) for one in gone]
    assert {(error.metadata["cause"], bool(error.retry_after_ms)) for error in errors if error} == {
        ("pushed_out", True)
    }
    assert (desk.refused(kind, "pushed_out"), desk.refused(kind, "limit")) == (5, 2)
    assert len(quiet) == 5


async def test_what_is_worked_on_is_not_given_up_for_others() -> None:
    desk = Desk(calls=3, working=3)
    for _ in range(3):
        desk.ask("noisy")
    with pytest.raises(Overloaded):
        desk.ask("quiet")


async def test_a_quota_holds_for_its_tenant_and_follows_its_row_at_once() -> None:
    desk = Desk({"small": Quota(streams=2)})
    held = [desk.ask("small", "streams") for _ in range(2)]
    with pytest.raises(Overloaded) as caught:
        desk.ask("small", "streams")
    assert caught.value.metadata == {"limit": "2", "kind": "streams", "cause": "quota"}
    assert caught.value.retry_after_ms
    desk.ask("other", "streams")
    desk.quotas.replace({"small": Quota(streams=3)})
    desk.ask("small", "streams")
    desk.quotas.replace({"small": Quota(streams=1)})
    desk.done(held[0], "streams")
    with pytest.raises(Overloaded):  # two are there still, which is more than one
        desk.ask("small", "streams")
    assert desk.refused("streams", "quota") == 2


async def test_who_waits_too_long_is_told_before_anything_is_done() -> None:
    desk = Desk(working=1, max_wait_s=0.01)
    first = desk.ask("a")
    late = desk.ask("a")
    with pytest.raises(Overloaded) as caught:
        await late.turn  # type: ignore[misc]
    assert caught.value.metadata["cause"] == "waited"
    assert not late.working
    desk.done(late)
    desk.done(first)
    assert (desk.admission.in_flight, desk.refused("calls", "waited")) == (0, 1)
    assert desk.ask("a").working


async def test_whose_deadline_leaves_no_time_is_told_at_his_turn() -> None:
    desk = Desk(working=1)
    first = desk.ask("a")
    desk.admission.takes_s = 0.1
    hopeless, hopeful = desk.ask("a", left=0.15), desk.ask("a", left=0.25)
    desk.done(first)
    error = told(hopeless)
    assert error is not None
    assert error.metadata["cause"] == "deadline"
    assert (hopeless.working, hopeful.working) == (False, True)


async def test_what_a_call_takes_is_learnt_from_those_that_went_well() -> None:
    desk = Desk(working=1)
    for _ in range(200):
        desk.done(desk.ask("a"), took_s=0.5)
    assert 0.45 < desk.admission.takes_s <= 0.5


async def test_who_goes_away_while_waiting_leaves_nothing_behind() -> None:
    desk = Desk(working=1)
    first, gone, next_ = desk.ask("a"), desk.ask("a"), desk.ask("a")
    assert gone.turn is not None
    gone.turn.cancel()
    desk.done(gone)
    desk.done(first)
    assert next_.working
    desk.done(next_)
    assert desk.admission.in_flight == 0


async def test_the_longer_the_line_the_later_to_come_back_and_not_all_at_once() -> None:
    desk = Desk(working=1, calls=100, retry_after_ms=100)
    for _ in range(100):
        desk.ask("a")
    delays = []
    for _ in range(50):
        with pytest.raises(Overloaded) as caught:
            desk.ask("a")
        delays.append(caught.value.retry_after_ms)
    assert all(delay is not None and 200 <= delay <= 2_000 for delay in delays)


async def test_a_wait_holds_no_place_and_takes_its_turn_again() -> None:
    desk = Desk(working=1, waits=2)
    waiting = desk.ask("a")
    kind = desk.admission.calls
    async with desk.admission.away(waiting, kind):
        held = desk.admission.held("a")
        assert held == {"calls": 0, "waiting_calls": 0, "long_calls": 0, "streams": 0, "waits": 1}
        other = desk.ask("b")
        assert other.working
        back = asyncio.get_running_loop().call_soon(desk.done, other)
    assert back is not None
    assert waiting.working
    assert desk.admission.held("a")["waits"] == 0


async def test_waits_have_a_quota_and_one_refused_goes_on_holding_nothing() -> None:
    desk = Desk({"a": Quota(waits=1)}, working=8)
    first, second = desk.ask("a"), desk.ask("a")
    async with desk.admission.away(first, desk.admission.calls):
        with pytest.raises(Overloaded) as caught:
            async with desk.admission.away(second, desk.admission.calls):
                raise AssertionError("it waits")
        assert caught.value.metadata["kind"] == "waits"
    desk.done(first)
    desk.done(second)
    assert desk.admission.in_flight == 0


async def test_a_wait_that_is_cut_off_is_counted_out() -> None:
    desk = Desk(working=1)
    call = desk.ask("a")
    with pytest.raises(TimeoutError):
        async with desk.admission.away(call, desk.admission.calls):
            raise TimeoutError
    desk.done(call)
    assert desk.admission.in_flight == 0
    assert desk.ask("a").working


async def test_who_drains_takes_nobody_and_lets_those_that_wait_finish() -> None:
    desk = Desk(working=1)
    first, second = desk.ask("a"), desk.ask("a")
    drain = asyncio.create_task(desk.admission.drain(30))
    await asyncio.sleep(0)
    with pytest.raises(Draining):
        desk.ask("a")
    desk.done(first)
    assert second.working
    desk.done(second)
    assert await drain == 0


async def test_at_ten_times_the_load_goodput_stays() -> None:
    """Counted, in a time of its own: so many places, each call a tick; ten come for each that can
    be served, and each gives up after twenty ticks. Served in time is what counts."""
    # Seven tenants, of whom each has a sixteenth of the places of one.
    desk, places, patience = Desk(working=32, calls=1_000), 14, 20
    desk.admission.takes_s = 1.0
    working: list[FakeCall] = []
    waiting: list[FakeCall] = []
    good = refused = 0
    for tick in range(300):
        for call in working:
            good += call.left is not None and call.left >= 0
            desk.done(call)
        for number in range(10 * places):
            try:
                waiting.append(desk.ask(f"tenant{(number + tick) % 7}", left=patience))
            except Overloaded:
                refused += 1
        working = [call for call in waiting if call.working]
        waiting = [call for call in waiting if not call.working and told(call) is None]
        for call in (*working, *waiting):
            assert call.left is not None
            call.left -= 1
        for call in [call for call in waiting if call.left <= 0]:  # type: ignore[operator]
            desk.done(call)
            waiting.remove(call)
    assert good >= 0.9 * 299 * places


async def test_threads_are_hurried_while_a_call_goes_before_others_that_wait() -> None:
    told: list[bool] = []
    admission = Admission(Limits(working=32), Metrics(), hurry=told.append)

    def ask(tenant: str) -> FakeCall:
        call = FakeCall(tenant)
        admission.enter(call, admission.calls)
        return call

    quiet = ask("quiet")
    first = ask("noisy")
    assert told == []  # nobody waits
    second = ask("noisy")
    assert told == [True]
    admission.leave(quiet, admission.calls)
    assert told == [True, False]
    for call in (first, second):
        admission.leave(call, admission.calls)
    assert told == [True, False]
