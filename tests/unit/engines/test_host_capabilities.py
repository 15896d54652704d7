"""What follows from what a host says that it can do, whatever that is
(docs/semantics.md#what-a-host-can-do)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_proto.v1 import engine_info_pb2 as engine_pb
from contextengine_server.api.replies import engine_info
from contextengine_server.commands.turn.bootstrap import HostFacts, Introduction
from contextengine_server.engines.dag import DagOptions
from contextengine_server.engines.dag.engine import DagEngine
from contextengine_server.engines.registration import Registration
from contextengine_server.errors import HostCapabilityMissing
from tests.unit.commands.house import S1, TENANT, Rows, Server, scope, spoken

KNOWN = ("assemble-before-prompt", "compact", "thread-bootstrap-projection")
NAMES = (*KNOWN, "bootstrap", "after-turn", "maintain", "compacts-transcript", "from the future")
ANY = st.lists(st.sampled_from(NAMES), unique=True).map(tuple)


def demanding(required: tuple[str, ...]) -> Registration:
    """An engine that needs these of a host."""

    class Demanding(DagEngine):
        id = "demanding"

        def __init__(self, options: DagOptions) -> None:
            super().__init__(options)
            self.declared = replace(self.declared, host_capabilities=frozenset(required))

    return Registration("demanding", DagOptions, Demanding, "plugin:test")


async def begun(engine: str, *registered: Registration) -> Server:
    named: dict[str, Any] = {"engine.default": engine}
    return await Server(Rows(), engines=registered, **named).open()


def introduced(capabilities: tuple[str, ...]) -> Introduction:
    return Introduction(HostFacts(b"host", capabilities, "a host"))


@pytest.mark.parametrize("engine", ["dag", "legacy"])
@given(capabilities=ANY)
@settings(max_examples=40, deadline=None)
def test_a_host_is_told_what_it_lacks_and_who_compacts(
    engine: str, capabilities: tuple[str, ...]
) -> None:
    async def play() -> None:
        server = await begun(engine)
        said = introduced(capabilities)
        done = await server.context.bootstrap.run(TENANT, S1, said, spoken("a", "b"))
        info = engine_info(done.engine, done.capabilities)
        # Who says nothing can do everything.
        lacks = [name for name in KNOWN if capabilities and name not in capabilities]
        assert [limit.capability for limit in info.host_limits] == lacks
        assert all(limit.consequence for limit in info.host_limits)
        service_compacts = engine == "dag" and "assemble-before-prompt" not in lacks
        assert (info.host_auto_compaction == engine_pb.HOST_AUTO_COMPACTION_DISABLE) is (
            service_compacts
        )
        made = await server.assemble()
        assert made.bootstraps_threads is ("thread-bootstrap-projection" not in lacks)
        # What one said stands until another says otherwise.
        again = await server.context.bootstrap.run(TENANT, S1, Introduction())
        assert again.capabilities == capabilities
        await server.close()

    asyncio.run(play())


@given(required=ANY, capabilities=ANY)
@settings(max_examples=60, deadline=None)
def test_what_an_engine_needs_is_refused_before_anything_is_stored(
    required: tuple[str, ...], capabilities: tuple[str, ...]
) -> None:
    missing = [name for name in sorted(required) if capabilities and name not in capabilities]

    async def play() -> None:
        server = await begun("demanding", demanding(required))
        run = server.context.bootstrap.run(TENANT, S1, introduced(capabilities), spoken("a"))
        if missing:
            with pytest.raises(HostCapabilityMissing) as refused:
                await run
            assert refused.value.metadata["missing"] == ", ".join(missing)
            assert await server.store.head(scope()) is None
        else:
            assert (await run).capabilities == capabilities
            assert await server.shown() == ["a"]
        await server.close()

    asyncio.run(play())
