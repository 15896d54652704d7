"""The layers of the pipeline: what each leaves out, and what it never does, by the facts of Comis's
engine where they hold (docs/pipeline.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.lawful import snapshot_of
from contextengine_server.context.message import Form
from contextengine_server.context.plan import Summarized, segment_slots
from contextengine_server.engines.contract import CompactionGoal, CompactionStep
from contextengine_server.engines.pipeline import PipelineEngine, PipelineOptions
from contextengine_server.engines.pipeline import forms as layers
from contextengine_server.engines.pipeline.tool_names import is_protected, is_web
from contextengine_server.testing.engine import views
from contextengine_server.testing.engine.real_sessions import REAL_SHAPER, count
from contextengine_server.testing.engine.trial import lawful
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.wire.slots import item_of

BUDGET = ReferenceTokens(200_000)


class Session:
    """A session that goes on by turns and results."""

    def __init__(self, **options: Any) -> None:
        options = {"compaction_prefix_anchor_turns": 0, **options}
        self.engine = PipelineEngine(PipelineOptions(**options))
        self.view, self.count, self.made = views.empty(), 0, 0

    def add(self, *messages: pb.Message) -> int:
        entries = []
        for message in messages:
            self.count += 1
            row = ViewRow(self.count, message, 100 * self.count)
            entries.append(views.entry_of(row, count))
        apply(self.view, extend(self.view, entries, REAL_SHAPER))
        return self.count

    def say(self, text: str = "go on") -> int:
        return self.add(said(pb.ROLE_USER, text))

    def reply(self, text: str = "done") -> int:
        return self.add(said(pb.ROLE_ASSISTANT, text))

    def call(self, tool: str, words: int = 100, *, image: bool = False, error: str = "",
             is_error: bool = False, **arguments: Any) -> int:  # fmt: skip
        """A tool is called and answers; the answer's sequence."""
        id = f"c{self.count}"
        asked = pb.Message(role=pb.ROLE_ASSISTANT)
        part = pb.ToolCallPart(call_id=id, name=tool, arguments_json=json.dumps(arguments).encode())
        asked.parts.add().tool_call.MergeFrom(part)
        answer = pb.Message(role=pb.ROLE_TOOL)
        result = answer.parts.add().tool_result
        result.call_id, result.name, result.is_error = id, tool, is_error
        result.parts.add().text.text = error or f"{tool}{self.count} " * words
        if image:
            result.parts.add().image.uri = "https://example.org/a.png"
        return self.add(asked, answer)

    def fill(self, results: int, words: int = 100) -> None:
        """So many results of a tool that nobody knows."""
        for _ in range(results):
            self.call("probe", words)

    def shown(self, budget: int = BUDGET) -> dict[int, Form]:
        """The messages shown and their forms, by sequence."""
        plan = self.engine.plan(self.view, ReferenceTokens(budget))
        assert lawful(self.view, self.engine, plan, budget) is None
        slots = [slot for part in plan.segments for slot in segment_slots(part, self.view)]
        self.texts = {slot.sequence: text(slot.frame) for slot in slots}
        self.messages = {slot.sequence: item_of(slot.frame).message for slot in slots}
        return {slot.sequence: slot.form for slot in slots if slot.sequence}

    def short(self, budget: int = BUDGET) -> dict[int, str]:
        """What stands in place of messages, by sequence."""
        shown = self.shown(budget)
        return {at: self.texts[at] for at, form in shown.items() if form is Form.PLACEHOLDER}

    def compact(self, budget: int, *, force: bool = False) -> list[tuple[int, int]]:
        """The ranges of steps that are summarized."""
        ranges: list[tuple[int, int]] = []
        for _ in range(20):
            goal = CompactionGoal(budget, force=force, floor=110, reached=bool(ranges))
            step = self.engine.compaction(self.view, goal)
            if not isinstance(step, CompactionStep):
                break
            self.made += 1
            below = [one for one in self.view.summaries if one.id in step.replaces]
            made, _ = views.summary(
                self.view, step.first, step.last, "word " * (step.target_tokens - 100),
                created=100 * self.count + self.made, count=count, below=below, depth=step.depth,
                before=snapshot_of(self.view, self.engine.saved(self.view, budget)),
            )  # fmt: skip
            self.view.place(made)
            ranges.append((step.first, step.last))
        return ranges


def said(role: pb.Role, words: str) -> pb.Message:
    message = pb.Message(role=role)
    message.parts.add().text.text = words
    return message


def text(frame: bytes) -> str:
    message = item_of(frame).message
    return " ".join(one.text.text for part in message.parts for one in part.tool_result.parts)


# The history window.


def test_the_window_shows_the_newest_turns_and_begins_with_a_user() -> None:
    one = Session(history_turns=6)
    for _ in range(20):
        one.say()
        one.reply()
    shown = sorted(one.shown())
    assert len(shown) == 2 * 6
    assert shown[0] % 2 == 1  # a user's
    one.say()
    one.reply()
    # It moves by a third of its turns, so that the beginning stays put between.
    assert sorted(one.shown())[: len(shown)] == shown
    one.say()
    assert min(one.shown()) == shown[4]


def test_the_first_turns_stand_before_the_window() -> None:
    one = Session(history_turns=3, compaction_prefix_anchor_turns=2)
    for _ in range(10):
        one.say()
        one.reply()
    assert sorted(one.shown()) == [1, 2, 3, 4, *range(15, 21)]


def test_no_user_message_or_few_turns_change_nothing() -> None:
    one = Session(history_turns=3)
    for _ in range(30):
        one.reply()
    assert len(one.shown()) == 30
    for _ in range(3):
        one.say()
    assert len(one.shown()) == 33


# The evictor.


def test_a_result_is_evicted_once_it_is_old_and_was_read_again() -> None:
    one = Session(eviction_min_age=3)
    first = one.call("read", 400, path="a")
    one.call("file_read", 400, path="./a")
    one.fill(3, 10)
    assert one.short() == {}  # no tick yet
    one.fill(1, 6_000)
    one.fill(1, 10)
    assert list(one.short()) == [first]
    assert one.short()[first].startswith("[superseded: ")


@pytest.mark.parametrize(
    ("tool", "arguments", "other"),
    [
        ("read", {"path": "a"}, {"path": "b"}),
        ("bash", {"command": "ls"}, {"command": "ls -l"}),
        ("web_search", {"query": "a"}, {"query": "b"}),
    ],
)
def test_other_paths_commands_and_queries_stand_for_nothing(
    tool: str, arguments: dict[str, Any], other: dict[str, Any]
) -> None:
    one = Session(eviction_min_age=3)
    one.call(tool, 400, **arguments)
    one.call(tool, 400, **other)
    one.fill(5, 2_000)
    assert one.short() == {}


def test_pictures_and_errors_go_by_age() -> None:
    one = Session(eviction_min_age=5)
    picture = one.call("look", 200, image=True)
    error = one.call("run", is_error=True, error="it broke " * 300)
    told = one.call("run", error="ENOENT: no such file")
    one.fill(2, 10)
    one.fill(1, 3_000)
    one.reply()
    assert one.short() == {picture: one.texts[picture]}
    one.fill(6, 1_500)
    short = one.short()
    assert short[picture].startswith("[evicted image: ")
    assert short[error].startswith("[evicted error: ")
    assert told not in short  # so few words are no longer than a marker
    assert all(
        f"expand sequence {at} with session_search to read" in words for at, words in short.items()
    )


def test_what_was_said_of_a_picture_goes_once_there_is_a_later_one() -> None:
    """As Comis's documents have it."""
    one = Session(eviction_min_age=3)
    first = one.call("image_analyze", 400, image_path="a.png", prompt="what is it?")
    one.fill(5, 2_000)
    assert one.short() == {}  # there is no later one
    second = one.call("Image_Analyze", 400, image_path="b.png")
    one.fill(5, 2_000)
    short = one.short()
    assert short[first].startswith("[evicted image: ")
    assert second not in short


def picture(words: str = "here it is") -> pb.Message:
    message = said(pb.ROLE_ASSISTANT, words)
    message.parts.add().image.uri = "https://example.org/a.png"
    return message


def test_pictures_that_the_model_made_go_by_age_and_its_words_stay() -> None:
    """Its age is how many messages came since; the words beside it stay where they are."""
    one = Session(eviction_min_age=9)
    one.say()
    made = one.add(picture())
    one.fill(4, 3_000)
    assert made not in one.shown() or one.shown()[made] is Form.VERBATIM
    one.fill(1, 10)
    one.fill(5, 2_000)
    assert one.shown()[made] is Form.PLACEHOLDER
    words, marker = one.messages[made].parts
    assert words.text.text == "here it is"
    assert marker.text.text.startswith("[evicted image: it is old; expand sequence")


def test_a_picture_beside_reasoning_and_one_that_is_pinned_stay() -> None:
    one = Session(eviction_min_age=3)
    one.say()
    thought, kept = picture(), picture()
    thought.parts.add().reasoning.text = "hm"
    kept.labels["pinned"] = "true"
    both = [one.add(thought), one.add(kept)]
    one.fill(12, 2_000)
    shown = one.shown()
    assert all(shown[each] is Form.VERBATIM for each in both)


# The masker.


def test_old_results_are_masked_from_the_trigger_on_and_for_good() -> None:
    options = {"observation_trigger_chars": 50_000, "observation_deactivation_chars": 40_000}
    one = Session(observation_keep_window=3, **options)
    first = one.call("probe", 300)
    kept = one.call("memory_search", 300, query="x")
    read = one.call("read", 300, path="a")
    one.fill(4, 300)
    assert one.short() == {}  # below the trigger
    one.fill(20, 300)
    short = one.short()
    assert first in short
    assert kept not in short
    assert read not in short
    assert short[first].startswith("[Tool result summarized: probe — ")
    assert f"expand sequence {first} with session_search to read them]\n" in short[first]
    # Of the newest three none, and none of what the model has not answered.
    assert max(short) <= one.count - 2 * 3
    one.fill(10, 300)
    later = one.short()
    assert short.items() <= later.items()


def test_what_comes_from_the_web_is_masked_sooner() -> None:
    one = Session(
        observation_trigger_chars=50_000,
        observation_deactivation_chars=40_000,
        ephemeral_keep_window=1,
    )
    found = one.call("mcp__wiki__page", 300)
    one.call("web_fetch", 300, url="https://example.org/a")
    plain = one.call("probe", 300)
    one.fill(20, 300)
    short = one.short()
    assert found in short
    assert plain not in short


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        *((name, "protected") for name in ("read", "ReadFile", "read_text_file", "memory_search")),
        *((name, "protected") for name in ("session_search", "mcp__own__ctx_expand")),
        *((name, "web") for name in ("WebFetch", "brave_search", "fetch_url", "mcp:fs.read")),
        *((name, "web") for name in ("mcp__fs__read_file", "mcp__memory__memory_search")),
        *((name, "other") for name in ("bash", "write_file", "str_replace_editor", "grep")),
    ],
)
def test_a_tool_is_the_same_whatever_it_is_called(tool: str, kind: str) -> None:
    """What memory, files and recall say stays, and what comes from elsewhere goes sooner, by all
    names that harnesses have for them."""
    assert (is_protected(tool), not is_protected(tool) and is_web(tool)) == (
        kind == "protected",
        kind == "web",
    )


def test_masks_move_by_ticks_and_not_between() -> None:
    one = Session(observation_keep_window=1)
    changes, before = 0, one.short()
    for _ in range(200):
        one.fill(1, 250)
        now = one.short()
        assert before.items() <= now.items()
        changes += now != before
        before = now
    assert 0 < changes <= 200 * 1_100 // 5_714 + 1


def test_a_layer_that_fails_leaves_out_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> dict[tuple[int, int], Any]:
        raise RuntimeError("no")

    one = Session(eviction_min_age=3)
    first = one.call("read", 400, path="a")
    one.call("read", 400, path="a")
    one.fill(4, 3_000)
    monkeypatch.setattr(layers, "LAYERS", (("broken", broken), *layers.LAYERS))
    assert first in one.short()


# Summarization.


def test_the_middle_is_summarized_between_the_first_turns_and_the_newest() -> None:
    one = Session(compaction_prefix_anchor_turns=2, history_turns=100, observation_keep_window=50)
    for _ in range(24):
        one.say("word " * 100)
        one.fill(2, 300)
    budget = one.view.total
    assert not one.engine.due(one.view, ReferenceTokens(budget * 2), None)
    assert one.engine.compaction(one.view, CompactionGoal(budget * 2)).reason == "below threshold"  # type: ignore[union-attr]
    assert one.engine.due(one.view, ReferenceTokens(budget), None)
    [(first, last), *_] = one.compact(budget)
    assert one.view.users[2] == first
    assert last < one.view.steps - 1
    plan = one.engine.plan(one.view, ReferenceTokens(budget))
    assert any(isinstance(segment, Summarized) for segment in plan.segments)
    assert {1, 6} <= one.shown(budget).keys()  # the first turns are there


def test_without_anchors_the_first_message_is_summarized() -> None:
    one = Session()
    for _ in range(12):
        one.say("word " * 300)
        one.reply("word " * 300)
    [(first, _), *_] = one.compact(one.view.total)
    assert first == 0


def test_no_compaction_follows_within_the_cooldown_while_all_fits() -> None:
    one = Session(compaction_cooldown_turns=5, history_turns=100)
    for _ in range(30):
        one.say("word " * 300)
        one.reply("word " * 300)
    budget = ReferenceTokens(int(one.view.total * 1.05))
    assert one.compact(budget)
    turns = 0
    while not one.engine.due(one.view, budget, None):
        one.say("word " * 60)
        one.reply("word " * 60)
        turns += 1
        assert turns < 400
    assert turns >= 5


def test_what_was_compacted_is_compacted_on_the_next_call_as_well() -> None:
    """Comis's compaction holds for one model call."""
    one = Session(compaction_prefix_anchor_turns=2)
    for _ in range(14):
        one.say("word " * 100)
        one.fill(2, 300)
    budget = one.view.total
    one.compact(budget)
    before = one.shown(budget)
    for _ in range(5):
        one.say()
        assert before.items() <= one.shown(budget).items()
