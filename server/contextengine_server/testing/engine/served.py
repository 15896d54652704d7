"""The engine behind a server: chosen and configured, through the life of sessions, over restarts,
where it fails, and in every projection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextengine import AsyncClient, ContextEngineError, assistant, tool_call, tool_result, user
from contextengine import types as t
from contextengine.errors import ProjectionImpossible
from contextengine_server.memory.tool import MEMORY_SEARCH
from contextengine_server.plugins.targets import installed_targets
from contextengine_server.recall.model_tools.definitions import TOOLS

from .server import Breaking, ServedCase, play, ref, serving, tokens

CALLED = {"addition", "plan", "due"}
"""What every assembly asks of an engine; how far back it reaches is asked where not all is held."""


class ServedCases(ServedCase):
    """Each test has a server and a database of its own."""

    @pytest.mark.asyncio
    async def test_it_is_listed_chosen_and_configured(self, tmp_path: Path) -> None:
        """By its id, and by the block of that name."""
        registration = self.registration
        written = registration.options(**self.variants[0]).model_dump(mode="json", by_alias=True)
        block = {f"engine.{registration.id}.{name}": value for name, value in written.items()}
        async with serving(registration, tmp_path, **block) as client:
            listed = await client.engines.list()
            assert listed.default_engine_id == registration.id
            [found] = [one for one in listed.engines if one.info.id == registration.id]
            assert found.available, found.unavailable_reason
            assert found.owner.strip()
            await client.ingest(ref(), user("hello"))
            assert (await client.assemble(ref())).engine_id == registration.id
            got = await client.engines.get(session=ref())
            values = {option.name: json.loads(option.value_json) for option in got.options}
            assert {name: values[name] for name in written} == written

    @pytest.mark.asyncio
    async def test_status_says_what_it_says_of_itself(self, tmp_path: Path) -> None:
        """So do Bootstrap and ListTools."""
        engine = self.engines()[0]
        async with self.served(tmp_path) as client:
            introduced = (await client.bootstrap(ref(), history=[user("hello")])).engine
            status = await client.get_status(ref())
            assert status.engine == introduced
            assert (introduced.id, introduced.name, introduced.version) == (
                engine.id,
                engine.name,
                engine.version,
            )
            assert introduced.tail_steps == engine.declared.tail_steps
            assert list(introduced.forms) == sorted(int(form) for form in engine.declared.forms)
            assert introduced.owns_compaction == engine.owns_compaction
            assert introduced.compaction_threshold == engine.threshold
            assert tuple(introduced.tools) == engine.tools.names
            offered = await client.list_tools(ref())
            # The search of memory is the server's own, beside the tools of any engine.
            own = tuple(tool.name for tool in offered.tools if tool.name != MEMORY_SEARCH.name)
            assert own == engine.tools.names
            assert status.usage_percent > 0
            wanted = round(status.window * engine.threshold)
            assert 0 <= status.threshold_tokens <= wanted
            assert json.loads(status.engine_status_json)["fingerprint"] == engine.fingerprint

    @pytest.mark.asyncio
    async def test_a_session_lives_with_it(self, tmp_path: Path) -> None:
        """From the first message over calls, compaction and a reset to the end."""
        async with self.served(tmp_path) as client:
            await client.bootstrap(ref())
            first = await client.assemble(ref(), ingest=[user("look")])
            assert (first.outcome, _texts(first)) == (1, ["look"])
            asked = assistant("I look.", tool_calls=[tool_call("c1", "look", {})])
            pending = await client.assemble(ref(), ingest=[asked])
            assert _roles(pending)[-1] == t.ROLE_ASSISTANT, "open calls stand as they are"
            done = await client.assemble(ref(), ingest=[tool_result("c1", "there", name="look")])
            assert _roles(done)[-2:] == [t.ROLE_ASSISTANT, t.ROLE_TOOL]
            turn = await client.after_turn(ref(), [assistant("It is there.")])
            assert turn.status == t.AfterTurnResponse.STATUS_COMMITTED
            await client.compact(ref(), force=True)
            again = await client.assemble(ref(), ingest=[user("thanks")])
            assert again.outcome == 1
            assert _texts(again)[-1] == "thanks"
            for tool in (await client.list_tools(ref())).tools:
                assert tool.name in {*TOOLS, MEMORY_SEARCH.name}
            await client.reset_session(ref())
            assert len((await client.assemble(ref())).items) == 0
            await client.end_session(ref())
            await client.ingest(ref(), user("once more"))
            assert _texts(await client.assemble(ref())) == ["once more"]
            await client.sessions.delete(ref())
            with pytest.raises(ContextEngineError):
                await client.get_status(ref())

    @pytest.mark.asyncio
    async def test_a_restart_changes_nothing(self, tmp_path: Path) -> None:
        """Real sessions, compacted or not, read again from the store: the same list, in the same
        epoch."""
        before: dict[tuple[str, int], tuple[str, bytes]] = {}
        async with self.served(tmp_path) as client:
            for name, rows in self.few():
                total = await play(client, name, rows)
                for share in (20, 60, 110):
                    before[name, total * share // 100] = await _list(
                        client, name, total * share // 100
                    )
        async with self.served(tmp_path) as client:
            for (name, budget), wanted in before.items():
                assert await _list(client, name, budget) == wanted, f"{name} at {budget} tokens"

    @pytest.mark.asyncio
    async def test_its_failures_are_its_own(self, tmp_path: Path) -> None:
        """What it throws is answered with its name, and recorded until it works again."""
        broken = ""
        registration = self.registration
        made = replace(
            registration, make=lambda options: Breaking(registration.make(options), lambda: broken)
        )
        async with serving(made, tmp_path) as client:
            await client.ingest(ref(), user("hello"))
            for broken in sorted(CALLED):
                with pytest.raises(ContextEngineError) as caught:
                    await client.assemble(ref())
                assert caught.value.reason == "ENGINE_FAILED", f"{broken}: {caught.value}"
                assert caught.value.metadata["engine"] == registration.id
                assert caught.value.metadata["operation"] == "assemble"
                assert "by the suite" not in str(caught.value)
            failure = (await client.get_status(ref())).engine_failure
            assert (failure.engine_id, failure.count) == (registration.id, len(CALLED))
            assert failure.reason == "RuntimeError: broken by the suite"
            broken = ""
            assert _texts(await client.assemble(ref())) == ["hello"]
            assert not (await client.get_status(ref())).HasField("engine_failure")

    @pytest.mark.asyncio
    async def test_it_is_disposed_of_once(self, tmp_path: Path) -> None:
        """When the server drains, each instance."""
        made: list[Breaking] = []
        registration = self.registration

        def make(options: object) -> Breaking:
            made.append(Breaking(registration.make(options)))
            return made[-1]

        async with serving(replace(registration, make=make), tmp_path) as client:
            await client.ingest(ref(), user("hello"))
            await client.assemble(ref())
            assert [one.disposed for one in made] == [0]
        assert [one.disposed for one in made] == [1]

    @pytest.mark.asyncio
    async def test_sessions_change_to_it_and_back(self, tmp_path: Path) -> None:
        """On the same history, in any order of engines."""
        async with self.served(tmp_path) as client:
            others = [one.info.id for one in (await client.engines.list()).engines]
            for name, rows in self.few():
                total = await play(client, name, rows)
                for engine_id in (*others, self.registration.id):
                    await client.engines.assign(scope=ref(name), engine_id=engine_id)
                    await client.compact(ref(name), force=True, budget=tokens(total // 2))
                    reply = await client.assemble(ref(name), budget=tokens(total))
                    assert (reply.engine_id, reply.outcome) == (engine_id, 1)

    @pytest.mark.asyncio
    async def test_every_projection_of_what_it_shows_is_valid(self, tmp_path: Path) -> None:
        """Whatever is cut and summarized, no provider's rule is broken."""
        targets = installed_targets().targets
        async with self.served(tmp_path) as client:
            for name, rows in self.few():
                total = await play(client, name, rows)
                for share in (15, 40, 110):
                    for target in targets:
                        budget = tokens(max(1, total * share // 100))
                        options = t.ProjectionOptions(target_name=target.name)
                        try:
                            reply = await client.projection.project(
                                options, session=ref(name), budget=budget
                            )
                        except ProjectionImpossible:
                            assert share < 100, f"{name} does not fit into {share} %"
                            continue
                        body = json.loads(json.dumps(target.body(reply)))
                        found = [one for one in target.validator(body, "") if not one.advice]
                        assert not found, f"{name} for {target.name} at {share} %: {found}"


async def _list(client: AsyncClient, name: str, budget: int) -> tuple[str, bytes]:
    """The epoch and the list at a budget."""
    reply = await client.assemble(ref(name), budget=tokens(max(1, budget)))
    return reply.context_projection.epoch, b"".join(
        item.SerializeToString(deterministic=True) for item in reply.items
    )


def _texts(reply: t.AssembleResponse) -> list[str]:
    return [part.text.text for item in reply.items for part in item.message.parts]


def _roles(reply: t.AssembleResponse) -> list[int]:
    return [item.message.role for item in reply.items]
