"""What the layers of the pipeline decide as messages arrive is what they decide over the whole
list: `tests.oracle.layers` is the oracle."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Addressee, Form, Gone
from contextengine_server.engines.pipeline import PipelineOptions
from contextengine_server.wire.placeholders import BEGINNINGS
from contextengine_server.wire.thoughts import LEFT_OUT
from tests.oracle import layers
from tests.unit.engines import test_pipeline as results
from tests.unit.engines.reasoning import playing

HOUR_MS = 3_600_000

TEXTS = {
    "It is 4.": "It is 4.",
    "<think>hm</think>It is 4.": "It is 4.",
    "<THINKING a='b'>hm</ thinking > four": "four",
    "a <think>b <think>c</think> d</think> e": "a  e",
    "<final>It is 4.</final>": "It is 4.",
    "<think>hm": "hm",
    "</think>so": "so",
    "<think>all of it</think>": "",
    "`<think>x</think>` is a tag": "`<think>x</think>` is a tag",
    "```\n<think>x</think>\n```": "```\n<think>x</think>\n```",
    "~~~\n<final>x</final>\n~~~": "~~~\n<final>x</final>\n~~~",
    "```\n<think>open</think>": "```\n<think>open</think>",
    "<antThinking>a\n```\ncode\n```\nb</antThinking>c": "c",
    "<thinker>stays</thinker>": "<thinker>stays</thinker>",
}
"""What models say, and what of it is no reasoning."""

PARTS = {
    "plain": partial(playing.thought, "hm"),
    "signed": partial(playing.thought, "hm", signature=b"s"),
    "damaged": partial(playing.thought, "a \ufffd b", signature=b"s"),
    "redacted": partial(playing.thought, "", redacted=b"x"),
}
reply = st.tuples(
    st.lists(st.sampled_from(sorted(PARTS)), max_size=3),
    st.sampled_from(sorted(TEXTS)),
    st.sampled_from(("", "", "one", "two")),
    st.sampled_from(("", "", "", "call", "signed call", "pinned")),
)
turn = st.tuples(st.sampled_from((0, 1, 1, 1, 2)), st.lists(reply, max_size=4))
READERS = (
    playing.ANTHROPIC,
    Addressee("m", "mistral", "m"),
    Addressee("one", "google", "one", reasoning_may_go=True),
    Addressee(),
)


@given(
    turns=st.lists(turn, min_size=1, max_size=9),
    reader=st.sampled_from(READERS),
    keep=st.integers(1, 7),
)
@example(
    turns=[(1, [(["plain"], "It is 4.", "one", "")]), (1, []), (1, [])],
    reader=READERS[2], keep=1,
)  # fmt: skip
def test_reasoning(turns: list[Any], reader: Addressee, keep: int) -> None:
    session = playing.Session(reader, keep=keep)
    messages: list[pb.Message] = []
    clock = 0

    def add(message: pb.Message, *, timed: bool = True) -> None:
        if timed:
            message.timestamp.FromMilliseconds(clock)
        messages.append(message)
        session.add(message)

    for pause, replies in turns:
        clock += HOUR_MS if pause == 2 else 1_000
        add(playing.said(pb.ROLE_USER, "go on"), timed=pause > 0)
        for kinds, text, model, more in replies:
            clock += 1_000
            parts = [PARTS[kind]() for kind in kinds]
            message = pb.Message(
                role=pb.ROLE_ASSISTANT, parts=[*parts, playing.text(text)], model=model
            )
            if more == "pinned":
                message.labels["pinned"] = "true"
            if "call" in more:
                asked = message.parts.add(thought_signature=b"g" if "signed" in more else b"")
                asked.tool_call.call_id = asked.tool_call.name = f"c{len(messages)}"
            add(message)
            if "call" in more:
                answer = pb.Message(role=pb.ROLE_TOOL)
                answer.parts.add().tool_result.call_id = f"c{len(messages) - 1}"
                answer.parts[0].tool_result.parts.add().text.text = "found"
                add(answer)
        wanted = layers.without_reasoning(
            messages, session.options, reader, lambda said: TEXTS.get(said, said)
        )
        shown = {at: list(message.parts) for at, message in session.changed().items()}
        assert {at: parts for at, parts in shown.items() if not _alone(parts)} == {
            at: parts for at, parts in wanted.items() if parts
        }
        assert {at for at, parts in shown.items() if _alone(parts)} == {
            at for at, parts in wanted.items() if not parts
        }


def _alone(parts: list[pb.Part]) -> bool:
    """True for what stands in place of a message of nothing but reasoning."""
    return len(parts) == 1 and parts[0].text.text.startswith(LEFT_OUT)


@given(st.integers(3, 20), st.integers(0, 4), st.lists(st.integers(0, 3), max_size=60))
def test_the_history_window(kept: int, anchors: int, turns: list[int]) -> None:
    one = results.Session(history_turns=kept, compaction_prefix_anchor_turns=anchors)
    of_turn: list[int] = []
    for turn, replies in enumerate(turns):
        one.say()
        of_turn.append(turn)
        for _ in range(replies):
            one.reply()
            of_turn.append(turn)
        gone = layers.hidden(turn + 1, one.engine.options, anchors)
        # What nobody answered yet stays: each message is a step here.
        unanswered = one.view.unanswered + 1
        wanted = [at for at, turn in enumerate(of_turn, 1) if turn not in gone or at >= unanswered]
        assert sorted(one.shown(1_000_000)) == wanted


TOOLS = ("read", "probe", "probe", "web_search", "mcp__wiki__page", "memory_search")
called = st.tuples(
    st.sampled_from(TOOLS),
    st.integers(0, 3),
    st.sampled_from((10, 300, 300, 450)),
    st.sampled_from(("", "", "", "", "image", "error", "user")),
)
WHY = {beginning: why for why, beginning in BEGINNINGS.items()}


@given(
    st.lists(called, min_size=10, max_size=70),
    st.integers(3, 8),
    st.integers(1, 8),
    st.integers(1, 4),
    st.sampled_from(((50_000, 40_000), (60_000, 20_000), (50_000, 60_000))),
)
def test_dead_content_and_old_results(
    calls: list[Any], age: int, window: int, ephemeral: int, chars: tuple[int, int]
) -> None:
    trigger, least = chars
    one = results.Session(
        history_turns=100, eviction_min_age=age, observation_keep_window=window,
        ephemeral_keep_window=ephemeral, observation_trigger_chars=trigger,
        observation_deactivation_chars=least if least < trigger else trigger,
    )  # fmt: skip
    apart = least if least < trigger else trigger - trigger // 3
    options = PipelineOptions(
        eviction_min_age=age, observation_keep_window=window, ephemeral_keep_window=ephemeral,
        observation_trigger_chars=trigger, observation_deactivation_chars=apart,
    )  # fmt: skip
    one.say()
    seen: list[layers.Result] = []
    for tool, target, words, more in calls:
        if more == "user":
            one.say()
        if more == "image":
            words = min(words, 100)  # a longer one is put away from its arrival on
        before = one.view.total
        arguments = {"path" if tool == "read" else "query": f"f{target}"}
        at = one.call(
            tool, words, image=more == "image",
            error="it broke " * words if more == "error" else "", is_error=more == "error",
            **arguments,
        )  # fmt: skip
        tokens = one.view.atoms[-1].slots[-1].tokens
        read = (tool, target) if tool in ("read", "web_search") else None
        seen.append(layers.Result(at, tool, read, tokens, before, more == "error", more == "image"))
    small = {each.number for each in seen if each.tokens < 200}
    wanted = layers.in_short(seen, options)
    shown = one.short(1_000_000)
    assert {at: _why(words) for at, words in shown.items()} == {
        at: why for at, why in wanted.items() if at not in small
    }
    assert all(one.shown(1_000_000)[at] is Form.VERBATIM for at in small)


def _why(words: str) -> Gone:
    return next(why for beginning, why in WHY.items() if words.startswith(beginning))
