"""What a host says of where a session is held is noted with the session, and holds until another
word (docs/semantics.md#what-the-host-says-of-a-session)."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_proto.v1 import assemble_pb2
from contextengine_server.api.requests import whereabouts_in
from contextengine_server.config.load import load_settings
from contextengine_server.config.schema import OptionsError
from contextengine_server.context.epoch import Cause, cause
from contextengine_server.errors import InvalidField
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.session.assembly.treatment import Treatment
from contextengine_server.session.assembly.whereabouts import Whereabouts
from contextengine_server.session.state import SessionState
from tests.unit.commands.house import Rows, Server, scope, spoken

GROUP = Whereabouts("group")
WINDOW: dict[str, Any] = {
    "engine.default": "pipeline",
    "engine.pipeline.historyTurnOverrides": {"group": 3},
    "engine.pipeline.compactionPrefixAnchorTurns": 0,
}


async def turned(rows: Rows) -> Server:
    """A server with ten turns of a session."""
    server = await Server(rows, **WINDOW).open()
    await server.ingest(*map(str, range(10)))
    return server


async def test_a_channel_has_its_own_window_from_then_on(rows: Rows) -> None:
    server = await turned(rows)
    everything = await server.assemble()
    assert everything.joined.total == 10
    grouped = await server.assemble(whereabouts=GROUP)
    assert grouped.joined.total == 3
    assert cause(everything.epoch, grouped.epoch) is Cause.CUT
    # It is noted: with calls that say nothing, on another server, and for compactions.
    again = await Server(rows, **WINDOW).open()
    for one in (server, again):
        assert (await one.assemble()).epoch == grouped.epoch
        assert SessionState.decode((await one.head()).state).channel == "group"
    assert (await server.assemble(whereabouts=Whereabouts("dm"))).joined.total == 10
    assert (await again.assemble()).joined.total == 10
    await server.close()
    await again.close()


async def test_what_is_known_is_not_noted_again(rows: Rows) -> None:
    server = await turned(rows)
    revision = (await server.head()).revision
    await server.assemble(whereabouts=GROUP)
    assert (await server.head()).revision == revision + 1
    commits = server.store.calls["commit"]
    await server.assemble(whereabouts=GROUP)
    assert server.store.calls["commit"] == commits
    await server.close()


async def test_it_is_noted_in_the_commit_of_what_is_stored(rows: Rows) -> None:
    server = await turned(rows)
    revision = (await server.head()).revision
    done = await server.assemble(whereabouts=GROUP, ingest=spoken("next"))
    assert (done.joined.total, (await server.head()).revision) == (3, revision + 1)
    done = await server.assemble(
        whereabouts=Whereabouts("dm"), live=spoken("next", "last"), store_new=True
    )
    assert (done.joined.total, (await server.head()).revision) == (12, revision + 2)
    done = await server.assemble(whereabouts=GROUP, live=spoken("last", "shown only"))
    assert (await server.head()).revision == revision + 3
    assert done.view.channel == "group"
    await server.close()


async def test_no_session_is_made_or_changed_for_it(rows: Rows) -> None:
    server = await Server(rows, **WINDOW).open()
    await server.assemble(whereabouts=GROUP)
    assert await server.store.head(scope()) is None
    await server.ingest(*map(str, range(10)))
    kept = (await server.head()).revision
    done = await server.assemble(whereabouts=GROUP, treatment=Treatment.STATELESS)
    assert done.joined.total == 3  # for this call alone
    assert (await server.head()).revision == kept
    assert (await server.assemble()).joined.total == 10
    await server.close()


def test_a_request_says_it() -> None:
    request = assemble_pb2.AssembleRequest(channel_type="group")
    assert whereabouts_in(request) == GROUP
    request.channel_type = "x" * 257
    with pytest.raises(InvalidField, match="channel_type"):
        whereabouts_in(request)


@pytest.mark.parametrize("turns", [0, 101, "many"])
def test_overrides_are_one_to_a_hundred_turns(turns: Any) -> None:
    said = {"engine.pipeline.historyTurnOverrides": {"dm": turns}}
    with pytest.raises(OptionsError, match="historyTurnOverrides"):
        load_settings(None, said, {}, installed_engines())
