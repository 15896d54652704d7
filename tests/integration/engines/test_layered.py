"""The layered engine behind a server: facts stand in summaries word for word, what was laid down
stays, and agents may have different strategies."""

from __future__ import annotations

import json

import grpc
import pytest

from contextengine import assistant, system, user
from contextengine import types as t
from tests.integration.assemble.asking import ask, assign, quiet, session, shared, store
from tests.integration.harness import House, budget, ref, texts

__all__ = ["session", "shared"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

RULE = "You must always respond in Chinese."
STORY = "The harbour was quiet that morning, and nobody knew which ship would come first. " * 12
SMALL = {"maxTokens": 1_000}
ROOM = budget(20_000)


def talk() -> list[t.Message]:
    return [
        system("You help."),
        user("My email is alice@example.com. I prefer dark mode."),
        assistant(STORY),
        user("Go on with the story."),
        assistant(STORY * 2),
        user(RULE),
        assistant("ok"),
        assistant("We decided to use PostgreSQL for the database."),
        user("I prefer light mode."),
        user(STORY),
        assistant(STORY),
        user("Where were we?"),
    ]


async def compacted(house: House, session: t.SessionRef) -> list[str]:
    """The list after a compaction, as texts."""
    done = await house.client.compact(session, budget=ROOM)
    assert done.compacted, done.reason
    return texts((await ask(house, session, budget=ROOM)).items)


async def test_facts_stand_word_for_word_and_rules_where_they_were_said(
    shared: House, session: t.SessionRef
) -> None:
    await assign(shared, session, "layered", compaction=SMALL)
    await store(shared, session, talk())
    await quiet(shared, session)
    first, early, rule, late, last = await compacted(shared, session)
    assert (first, rule, last) == ("You help.", RULE, "Where were we?")
    assert "\nFacts:\nemail: alice@example.com\npreference: I prefer dark mode\n\n" in early
    assert "decision: decided to use PostgreSQL\npreference: I prefer light mode\n\n" in late
    assert "harbour" in early
    assert "harbour" in late
    assert "\nok" not in late
    said = json.loads((await shared.client.get_status(session)).engine_status_json)
    assert said["layers"]["critical"] == {"strategy": "keep", "max_tokens": 2_000}
    assert 0 < said["kept_tokens"] < 100
    assert said["kept_over_layer_tokens"] == 0


async def test_a_summary_that_is_brought_up_to_date_states_the_facts_anew(
    shared: House, session: t.SessionRef
) -> None:
    await assign(shared, session, "layered", compaction=SMALL)
    before = [one for one in talk() if texts([one]) != [RULE]]
    await store(shared, session, before)
    await quiet(shared, session)
    _, summary, _ = await compacted(shared, session)
    assert "preference: I prefer light mode (superseded: I prefer dark mode)" in summary
    more = [assistant("Here."), user("I prefer green mode."), user(STORY), assistant(STORY * 2)]
    await store(shared, session, [*more, user("And now?")])
    _, summary, last = await compacted(shared, session)
    assert last == "And now?"
    assert "preference: I prefer green mode (superseded: I prefer light mode)" in summary
    assert summary.count("Facts:") == summary.count("alice@example.com") == 1
    status = await shared.client.get_status(session)
    assert (status.summary_count, status.message_count) == (2, len(before) + len(more) + 1)


async def test_small_talk_alone_is_told_of_in_a_line(shared: House, session: t.SessionRef) -> None:
    await assign(shared, session, "layered", compaction={"maxTokens": 200})
    thanks = "Great, thank you so much for your help! Have a great day! " * 8
    await store(shared, session, [user(thanks), assistant(thanks), user(RULE), user("Well?")])
    await quiet(shared, session)
    told, rule, _ = await compacted(shared, session)
    assert "greetings, thanks, confirmations" in told
    assert "Great" not in told
    assert rule == RULE


async def test_agents_may_have_different_strategies(shared: House) -> None:
    lists = {}
    for strategy in ("dag", "linear", "hybrid"):
        agent = t.SessionRef(agent_id=f"agent-{strategy}")
        await assign(shared, agent, "layered", compaction={"strategy": strategy, "maxTokens": 1400})
        session = ref("one", agent=agent.agent_id)
        await store(shared, session, talk())
        await quiet(shared, session)
        lists[strategy] = await compacted(shared, session)
    assert [RULE in one for one in lists.values()] == [True, False, True]
    dag, linear, hybrid = lists.values()
    assert STORY in linear, "of the tail"
    assert STORY in hybrid
    assert STORY not in dag
    assert not any("Facts:" in text for text in linear)


async def test_what_cannot_be_is_refused_where_it_is_assigned(
    shared: House, session: t.SessionRef
) -> None:
    wrongs: list[dict[str, object]] = [
        {"compaction": {"reserveRatio": 0}},
        {"compaction": {"strategy": "graph"}},
        {"layers": {"vital": {"maxTokens": 5}}},
    ]
    for wrong in wrongs:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await assign(shared, session, "layered", **wrong)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
