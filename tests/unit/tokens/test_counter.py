"""Counting never fails, is the same in every way of calling, and leaves the event loop free."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_server.tokens import TokenCounter, UnknownEncoding, encodings
from contextengine_server.tokens.counter import INLINE_BYTES, SLICE_CHARS, slice_end

MEGABYTE = 1_000_000
PROSE = (
    "The quick brown fox, aged 12, jumps over the lazy dog's back.\n\tThen it rests; naïve, isn't"
    " it?  "
)

HARD = {
    "ten megabytes": "hello world, this is it. " * 420_000,
    "spaces": " " * MEGABYTE,
    "spaces and a word": " " * MEGABYTE + "x",
    "tabs": "\t" * MEGABYTE,
    "no-break spaces": "\u00a0" * MEGABYTE,
    "newlines": "\n" * MEGABYTE,
    "one letter": "a" * MEGABYTE,
    "one digit": "7" * MEGABYTE,
    "one mark": "!" * MEGABYTE,
    "one ideograph": "漢" * MEGABYTE,
    "one emoji": "😀" * MEGABYTE,
    "one accent": "\u0301" * MEGABYTE,
    "zero bytes": "\0" * MEGABYTE,
    "lone surrogates": "\ud800" * 50_000,
    "a surrogate in prose": PROSE * 200 + "\udfff" + PROSE * 200,
}

SPECIAL = [
    "<|endoftext|>",
    "<|endofprompt|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|start|>",
    "<|message|>",
]


@pytest.fixture(scope="module", params=encodings.ENCODINGS)
def counter(request: pytest.FixtureRequest) -> Iterator[TokenCounter]:
    counter = TokenCounter(request.param)
    yield counter
    counter.close()


def whole(counter: TokenCounter, text: str) -> int:
    """The count without any slicing: the oracle, for texts that the tokenizer bears."""
    return len(encodings.load(counter.encoding).encode_ordinary(text))


@pytest.mark.parametrize("name", HARD)
async def test_hard_texts_are_counted_and_alike_in_every_way(
    counter: TokenCounter, name: str
) -> None:
    text = HARD[name]
    count = counter.count_text(text)
    assert 0 < count <= len(text.encode("utf-8", "surrogatepass"))
    assert await counter.count_text_async(text) == count
    assert await counter.count_many(["before", text, "after"]) == [
        counter.count_text("before"),
        count,
        counter.count_text("after"),
    ]


@pytest.mark.parametrize("text", SPECIAL)
def test_the_text_of_a_special_token_is_plain_text(counter: TokenCounter, text: str) -> None:
    assert counter.count_text(text) > 1
    assert counter.count_text(f"say {text} now") > counter.count_text("say now") + 1


def test_counts_are_those_of_the_tokenizer(counter: TokenCounter) -> None:
    assert counter.count_text("") == 0
    assert counter.count_text("hello world") == 2
    assert counter.count_text(PROSE) == whole(counter, PROSE)


@given(
    pieces=st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=6),
    filler=st.sampled_from([PROSE, "word ", "if x == 1:\n    return f(y, 'z')\n", "один два три "]),
)
@settings(max_examples=60, deadline=None)
def test_slicing_text_with_words_costs_nothing(pieces: list[str], filler: str) -> None:
    counter = TokenCounter()
    text = "".join(filler * (SLICE_CHARS // len(filler) + 1) + piece for piece in pieces)
    assert counter.count_text(text) == whole(counter, text)


@given(st.text(st.characters(categories=None), max_size=400), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_no_text_makes_a_count_fail(text: str, doublings: int) -> None:
    text *= 30**doublings
    assert TokenCounter().count_text(text) >= (1 if text else 0)


def test_slices_are_bounded_and_cover_the_text() -> None:
    for text in (PROSE * 1000, "a" * 50_000, " " * 50_000, "x" * SLICE_CHARS, ""):
        ends = [0]
        while ends[-1] < len(text):
            ends.append(slice_end(text, ends[-1]))
            assert ends[-2] < ends[-1] <= ends[-2] + SLICE_CHARS


def test_what_panics_in_the_tokenizer_is_bounded_by_its_bytes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    counter = TokenCounter()
    with pytest.raises(BaseException, match="StackOverflow"):
        whole(counter, " " * MEGABYTE)
    assert counter._count_slice(" " * MEGABYTE) == MEGABYTE
    assert "panicked" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("texts", "small"),
    [
        ([], True),
        (["a" * INLINE_BYTES], True),
        (["a" * (INLINE_BYTES + 1)], False),
        (["a" * INLINE_BYTES, "b"], False),
        (["é" * (INLINE_BYTES // 2)], True),
        (["é" * (INLINE_BYTES // 2 + 1)], False),
        (["\ud800" * (INLINE_BYTES // 3)], True),
        (["漢" * INLINE_BYTES], False),
    ],
)
async def test_only_what_is_small_together_is_counted_on_the_loop(
    texts: list[str], small: bool
) -> None:
    counter = TokenCounter()
    threads = set()
    count_slice = counter._count_slice

    def watched(piece: str) -> int:
        threads.add(threading.current_thread())
        return count_slice(piece)

    counter._count_slice = watched  # type: ignore[method-assign]
    counts = await counter.count_many(texts)
    assert (threads <= {threading.main_thread()}) is small
    assert counter.count_small(texts) == (sum(counts) if small else None)


async def test_many_small_texts_are_counted_in_order(counter: TokenCounter) -> None:
    texts = ["word " * (n % 7) for n in range(20_000)]
    assert await counter.count_many(texts) == [counter.count_text(text) for text in texts]


async def test_the_event_loop_is_not_held() -> None:
    counter = TokenCounter()
    await counter.warm()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    ticker = asyncio.create_task(tick())
    count = await counter.count_text_async(HARD["ten megabytes"])
    ticker.cancel()
    assert count == counter.count_text(HARD["ten megabytes"])
    assert ticks > 100


async def test_a_cancelled_count_stops() -> None:
    counter = TokenCounter()
    await counter.warm()
    slices = 0
    count_slice = counter._count_slice
    cancelled = threading.Event()

    def watched(piece: str) -> int:
        nonlocal slices
        slices += 1
        assert cancelled.wait(60)
        return count_slice(piece)

    counter._count_slice = watched  # type: ignore[method-assign]
    task = asyncio.create_task(counter.count_text_async(HARD["ten megabytes"]))
    while not slices:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    cancelled.set()
    counter._threads.shutdown(wait=True)
    assert slices < len(HARD["ten megabytes"]) / SLICE_CHARS / 2


def test_an_unknown_encoding_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownEncoding, match=r"p50k_edit.*o200k_base, cl100k_base"):
        TokenCounter("p50k_edit")


def test_the_method_names_the_encoding(counter: TokenCounter) -> None:
    assert counter.method == f"tiktoken:{counter.encoding}"
