"""Search over the wire: what is found, in which order, in pages, as of a revision, without secrets
and as data."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from contextengine_server.api.pipeline import contract
from tests.integration.harness import PATIENCE_S, House, problem

from .asking import S, covered, find, sequences, summaries, work, write

SEARCH = next(rpc for rpc in contract.rpcs() if rpc.method.endswith("Recall/Search"))
REGEX = t.SEARCH_MODE_REGEX
MESSAGES = t.SEARCH_SCOPE_MESSAGES
SUMMARIES = t.SEARCH_SCOPE_SUMMARIES


async def test_words_names_arguments_and_results_are_found(house: House) -> None:
    await write(
        house,
        S,
        "Where is the staging database?",
        assistant(
            "Let me look.",
            tool_calls=[tool_call("c1", "run_sql", {"query": 'select "host" from 数据库'})],
        ),
        tool_result("c1", "host = db-7.eu-west.example.org, port 5432"),
        t.Message(
            role=t.ROLE_USER,
            parts=[t.Part(file=t.FilePart(name="budget_2031.xlsx", data=b"\x00\x01"))],
        ),
        assistant("It is on db-7."),
    )
    for query, where in {
        "staging database": 1,
        "run_sql": 2,
        "数据库": 2,
        'select "host"': 2,
        "db-7.eu-west.example.org": 3,
        "5432": 3,
        "budget_2031.xlsx": 4,
    }.items():
        found = await find(house, query)
        assert sequences(found)[0] == where, query
        assert 0 < found.hits[0].score <= 1


async def test_a_hit_says_where_it_is(house: House) -> None:
    when = datetime(2031, 4, 5, 6, 7, 8, tzinfo=UTC)
    revision = await write(house, S, "nothing", user("the needle is here", id="m2", timestamp=when))
    found = await find(house, "needle")
    (hit,) = found.hits
    assert (hit.origin.sequence, hit.role, hit.id, hit.session_id) == (2, t.ROLE_USER, "m2", "")
    assert hit.time.ToDatetime(UTC) == when
    assert "the needle is here" in hit.snippet
    assert (found.revision, found.total_count, found.next_page_token) == (revision, 1, "")


async def test_the_best_comes_first(house: House) -> None:
    await write(house, S, "a database", *["we talk of other things entirely"] * 8, "a migration")
    await write(
        house, S, "the database migration failed", "the migration of birds", "a database again"
    )
    assert sequences(await find(house, "database migration"))[0] == 11
    assert set(sequences(await find(house, "database migration"))) == {1, 10, 11, 12, 13}


async def test_every_part_of_a_long_message_is_found(house: House) -> None:
    words = " ".join(f"word{number}" for number in range(20_000))
    await write(house, S, "short", f"{words} the needle {words}", "short too")
    for query in ("word7", "word19999", "needle", "word12345"):
        found = await find(house, query)
        assert sequences(found) == [2], query
        assert query in found.hits[0].snippet
    assert sequences(await find(house, r"needle word0 word1 ", mode=REGEX)) == [2]


async def test_what_a_message_cannot_say_in_words_is_found_all_the_same(house: House) -> None:
    await write(house, S, "all is well ✅", "an arrow → there", "plain")
    assert sequences(await find(house, "✅")) == [1]
    assert sequences(await find(house, "→")) == [2]
    assert sequences(await find(house, "well ✅")) == [1]


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("用户喜欢什么颜色", [1]),
        ("蓝色", [1]),
        ("色", [1]),
        ("東京", [2]),
        ("京タワ", [2]),
        ("회의", [3]),
        ("天气", []),
    ],
)
async def test_chinese_japanese_and_korean(house: House, query: str, where: list[int]) -> None:
    await write(
        house,
        S,
        "用户最喜欢的颜色是蓝色。",
        "明日は東京タワーへ行きます",
        "내일 회의는 세 시입니다",
        "english",
    )
    assert sequences(await find(house, query))[:1] == where[:1]


@pytest.mark.parametrize(
    "query",
    ["src/tui/theme.ts", "theme.ts", "max_message_bytes", "message_bytes", "AsyncSessionCore",
    "SessionCore", "v1.2.3-rc.4",
     "acc0ffee", "ffee", "foo::bar", "$HOME/.config", "--dry-run", "user@example.org", "10.0.0.1",
     "#4711"],
)  # fmt: skip
async def test_identifiers_are_found_whole_and_in_part(house: House, query: str) -> None:
    await write(
        house,
        S,
        "some other text of no interest",
        "src/tui/theme.ts max_message_bytes AsyncSessionCore v1.2.3-rc.4 acc0ffee foo::bar"
        " $HOME/.config --dry-run user@example.org 10.0.0.1 #4711",
        "another one",
    )
    assert sequences(await find(house, query)) == [2]


HOSTILE = [
    '"', '""', "'", "*", "a*", "^", "NEAR(a b, 3)", "a AND", "OR OR", "NOT", "text:a", "{a b}:c",
    "-a", "(", "((((", "a)b",
    "a\x00b", "\\", "%_", "'; DROP TABLE messages; --", "a" * 4_096, "気" * 1_365,
    "\u202e\u0000\u200b", "🦀" * 500, "[[:x:]]",
    " ".join(f"w{n}" for n in range(700)),
]  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_query_raises(house: House, query: str) -> None:
    await write(house, S, "a b text near c", "気 w1 w2")
    await find(house, query)
    await find(house, query, scope=SUMMARIES)
    request = t.SearchRequest(session=S, query=query, mode=REGEX)
    answer = await house.raw(SEARCH, request.SerializeToString())
    if answer.error is not None:
        assert problem(answer.error) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["query"])


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(.*)*x", "(a|aa)+$", "((a{1,30}){1,30})b", ".*.*.*.*.*=.*"]
)
async def test_no_expression_takes_for_ever(house: House, pattern: str) -> None:
    await write(house, S, *["a" * 20_000] * 5)
    async with asyncio.timeout(PATIENCE_S):
        await find(house, pattern, mode=REGEX)


async def test_an_expression_shows_what_stands_around(house: House) -> None:
    await write(house, S, "nothing", "before ERR-4711 and after", "err-12 in lower case", "ERR-x")
    found = await find(house, r"ERR-\d+", mode=REGEX)
    assert sequences(found) == [2]
    assert "before ERR-4711 and after" in found.hits[0].snippet
    assert sequences(await find(house, r"(?i)err-\d+", mode=REGEX)) == [3, 2]
    assert sequences(await find(house, r"^nothing$|x$", mode=REGEX)) == [4, 1]
    assert found.total_count == 1


async def test_filters(house: House) -> None:
    def at(second: int) -> datetime:
        return datetime(2031, 1, 1, 0, 0, second, tzinfo=UTC)

    made = [
        user(f"word {n}", timestamp=at(n)) if n % 2 else assistant(f"word {n}", timestamp=at(n))
        for n in range(1, 7)
    ]
    await write(house, S, *made, "word without a time")
    for mode in (t.SEARCH_MODE_FULL_TEXT, REGEX):
        assert sorted(sequences(await find(house, "word", mode=mode))) == [1, 2, 3, 4, 5, 6, 7]
        assert sorted(
            sequences(await find(house, "word", mode=mode, roles=[t.ROLE_ASSISTANT]))
        ) == [2, 4, 6]
        assert sorted(
            sequences(await find(house, "word", mode=mode, first_sequence=3, last_sequence=5))
        ) == [
            3,
            4,
            5,
        ]
        assert sorted(
            sequences(await find(house, "word", mode=mode, start_time=at(2), end_time=at(5)))
        ) == [
            2,
            3,
            4,
        ]
        assert sorted(sequences(await find(house, "word", mode=mode, start_time=at(5)))) == [5, 6]


async def test_limits_are_clamped(house: House) -> None:
    await write(house, S, *[f"word {n}" for n in range(130)])
    for asked, given in ((0, 10), (1, 1), (100, 100), (101, 100), (2**31 - 1, 100)):
        for mode in (t.SEARCH_MODE_FULL_TEXT, REGEX):
            assert len((await find(house, "word", limit=asked, mode=mode)).hits) == given


@pytest.mark.parametrize("mode", [t.SEARCH_MODE_FULL_TEXT, REGEX])
async def test_pages_come_to_everything_once(house: House, mode: t.SearchMode) -> None:
    for number in range(1, 6):
        await write(house, S, *work(number))
    await covered(house, S, 1, 4, "a summary of the first part about revenue")
    await covered(house, S, 5, 8, "a summary of the second part about revenue")
    whole = await find(house, "revenue", limit=100, mode=mode)
    assert whole.next_page_token == ""
    expected = [str(hit.origin) for hit in whole.hits]
    assert whole.total_count == len(expected) == 12
    for limit in (1, 3, 5):
        seen, token = [], ""
        while True:
            page = await find(
                house, "revenue", limit=limit, page_token=token, mode=mode, at_least_revision=0
            )
            seen += [str(hit.origin) for hit in page.hits]
            token = page.next_page_token
            if seen and len(seen) == limit:
                await write(house, S, "more revenue that comes while somebody turns pages")
            if not token:
                break
            assert len(page.hits) == limit
        assert seen == expected
        await house.client.record_host_change(
            S, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=20)
        )


async def test_a_page_belongs_to_its_query(house: House) -> None:
    await write(house, S, *["word other"] * 5)
    page = (await find(house, "word", limit=2)).next_page_token
    others: list[dict[str, Any]] = [
        {"query": "other"},
        {"roles": [t.ROLE_USER]},
        {"scope": MESSAGES},
    ]
    for more in others:
        with pytest.raises(ContextEngineError) as caught:
            await house.client.recall.search(S, **{"query": "word", "page_token": page, **more})
        assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["page_token"])
    await house.client.sessions.delete(S)
    await write(house, S, *["word other"] * 5)
    with pytest.raises(ContextEngineError) as caught:
        await house.client.recall.search(S, query="word", page_token=page)
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["page_token"])


async def test_messages_stand_before_summaries(house: House) -> None:
    for number in range(1, 5):
        await write(house, S, *work(number))
    first = await covered(house, S, 1, 4, "revenue revenue of part one")
    found = await find(house, "revenue")
    assert found.hits[-1].origin.summary_id == first.id
    assert found.hits[-1].summary.message_count == 4
    assert all(hit.origin.HasField("sequence") for hit in found.hits[:-1])
    assert summaries(await find(house, "revenue", scope=SUMMARIES)) == [first.id]
    assert summaries(await find(house, "revenue", scope=MESSAGES)) == []
    assert summaries(await find(house, "revenue", roles=[t.ROLE_USER])) == []
    assert summaries(await find(house, "revenue", first_sequence=5, scope=SUMMARIES)) == []
    assert 1 in sequences(await find(house, "report")), "what is summarized is found as well"


TALK = [
    user("Yoga has been great for my back this year.", name="Jolene"),
    user("How long do you usually hold that pose, John?", name="Jolene"),
    user("I typically stay in it for 30-60 seconds.", name="John"),
    user("Nice, I will try it after work.", name="Jolene"),
    *[user(f"Remark {number} about the garden.", name="John") for number in range(5, 25)],
]


async def test_a_question_finds_the_answer_that_holds_none_of_its_words(house: House) -> None:
    await write(house, S, *TALK)
    found = await find(house, "How long does he usually hold the pose?")
    assert sequences(found) == [3, 2, 1]
    assert [hit.neighbour for hit in found.hits] == [True, False, True]
    assert "30-60 seconds" in found.hits[0].snippet
    assert found.total_count == 1
    assert sequences(await find(house, "hold pose")) == [2], "two words ask for where they stand"


async def test_a_question_keeps_to_what_it_asks_for(house: House) -> None:
    await write(house, S, *TALK)
    asked = "How long does he usually hold the pose?"
    assert sequences(await find(house, asked, first_sequence=2)) == [3, 2]
    assert sequences(await find(house, asked, roles=[t.ROLE_ASSISTANT])) == []
    await house.client.record_host_change(
        S, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=2)
    )
    assert sequences(await find(house, asked)) == [2, 1]


async def test_a_hit_shows_the_turns_beside_it(house: House) -> None:
    await write(house, S, *TALK)
    (hit,) = (await find(house, "pose")).hits
    assert (hit.before.sequence, hit.after.sequence) == (1, 3)
    assert "great for my back" in hit.before.snippet
    assert "30-60 seconds" in hit.after.snippet
    assert "untrusted" in hit.after.snippet, "what people said is data"
    first, last = (await find(house, "yoga")).hits[0], (await find(house, "Remark 24")).hits[0]
    assert not first.HasField("before")
    assert not last.HasField("after")
    beside = (await find(house, "pose seconds")).hits
    assert sorted(hit.origin.sequence for hit in beside) == [2, 3]
    for hit in beside:
        shown = {hit.before.sequence, hit.after.sequence} - {0}
        assert not shown & {2, 3}, "a hit of the page is not shown twice"


async def test_a_conversation_is_asked_by_who_speaks(house: House) -> None:
    await write(house, S, *TALK)
    assert set(sequences(await find(house, "Jolene"))) == {1, 2, 4}
    assert (await find(house, "Jolene work")).hits[0].origin.sequence == 4
