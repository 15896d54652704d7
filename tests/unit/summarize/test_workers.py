"""Worker processes: what they are, and that neither lateness, death nor cancellation leaves one
behind or mixes replies."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from contextengine_server.summarize import (
    ExtractiveSummarizer,
    SourceMessage,
    SummarizerChain,
    SummarizerFailed,
    SummaryRequest,
    WorkerFailed,
    WorkerPool,
    extract,
)
from contextengine_server.tokens import TokenCounter

PATIENCE_S = 60
"""A worker starts within it, on a busy machine as well."""


def about_me() -> tuple[int, int, list[str]]:
    return os.getpid(), os.nice(0), sorted(sys.modules)


def echo(value: object) -> object:
    return value


def spin(begun: Path) -> None:
    """Says that it has begun, and works for ever."""
    begun.touch()
    while True:
        pass


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


def shout(text: str) -> str:
    print(text * 100_000)
    return "said"


def fail(text: str) -> None:
    raise ValueError(text)


def refuse() -> None:
    raise SummarizerFailed("nothing to say")


def unsendable() -> object:
    return lambda: None


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture(autouse=True)
def functions_of_this_module_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]), prepend=os.pathsep)


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(workers=1, nice=7, deadline=PATIENCE_S)
    yield pool
    await pool.close()


async def test_a_worker_is_another_process_niced_and_without_grpc(pool: WorkerPool) -> None:
    pid, nice, modules = await pool.run("acme", about_me)
    assert pid != os.getpid()
    assert nice == min(19, os.nice(0) + 7)
    assert not [
        name for name in modules if name.partition(".")[0] in {"grpc", "uvloop", "sqlalchemy"}
    ]
    assert not [
        name for name in modules if name.startswith("contextengine_server.") and ".api" in name
    ]


async def test_no_process_before_the_first_use_and_the_same_one_after(pool: WorkerPool) -> None:
    assert not pool._all
    first, *_ = await pool.run("acme", about_me)
    second, *_ = await pool.run("acme", about_me)
    assert first == second


async def test_arguments_and_results_of_megabytes_travel(pool: WorkerPool) -> None:
    blob = os.urandom(5_000_000)
    assert await pool.run("acme", echo, blob) == blob


async def test_what_a_library_prints_does_not_reach_the_replies(pool: WorkerPool) -> None:
    assert await pool.run("acme", shout, "noise ") == "said"
    assert await pool.run("acme", echo, 3) == 3


async def test_an_error_names_its_type_and_not_its_text(pool: WorkerPool) -> None:
    with pytest.raises(WorkerFailed, match=r"^raised ValueError$"):
        await pool.run("acme", fail, "text of a message")
    with pytest.raises(SummarizerFailed, match="nothing to say"):
        await pool.run("acme", refuse)
    with pytest.raises(WorkerFailed, match="raised"):
        await pool.run("acme", unsendable)
    assert await pool.run("acme", echo, "still there") == "still there"


async def test_a_worker_that_died_while_idle_is_replaced_unnoticed(pool: WorkerPool) -> None:
    first, *_ = await pool.run("acme", about_me)
    os.kill(first, signal.SIGKILL)
    second, *_ = await pool.run("acme", about_me)
    assert second != first


async def test_one_that_dies_at_work_fails_its_call_and_no_other(pool: WorkerPool) -> None:
    with pytest.raises(WorkerFailed, match="its worker died"):
        await pool.run("acme", os._exit, 3)
    assert await pool.run("acme", echo, 1) == 1
    # A call that kills its workers gets no third one.
    with pytest.raises(WorkerFailed, match="its worker died"):
        await pool.run("acme", os._exit, 3)
    assert await pool.run("acme", echo, 2) == 2


async def test_lateness_costs_the_worker_and_not_the_next_call(
    pool: WorkerPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, *_ = await pool.run("acme", about_me)
    with monkeypatch.context() as hurried:
        hurried.setattr(pool, "_deadline", 0.5)
        with pytest.raises(WorkerFailed, match=r"took longer than 0\.5 s"):
            await pool.run("acme", spin, tmp_path / "begun")
    assert gone(late)
    assert await pool.run("acme", echo, "next") == "next"


async def test_cancelling_ends_the_work_and_mixes_no_replies(
    pool: WorkerPool, tmp_path: Path
) -> None:
    busy, *_ = await pool.run("acme", about_me)
    call = asyncio.create_task(pool.run("acme", spin, tmp_path / "begun"))
    waiting = asyncio.create_task(pool.run("acme", echo, "mine"))
    await until((tmp_path / "begun").exists)
    assert not waiting.done(), "one worker does one thing at a time"
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert gone(busy)
    assert await waiting == "mine"


async def test_where_all_are_busy_tenants_come_by_turns(pool: WorkerPool, tmp_path: Path) -> None:
    """And one that gives up leaves its turn to who is behind it."""
    done: list[str] = []

    async def call(tenant: str) -> None:
        await pool.run(tenant, echo, 1)
        done.append(tenant)

    busy = asyncio.create_task(pool.run("noisy", spin, tmp_path / "begun"))
    await until((tmp_path / "begun").exists)
    crowd = [asyncio.create_task(call("noisy")) for _ in range(6)]
    gone = asyncio.create_task(call("quiet"))
    last = asyncio.create_task(call("quiet"))
    await asyncio.sleep(0)
    assert len(pool._waiting) == 8
    gone.cancel()
    busy.cancel()
    await asyncio.gather(*crowd, last)
    assert done.index("quiet") <= 1
    assert pool._free == 1


async def test_two_workers_work_at_once() -> None:
    pool = WorkerPool(workers=2)
    try:
        results = await asyncio.gather(*(pool.run("acme", about_me) for _ in range(6)))
        assert len({pid for pid, *_ in results}) == 2
    finally:
        await pool.close()


async def test_closing_ends_every_process_also_a_busy_one(tmp_path: Path) -> None:
    pool = WorkerPool(workers=3)
    pids = {
        pid for pid, *_ in await asyncio.gather(*(pool.run("acme", about_me) for _ in range(3)))
    }
    begun = [tmp_path / "one", tmp_path / "two"]
    busy = [asyncio.create_task(pool.run("acme", spin, file)) for file in begun]
    for file in begun:
        await until(file.exists)
    await asyncio.wait_for(pool.close(), PATIENCE_S)
    for call in busy:
        with pytest.raises(WorkerFailed):
            await call
    assert len(pids) == 3
    assert all(map(gone, pids))
    await pool.close()
    with pytest.raises(WorkerFailed, match="closed"):
        await pool.run("acme", echo, 1)


async def test_a_worker_leaves_when_the_server_is_gone() -> None:
    pool = WorkerPool()
    pid, *_ = await pool.run("acme", about_me)
    (worker,) = pool._all
    os.kill(pid, signal.SIGINT)  # Ctrl-C reaches the whole group and is the server's affair
    assert (await pool.run("acme", about_me))[0] == pid
    worker._writer.close()  # what the worker sees when the server dies
    assert await asyncio.to_thread(worker.process.wait, PATIENCE_S) == 0
    await pool.close()


async def test_extraction_in_a_worker_is_extraction_here(pool: WorkerPool) -> None:
    messages = tuple(
        SourceMessage(
            "user", f"We chose option {n} on 2026-01-{n:02}. It took a while to get there.", n
        )
        for n in range(1, 29)
    )
    request = SummaryRequest(messages, 700, 120, focus="option 9", language="en")
    there = await ExtractiveSummarizer(pool, "o200k_base").summarize(request)
    assert there == extract(request, TokenCounter("o200k_base").count_text)
    assert there.summarizer == "extractive"
    with pytest.raises(SummarizerFailed, match="no text"):
        await ExtractiveSummarizer(pool, "o200k_base").summarize(SummaryRequest((), 10, 5))


async def test_without_descriptors_the_note_that_counts_is_written(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what cannot start a worker now may do so later."""

    def none_left() -> object:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    count = TokenCounter("o200k_base").count_text
    request = SummaryRequest((SourceMessage("user", "We chose option 9. " * 40, 1),), 700, 120)
    chain = SummarizerChain([ExtractiveSummarizer(pool, "o200k_base")], count)
    with monkeypatch.context() as patched:
        patched.setattr("contextengine_server.summarize.workers.pool.socket.socketpair", none_left)
        with pytest.raises(WorkerFailed, match="no worker can be started"):
            await pool.run("acme", echo, 1)
        noted = await chain.summarize(request)
    assert (noted.summarizer, noted.fallback) == ("count-only", True)
    assert (await chain.summarize(request)).summarizer == "extractive"
