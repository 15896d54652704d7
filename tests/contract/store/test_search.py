"""The search index: what is found, in which order, what a deletion leaves, and that no session sees
another's."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store
from contextengine_server.store.search import (
    MAX_PARTS,
    MAX_PLACE,
    Advance,
    Cursor,
    Document,
    DocumentKind,
    Lane,
    Match,
    Progress,
    SearchSpan,
)

from .rows import SCOPE, Pen, message, summary

WHOLE = 2**40


def span(scope: Scope = SCOPE, **more: Any) -> SearchSpan:
    return replace(SearchSpan(scope, DocumentKind.MESSAGE, 1, WHOLE, WHOLE), **more)


async def fill(
    pen: Pen, *texts: str, kind: DocumentKind = DocumentKind.MESSAGE, first: int | None = None
) -> Progress:
    """Indexes texts, one for each place, behind what is there."""
    progress = await pen.store.index.progress(pen.scope)
    assert progress is not None
    before = progress.cursor
    first = before.sequence + 1 if first is None else first
    documents = [Document(kind, first + n, 0, text) for n, text in enumerate(texts)]
    after = replace(before, sequence=before.sequence + len(texts), revision=progress.revision)
    await pen.store.index.advance(
        [Advance(pen.scope, progress.incarnation, before, after, documents)]
    )
    return progress


async def written(store: Store, *texts: str, scope: Scope = SCOPE, **row: Any) -> Pen:
    """A session with a message for each text, all indexed."""
    pen = Pen(store, scope)
    await pen.write(messages=[message(n, **row) for n in range(1, len(texts) + 1)])
    await fill(pen, *texts)
    return pen


async def found(store: Store, text: str, *spans: SearchSpan, substring: bool = False) -> list[int]:
    matches = await store.index.find(spans or [span()], [Lane(text, substring)], 1000)
    return [match.place for match in matches]


def places(matches: Sequence[Match]) -> list[int]:
    return [match.place for match in matches]


async def test_words_identifiers_and_numbers_are_found(store: Store) -> None:
    await written(
        store,
        "Edit src/app/main.py, then run it: max_message_bytes is 3.14",
        "The Café's menu; résumés went to bob@example.org",
        "nothing of the kind",
    )
    for query in (
        "src/app/main.py",
        "main.py",
        "app",
        "max_message_bytes",
        "MESSAGE_BYTES",
        "3.14",
        "running",
    ):
        assert await found(store, query) == [1], query
    for query in ("cafe", "CAFÉ", "resume", "bob@example.org", "example.org"):
        assert await found(store, query) == [2], query
    for query in ("py.main", "bytes_max", "4.13", "max-bytes", "unknown"):
        assert await found(store, query) == [], query


@pytest.mark.parametrize(
    ("query", "where"),
    [
        *[
            (part, [1])
            for part in (
                "今天",
                "天气好",
                "天气",
                "今",
                "好",
                "今天天气好",
                "天天气",
                "GPT模型",
                "型",
                "好GPT",
                "PT",
            )
        ],
        *[(part, [2]) for part in ("東京タワー", "タワー", "京", "学교", "학교에서", "교에")],
        *[(part, []) for part in ("天今", "气天", "好天", "タワ東", "에학")],
    ],
)
async def test_chinese_japanese_and_korean_are_found_by_any_part(
    store: Store, query: str, where: list[int]
) -> None:
    await written(store, "今天天气好GPT模型", "東京タワーで会う。学교 학교에서 만나요")
    if query == "PT":
        assert await found(store, "GPT", substring=True) == where
    else:
        assert await found(store, query) == where


async def test_parts_of_words_are_found_in_any_case(store: Store) -> None:
    await written(store, "class AsyncSessionCore:", "asyncio.run(main())")
    assert await found(store, "sessionc", substring=True) == [1]
    assert await found(store, "ASYNC", substring=True) == [2, 1]
    assert await found(store, "session", substring=False) == []


@pytest.mark.parametrize(
    "query",
    ["", " ", '"', '""', "'", "*", "a*", "^a", "NEAR(a b)", "a AND", "OR", "NOT a", "text:a",
    "{text}: a", "-a", "(", ")",
     "a\0b", "\0", "+", "a + b", "→", "\ud7ff", "'; DROP TABLE messages", "%", "_", "\\",
     "a" * 5000, "气" * 2000],
)  # fmt: skip
async def test_no_query_is_an_error(store: Store, query: str) -> None:
    await written(store, "a b text near")
    lanes = [Lane(query), *([Lane(query, True)] if len(query) >= 3 else [])]
    assert len(await store.index.count([span()], lanes)) == len(lanes)
    await store.index.find([span()], lanes, 10)
    if len(query) >= 3:
        await store.index.scan(span(), 10, containing=query)


async def test_the_heaviest_comes_first_and_of_equals_the_newest(store: Store) -> None:
    await written(store, "red", "red green", "green", "blue", "red green blue", "red")
    lanes = [Lane("red", weight=10), Lane("green", weight=15), Lane("blue", weight=7)]
    matches = await store.index.find([span()], lanes, 10)
    assert [(match.place, match.lanes) for match in matches] == [
        (5, 0b111),
        (2, 0b011),
        (3, 0b010),
        (6, 0b001),
        (1, 0b001),
        (4, 0b100),
    ]
    assert places(await store.index.find([span()], lanes, 3)) == [5, 2, 3]
    assert await store.index.count([span()], lanes) == [4, 3, 2]


async def test_rows_are_chosen_by_range_role_time_and_life(store: Store) -> None:
    pen = Pen(store)
    rows = [
        message(n, role=1 + n % 2, time_ms=n * 100 if n != 4 else None, host_id=f"h{n}")
        for n in range(1, 7)
    ]
    await pen.write(messages=rows)
    await pen.write(retire_after=5)
    await pen.write(messages=[message(7, 3)])
    await fill(pen, *["word"] * 7)
    assert await found(store, "word") == [7, 5, 4, 3, 2, 1]
    assert await found(store, "word", span(first=2, last=4)) == [4, 3, 2]
    assert await found(store, "word", span(roles=(2,))) == [5, 3, 1]
    assert await found(store, "word", span(start_ms=200, end_ms=500)) == [3, 2]
    assert await found(store, "word", span(retired=True)) == [7, 6, 5, 4, 3, 2, 1]
    assert await found(store, "word", span(revision=1)) == [6, 5, 4, 3, 2, 1]
    assert await found(store, "word", span(revision=2)) == [5, 4, 3, 2, 1]
    match = (await store.index.find([span(last=3)], [Lane("word")], 1))[0]
    assert (match.role, match.time_ms, match.host_id, match.text) == (2, 300, "h3", "word")


async def test_a_message_of_many_passages_is_found_once_by_its_best(store: Store) -> None:
    pen = Pen(store)
    await pen.write(count=2)
    progress = await store.index.progress(SCOPE)
    assert progress is not None
    passages = [
        Document(DocumentKind.MESSAGE, 1, part, text)
        for part, text in enumerate(["red", "red blue", "blue"])
    ]
    step = Advance(SCOPE, progress.incarnation, Cursor(), Cursor(2, 0, 0, 1), passages)
    await store.index.advance([step])
    matches = await store.index.find([span()], [Lane("red", weight=2), Lane("blue", weight=3)], 10)
    assert [(match.place, match.part, match.text) for match in matches] == [(1, 1, "red blue")]
    assert [match.place for match in (await store.index.scan(span(), 10))[0]] == [1]


async def test_going_through_passages_from_the_newest(store: Store) -> None:
    pen = await written(store, *(f"line {n} of {'ODD' if n % 2 else 'even'}" for n in range(1, 8)))
    await pen.write(retire_after=6)
    seen, below = [], None
    while True:
        matches, below = await store.index.scan(span(), 3, below=below)
        seen += places(matches)
        if below is None:
            break
    assert seen == [6, 5, 4, 3, 2, 1]
    assert places((await store.index.scan(span(), 9, containing="odd"))[0]) == [5, 3, 1]
    assert places((await store.index.scan(span(), 9, below=4, containing="odd"))[0]) == [3, 1]
    assert places((await store.index.scan(span(first=2, last=5, retired=True), 9))[0]) == [
        5,
        4,
        3,
        2,
    ]


async def test_summaries_are_places_of_their_own(store: Store) -> None:
    pen = Pen(store)
    await pen.write(count=3, summaries=[summary("b", 1, 1), summary("a", 2, 2)])
    await pen.write(summaries=[summary("0", 3, 3, revision=2)])
    assert await store.index.summaries(SCOPE, 0) == [
        (0, "what 2 to 2 said"),
        (1, "what 1 to 1 said"),
        (2, "what 3 to 3 said"),
    ]
    assert await store.index.summaries(SCOPE, 2) == [(2, "what 3 to 3 said")]
    await fill(pen, "red", "red", "red", kind=DocumentKind.SUMMARY, first=0)
    whole = SearchSpan(SCOPE, DocumentKind.SUMMARY, 0, WHOLE, WHOLE)
    assert await found(store, "red") == []
    assert await found(store, "red", whole) == [2, 1, 0]
    assert await found(store, "red", replace(whole, places={0, 2})) == [2, 0]


async def test_a_cursor_moves_only_from_where_it_stands(store: Store) -> None:
    pen = await written(store, "one", "two")
    progress = await store.index.progress(SCOPE)
    assert progress == Progress(Cursor(2, 0, 0, 1), "first life", 1, 1, 2, 0)
    stale = Advance(
        SCOPE, "first life", Cursor(), Cursor(9), [Document(DocumentKind.MESSAGE, 9, 0, "stale")]
    )
    strange = Advance(
        SCOPE, "another life", Cursor(), Cursor(9), [Document(DocumentKind.MESSAGE, 9, 0, "stale")]
    )
    unknown = Advance(Scope("acme", "main", "none"), "x", Cursor(), Cursor(9), [])
    await store.index.advance([stale, strange, unknown])
    assert await store.index.progress(SCOPE) == progress
    assert await found(store, "stale") == []
    await pen.write(count=1)
    await fill(pen, "three")
    assert (await store.index.progress(SCOPE)) == Progress(
        Cursor(3, 0, 0, 2), "first life", 2, 1, 3, 0
    )
    assert await store.index.progress(Scope("acme", "main", "none")) is None


async def test_sessions_that_the_index_is_behind_with(store: Store) -> None:
    assert await store.index.behind(9) == []
    one, two = Pen(store, Scope("a", "b", "1")), Pen(store, Scope("c", "d", "2"))
    await one.write(count=1)
    await two.write(count=1)
    assert sorted(await store.index.behind(9)) == [one.scope, two.scope]
    assert len(await store.index.behind(1)) == 1
    await fill(one, "text")
    assert await store.index.behind(9) == [two.scope]
    await one.write(count=1)
    assert sorted(await store.index.behind(9)) == [one.scope, two.scope]


async def test_who_wrote_is_noted_once_it_is_durable(store: Store) -> None:
    noted: list[Scope] = []
    store.index.noted = noted.append
    pen = Pen(store)
    await pen.write(count=1)
    await pen.write()
    await pen.write(summaries=[summary("s", 1, 1, revision=3)])
    assert noted == [SCOPE, SCOPE]


async def test_a_deletion_erases_what_was_indexed(store: Store) -> None:
    await written(store, *(f"secret number {n} " + "x" * 900 for n in range(60)))
    other = await written(store, "secret of another", scope=Scope("acme", "main", "s2"))
    await store.delete(SCOPE, expected_revision=None, cascade=False)
    assert await store.index.progress(SCOPE) is None
    assert await found(store, "secret") == []
    assert not await store.index.erase()
    again = Pen(store, incarnation="second life")
    await again.write(count=3)
    assert await found(store, "secret") == []
    await fill(again, "new", "rows", "only")
    assert await found(store, "secret", span(), span(other.scope)) == [1]
    assert await found(store, "rows") == [2]
    while await store.index.tidy():
        pass
    assert await found(store, "rows") == [2]


async def test_an_incomplete_scope_finds_nothing(store: Store) -> None:
    await written(store, "word")
    for scope in (
        Scope("", "main", "s1"),
        Scope("acme", "", "s1"),
        Scope("acme", "main", ""),
        Scope("", "", ""),
    ):
        assert await found(store, "word", span(scope)) == []
        assert await store.index.count([span(scope)], [Lane("word")]) == [0]
        assert await store.index.scan(span(scope), 9) == ([], None)


async def test_what_lies_behind_the_last_place_is_left_out(store: Store) -> None:
    pen = Pen(store)
    await pen.write(count=1)
    documents = [
        Document(DocumentKind.MESSAGE, MAX_PLACE + 1, 0, "far"),
        Document(DocumentKind.MESSAGE, 1, MAX_PARTS, "far"),
    ]
    step = Advance(
        SCOPE,
        "first life",
        Cursor(),
        Cursor(1),
        [*documents, Document(DocumentKind.MESSAGE, 1, 0, "near")],
    )
    await store.index.advance([step])
    assert await found(store, "far") == []
    assert await found(store, "near") == [1]


async def test_writing_a_lot_and_folding_it_loses_nothing(store: Store) -> None:
    pen = Pen(store)
    await pen.write(count=200)
    for n in range(40):
        await fill(pen, *(f"word{n} common item{n * 5 + k}" for k in range(5)))
        while await store.index.tidy():
            pass
    assert len(await found(store, "common")) == 200
    assert await found(store, "word17") == [90, 89, 88, 87, 86]
    assert await found(store, "item123") == [124]


SCOPES = [Scope(t, a, s) for t in ("t1", "t2") for a in ("a1", "a2") for s in ("same", "other")]


@given(
    writes=st.lists(
        st.tuples(
            st.sampled_from(SCOPES),
            st.sampled_from(["write", "delete", "rewind"]),
            st.integers(1, 4),
        ),
        max_size=14,
    )
)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
async def test_no_session_finds_what_another_holds(backend, writes) -> None:
    """Whatever is written, erased and written again under shared names: a session finds its own
    rows and no others."""
    store = backend.store()
    await store.open()
    try:
        for scope in SCOPES:
            await store.delete(scope, expected_revision=None, cascade=True)
        pens: dict[Scope, Pen] = {}
        for life, (scope, what, count) in enumerate(writes):
            if what == "delete":
                await store.delete(scope, expected_revision=None, cascade=False)
                pens.pop(scope, None)
                continue
            pen = pens.setdefault(scope, Pen(store, scope, f"life {life}"))
            if what == "rewind" and pen.head.revision:
                await pen.write(retire_after=pen.head.last_sequence - count)
                continue
            first = pen.head.last_sequence + 1
            await pen.write(count=count)
            own = "".join(filter(str.isalnum, "".join(scope)))
            await fill(pen, *(f"shared owner{own} place{first + n}" for n in range(count)))
        for scope in SCOPES:
            expected = await pens[scope].sequences() if scope in pens else []
            matches = await store.index.find(
                [span(scope)], [Lane("shared"), Lane("owner", True)], 999
            )
            assert sorted(places(matches)) == expected
            own = "".join(filter(str.isalnum, "".join(scope)))
            assert all(f"owner{own} " in match.text for match in matches)
            assert places((await store.index.scan(span(scope), 999))[0]) == expected[::-1]
    finally:
        await store.close()


@given(
    words=st.lists(
        st.text(string.ascii_lowercase + "天气模型é_./-\"'*", min_size=1, max_size=8),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
async def test_any_word_of_a_text_is_found_whatever_it_is_made_of(backend, words) -> None:
    store = backend.store()
    await store.open()
    try:
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        await written(store, "", " ".join(words))
        for word in words:
            if any(character.isalnum() for character in word):
                assert await found(store, word) == [2], word
            if len(word) >= 3:
                assert await found(store, word, substring=True) == [2], word
    finally:
        await store.close()
