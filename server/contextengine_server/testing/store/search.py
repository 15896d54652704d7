"""What the search index finds, in which order, and that no session sees another's."""

from __future__ import annotations

import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store
from contextengine_server.store.search import (
    Advance,
    Asking,
    Cursor,
    Document,
    DocumentKind,
    Lane,
    SearchSpan,
)

from .case import IndexCase
from .documents import WHOLE, counted, fill, found, places, span, written
from .rows import SCOPE, Pen, message, summary

SCOPES = [Scope(t, a, s) for t in ("t1", "t2") for a in ("a1", "a2") for s in ("same", "other")]

SHARED = list(HealthCheck)
"""Examples of a test share its store, and its subclasses share the test."""


class SearchCases(IndexCase):
    """What is found, in which order, and that no session sees another's."""

    async def test_words_identifiers_and_numbers_are_found(self, store: Store) -> None:
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
        self, store: Store, query: str, where: list[int]
    ) -> None:
        await written(store, "今天天气好GPT模型", "東京タワーで会う。学교 학교에서 만나요")
        if query == "PT":
            assert await found(store, "GPT", substring=True) == where
        else:
            assert await found(store, query) == where

    async def test_parts_of_words_are_found_in_any_case(self, store: Store) -> None:
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
    async def test_no_query_is_an_error(self, store: Store, query: str) -> None:
        await written(store, "a b text near")
        lanes = [Lane(query), *([Lane(query, True)] if len(query) >= 3 else [])]
        assert len(await counted(store, [span()], lanes)) == len(lanes)
        await store.index.find([span()], lanes, 10)
        if len(query) >= 3:
            await store.index.scan(span(), 10, containing=query)

    async def test_a_question_is_counted_and_found_in_one_look(self, store: Store) -> None:
        await written(store, "red", "red green", "green", "blue", "red green blue", "red")
        asked = list[list[int]]()

        def asking() -> Asking:
            asked.append((yield [Lane("red"), Lane("violet"), Lane("blue")]))
            asked.append((yield []))
            asked.append((yield [Lane("gre", True)]))
            return [Lane("blue", weight=2), Lane("green", weight=1)]

        matches = await store.index.look([span()], asking(), 3)
        assert asked == [[4, 0, 2], [], [3]]
        assert [(match.place, match.lanes) for match in matches] == [(5, 3), (4, 1), (3, 2)]
        lanes = [Lane("blue", weight=2), Lane("green", weight=1)]
        assert matches == await store.index.find([span()], lanes, 3)
        assert await store.index.look([span()], asking(), 0) == []

    async def test_the_heaviest_comes_first_and_of_equals_the_newest(self, store: Store) -> None:
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
        # Also where they stand in several spans, in whatever order these are given.
        early, late = span(last=3), span(first=4)
        for spans in ([early, late], [late, early]):
            assert places(await store.index.find(spans, lanes[:1], 10)) == [6, 5, 2, 1]
            assert places(await store.index.find(spans, lanes[:1], 1)) == [6]
        assert await counted(store, [span()], lanes) == [4, 3, 2]

    async def test_rows_are_chosen_by_range_role_time_and_life(self, store: Store) -> None:
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

    async def test_a_message_of_many_passages_is_found_once_by_its_best(self, store: Store) -> None:
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
        matches = await store.index.find(
            [span()], [Lane("red", weight=2), Lane("blue", weight=3)], 10
        )
        assert [(match.place, match.part, match.text) for match in matches] == [(1, 1, "red blue")]
        assert [match.place for match in (await store.index.scan(span(), 10))[0]] == [1]

    async def test_going_through_passages_from_the_newest(self, store: Store) -> None:
        pen = await written(
            store, *(f"line {n} of {'ODD' if n % 2 else 'even'}" for n in range(1, 8))
        )
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

    async def test_summaries_are_places_of_their_own(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=3, summaries=[summary("b", 1, 1), summary("a", 2, 2)])
        await pen.write(summaries=[summary("0", 3, 3, revision=2)])
        rows = [summary("a", 2, 2), summary("b", 1, 1), summary("0", 3, 3, revision=2)]
        assert await store.index.summaries(SCOPE, 0) == list(enumerate(rows))
        assert await store.index.summaries(SCOPE, 2) == [(2, rows[2])]
        await fill(pen, "red", "red", "red", kind=DocumentKind.SUMMARY, first=0)
        whole = SearchSpan(SCOPE, DocumentKind.SUMMARY, 0, WHOLE, WHOLE)
        assert await found(store, "red") == []
        assert await found(store, "red", whole) == [2, 1, 0]
        assert await found(store, "red", replace(whole, places={0, 2})) == [2, 0]

    async def test_an_incomplete_scope_finds_nothing(self, store: Store) -> None:
        await written(store, "word")
        for scope in (
            Scope("", "main", "s1"),
            Scope("acme", "", "s1"),
            Scope("acme", "main", ""),
            Scope("", "", ""),
        ):
            assert await found(store, "word", span(scope)) == []
            assert await counted(store, [span(scope)], [Lane("word")]) == [0]
            assert await store.index.scan(span(scope), 9) == ([], None)

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
    @settings(max_examples=15, deadline=None, suppress_health_check=SHARED)
    async def test_no_session_finds_what_another_holds(
        self, store: Store, writes: list[tuple[Scope, str, int]]
    ) -> None:
        """Whatever is written, erased and written again under shared names: a session finds its own
        rows and no others."""
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

    @given(
        words=st.lists(
            st.text(string.ascii_lowercase + "天气模型é_./-\"'*", min_size=1, max_size=8),
            min_size=1,
            max_size=6,
        )
    )
    @settings(max_examples=25, deadline=None, suppress_health_check=SHARED)
    async def test_any_word_of_a_text_is_found_whatever_it_is_made_of(
        self, store: Store, words: list[str]
    ) -> None:
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        await written(store, "", " ".join(words))
        for word in words:
            if any(character.isalnum() for character in word):
                assert await found(store, word) == [2], word
            if len(word) >= 3:
                assert await found(store, word, substring=True) == [2], word
