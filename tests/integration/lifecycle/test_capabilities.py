"""A host says what it can do, and is told what it does without. See
docs/semantics.md#what-a-host-can-do."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from contextengine import ContextEngineError, assistant, user
from contextengine import types as t
from contextengine_server.engines.dag import DagOptions
from contextengine_server.engines.dag.engine import DagEngine
from contextengine_server.engines.registration import Registration
from tests.integration.assemble.asking import assign
from tests.integration.harness import House, house, problem, ref
from tests.integration.harness import house as living
from tests.integration.projection.asking import options, text

SIX = [
    "bootstrap",
    "assemble-before-prompt",
    "after-turn",
    "maintain",
    "compact",
    "runtime-llm-complete",
]
EMBEDDED = t.HostInfo(host_id="openclaw-embedded", capabilities=SIX)
CODEX = t.HostInfo(host_id="codex-app-server", capabilities=[*SIX, "thread-bootstrap-projection"])
CLI = t.HostInfo(host_id="cli:claude", capabilities=["bootstrap", "after-turn", "maintain"])
SILENT = t.HostInfo(host_id="somebody")
KEEP, DISABLE = t.HOST_AUTO_COMPACTION_KEEP, t.HOST_AUTO_COMPACTION_DISABLE
BOOTSTRAP = t.ContextProjection.MODE_THREAD_BOOTSTRAP
PER_TURN = t.ContextProjection.MODE_PER_TURN


class Demanding(DagEngine):
    """Serves hosts that can start a thread from a projection alone."""

    id = "demanding"

    def __init__(self, options: DagOptions) -> None:
        super().__init__(options)
        self.declared = replace(
            self.declared,
            host_capabilities=frozenset({"compact", "thread-bootstrap-projection"}),
        )


DEMANDING = Registration("demanding", DagOptions, Demanding, "plugin:test")


@pytest.mark.parametrize(
    ("host", "compaction", "lacks"),
    [
        (SILENT, DISABLE, []),
        (CODEX, DISABLE, []),
        (EMBEDDED, DISABLE, ["thread-bootstrap-projection"]),
        (CLI, KEEP, ["assemble-before-prompt", "compact", "thread-bootstrap-projection"]),
    ],
)
async def test_a_host_is_told_what_it_does_without(
    house: House, host: t.HostInfo, compaction: int, lacks: list[str]
) -> None:
    said = (await house.client.bootstrap(ref(), host=host, history=[user("a", id="m1")])).engine
    assert (said.owns_compaction, said.host_auto_compaction) == (True, compaction)
    assert [limit.capability for limit in said.host_limits] == lacks
    assert all(limit.consequence for limit in said.host_limits)
    assert (await house.client.get_status(ref())).engine == said
    assert (await house.client.bootstrap(ref())).engine == said


async def test_legacy_leaves_compaction_to_every_host(tmp_path: Path) -> None:
    async with house(tmp_path, **{"engine.default": "legacy"}) as legacy:
        for host in (SILENT, CODEX, EMBEDDED, CLI):
            said = (await legacy.client.bootstrap(ref(host.host_id), host=host)).engine
            assert said.host_auto_compaction == KEEP


@pytest.mark.parametrize(
    ("host", "mode"),
    [(SILENT, BOOTSTRAP), (CODEX, BOOTSTRAP), (EMBEDDED, PER_TURN), (CLI, PER_TURN)],
)
async def test_a_thread_is_bootstrapped_for_a_host_that_can(
    house: House, host: t.HostInfo, mode: int
) -> None:
    history = [user("a", id="m1"), assistant("b", id="m2")]
    await house.client.bootstrap(ref(), host=host, history=history)
    assert (await house.client.assemble(ref())).context_projection.mode == mode
    asked = options("codex", mode=t.PROJECTION_MODE_THREAD_BOOTSTRAP)
    for wanted, warned in ((options("codex"), False), (asked, mode == PER_TURN)):
        beside = (
            await house.client.assemble(ref(), prompt=text("x"), projection=wanted)
        ).projection
        alone = await house.client.projection.project(wanted, session=ref(), prompt=text("x"))
        assert beside == alone
        assert bool(alone.binding.epoch) == (mode == BOOTSTRAP)
        assert [w.partition(" ")[0] for w in alone.warnings] == ["thread_bootstrap"] * warned


async def test_an_engine_that_needs_more_than_a_host_can_refuses_it(tmp_path: Path) -> None:
    async with living(tmp_path, engines=[DEMANDING]) as demanding:
        for host in (CLI, SILENT, CODEX):
            await assign(demanding, ref(host.host_id), "demanding")
        with pytest.raises(ContextEngineError) as caught:
            await demanding.client.bootstrap(ref(CLI.host_id), host=CLI)
        assert problem(caught.value)[:2] == ("FAILED_PRECONDITION", "HOST_CAPABILITY_MISSING")
        assert caught.value.metadata == {
            "engine": "demanding",
            "host": "cli:claude",
            "missing": "compact, thread-bootstrap-projection",
            "required": "compact, thread-bootstrap-projection",
            "declared": "bootstrap, after-turn, maintain",
        }
        assert "'demanding' cannot serve the host 'cli:claude'" in str(caught.value)
        assert (await demanding.client.sessions.list()).sessions == []
        for able in (SILENT, CODEX):
            said = await demanding.client.bootstrap(ref(able.host_id), host=able)
            assert said.engine.id == "demanding"
