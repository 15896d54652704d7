"""Two tenants, two agents, the same names everywhere: nobody recalls what is another's, by any rpc
or tool."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from contextengine import AsyncClient
from contextengine import types as t
from contextengine_server.context.scope import Scope
from contextengine_server.recall.archive import Archive
from contextengine_server.recall.index import Indexer
from contextengine_server.recall.query import Query
from contextengine_server.recall.score.questions import Questions
from contextengine_server.recall.search import search
from contextengine_server.recall.snippets import TurnBeginnings
from tests.integration.harness import ALICE, BOB, House, ref

from .asking import find, work

WORD = {"alice": "zebra", "bob": "ostrich", "other": "walrus"}


@dataclass
class Side:
    """What one owner has under the names that all of them use."""

    client: AsyncClient
    session: t.SessionRef
    word: str
    summary: str = ""


@pytest.fixture
async def sides(guarded: House) -> list[Side]:
    clients = {"alice": guarded.client_of(ALICE), "bob": guarded.client_of(BOB)}
    made = [
        Side(clients["alice"], ref("shared"), WORD["alice"]),
        Side(clients["bob"], ref("shared"), WORD["bob"]),
        Side(clients["alice"], ref("shared", agent="other"), WORD["other"]),
    ]
    for side in made:
        messages = [*work(1), *work(2), *work(3)]
        for message in messages:
            message.parts.add().text.text = f"a secret of the {side.word}"
        await side.client.ingest_batch(side.session, messages)
        change = t.RecordHostChangeRequest.HostCompaction(
            first_sequence=1, last_sequence=8, summary=f"two parts of the {side.word}"
        )
        done = await side.client.record_host_change(side.session, compacted=change)
        side.summary = done.summary.id
    return made


async def test_nobody_recalls_what_is_anothers(guarded: House, sides: list[Side]) -> None:
    for side in sides:
        others = [one for one in sides if one is not side]
        for mode in (t.SEARCH_MODE_FULL_TEXT, t.SEARCH_MODE_REGEX):
            own = await find(guarded, side.word, side.session, side.client, mode=mode, limit=100)
            assert len(own.hits) == own.total_count == 13
            for query in ("secret", "parts", *(one.word for one in others)):
                found = await find(guarded, query, side.session, side.client, mode=mode, limit=100)
                assert not any(one.word in str(found) for one in others)
        for other in others:
            raw = json.dumps({"query": other.word}).encode()
            answer = await side.client.call_tool(
                side.session, name="ctx_search", arguments_json=raw
            )
            assert json.loads(answer.result_json)["hits"] == []
            shown = await side.client.recall.expand(
                side.session,
                summary_ids=[other.summary],
                sequences=[*range(1, 20)],
                max_tokens=50_000,
            )
            assert other.word not in str(shown)
            assert side.word in str(shown)


async def test_a_deletion_takes_out_ones_own_alone(guarded: House, sides: list[Side]) -> None:
    alice, bob, other = sides
    await alice.client.sessions.delete(alice.session)
    for side in (bob, other):
        assert (
            len((await find(guarded, side.word, side.session, side.client, limit=100)).hits) == 13
        )


async def none_counted(text: str) -> int:
    return 0


async def test_an_incomplete_scope_recalls_nothing(guarded: House, sides: list[Side]) -> None:
    head = await guarded.app.store.head(Scope("alice", "agent", "shared"))
    assert head is not None
    store = guarded.app.store
    indexer, begins = Indexer(store), TurnBeginnings(list)
    archive = Archive(
        store, indexer, lambda head, revision: True, list, begins, Questions(), none_counted
    )
    shared = ref("shared")
    await guarded.client.recall.search(shared, query="zebra", at_least_revision=head.revision)
    assert (await search(archive, head, Query("zebra"))).hits
    for scope in (
        Scope("", "agent", "shared"),
        Scope("alice", "", "shared"),
        Scope("alice", "agent", ""),
    ):
        for query in (Query("zebra"), Query("zebra", regex=True), Query("zebra", retired=True)):
            assert not (await search(archive, replace(head, scope=scope), query)).hits


async def test_an_agent_that_is_not_named_is_refused(guarded: House, sides: list[Side]) -> None:
    nobody = t.SessionRef(session_id="shared")
    for call in (
        guarded.client.recall.search(nobody, query="zebra"),
        guarded.client.recall.inspect(nobody, summary_id="s1"),
        guarded.client.recall.expand(nobody, sequences=[1]),
        guarded.client.call_tool(nobody, name="ctx_search", arguments_json=b'{"query": "zebra"}'),
        guarded.client.list_tools(nobody),
    ):
        with pytest.raises(Exception, match="agent_id"):
            await call
