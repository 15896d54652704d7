"""Results of tools in short from their arrival on, by the facts of Comis's microcompaction where
they hold (docs/pipeline.md#long-results)."""

from __future__ import annotations

import json
from base64 import b64encode
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.message import Form, Slot
from contextengine_server.context.plan import Reshaped, segment_slots
from contextengine_server.engines.contract import CompactionGoal, CompactionStep
from contextengine_server.engines.pipeline import PipelineEngine, PipelineOptions
from contextengine_server.engines.pipeline.compaction import CHUNK
from contextengine_server.testing.engine import views
from contextengine_server.testing.engine.real_sessions import REAL_SHAPER, count
from contextengine_server.testing.engine.trial import lawful
from contextengine_server.testing.oracle.offloaded import dishonest
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.wire.slots import item_of
from contextengine_server.wire.tails import ends_of

BUDGET = ReferenceTokens(1_000_000)


def result(text: str = "", *, id: str = "c", images: int = 0, **fields: Any) -> pb.Part:
    """A result; without text it has no part."""
    part = pb.Part(tool_result=pb.ToolResultPart(call_id=id, **fields))
    if text:
        part.tool_result.parts.add().text.text = text
    for _ in range(images):
        part.tool_result.parts.add().image.uri = "https://example.org/a.png"
    return part


def call(tool: str, id: str = "c", **arguments: Any) -> pb.Part:
    asked = pb.ToolCallPart(call_id=id, name=tool, arguments_json=json.dumps(arguments).encode())
    return pb.Part(tool_call=asked)


class Session:
    """A session that goes on."""

    def __init__(self, **options: Any) -> None:
        options = {"compaction_prefix_anchor_turns": 0, **options}
        self.engine = PipelineEngine(PipelineOptions(**options))
        self.view, self.messages = views.empty(), list[pb.Message]()

    def add(self, role: pb.Role, *parts: pb.Part, **fields: Any) -> int:
        message = pb.Message(role=role, parts=parts, **fields)
        self.messages.append(message)
        entry = views.entry_of(ViewRow(len(self.messages), message, len(self.messages)), count)
        apply(self.view, extend(self.view, [entry], REAL_SHAPER))
        return len(self.messages)

    def say(self, words: str = "go on") -> int:
        return self.add(pb.ROLE_USER, pb.Part(text=pb.TextPart(text=words)))

    def answer(self, tool: str, *answers: pb.Part, **arguments: Any) -> int:
        """A tool is called once for each of these results, which come in one message."""
        self.add(pb.ROLE_ASSISTANT, *(call(tool, one.tool_result.call_id) for one in answers))
        return self.add(pb.ROLE_TOOL, *answers)

    def slots(self, budget: int = BUDGET) -> dict[int, Slot]:
        """What is shown, by sequence; lawful."""
        plan = self.engine.plan(self.view, ReferenceTokens(budget))
        assert lawful(self.view, self.engine, plan, budget) is None
        self.reasons = {
            sequence: each.reason
            for each in plan.segments
            if isinstance(each, Reshaped)
            for sequence in each.slots
        }
        slots = [slot for part in plan.segments for slot in segment_slots(part, self.view)]
        return {slot.sequence: slot for slot in slots}

    def short(self, budget: int = BUDGET) -> dict[int, list[str]]:
        """What the results of messages in short say, by sequence; honest."""
        found = {}
        for sequence, slot in self.slots(budget).items():
            if slot.form is not Form.VERBATIM:
                item = item_of(slot.frame)
                assert dishonest(item, self.messages[sequence - 1]) is None
                found[sequence] = [texts(part) for part in item.message.parts]
        return found


def texts(part: pb.Part) -> str:
    return "".join(inner.text.text for inner in part.tool_result.parts)


def is_short(tool: str, chars: int, **options: Any) -> bool:
    one = Session(**options)
    return bool(one.answer(tool, result("x" * chars)) and one.short())


@pytest.mark.parametrize(
    ("tool", "most"),
    [("bash", 8_000), ("memory_search", 8_000), ("write", 8_000), ("mcp__github__issues", 15_000),
     ("read", 15_000), ("file_read", 15_000), ("Read", 15_000), ("read_file", 15_000),
     ("readFile", 15_000), ("read_text_file", 15_000), ("str_replace_editor", 8_000)],
)  # fmt: skip
def test_a_result_is_shown_as_it_is_up_to_the_limit_of_its_tool(tool: str, most: int) -> None:
    """8,000 characters are inline, 8,001 are not. Comis's guard knows only `read`, its documents
    `file_read`."""
    assert not is_short(tool, most)
    assert is_short(tool, most + 1)


def test_the_limits_are_options() -> None:
    assert not is_short("bash", 50_000, max_inline_tool_result_chars=50_000)
    assert is_short("bash", 4_001, max_inline_tool_result_chars=4_000)
    assert is_short("mcp__a__b", 8_001, max_inline_mcp_tool_result_chars=8_000)
    assert is_short("read", 8_001, max_inline_file_read_result_chars=8_000)


def test_a_reference_says_how_much_it_is_and_how_to_read_it_before_head_and_tail() -> None:
    one = Session()
    one.say()
    said = "A" * 1_500 + "B" * 8_000 + "C" * 500
    sequence = one.answer("bash", result(said))
    [[shown]] = one.short().values()
    assert shown.startswith(
        "[Tool result offloaded to disk: bash returned 10000 chars. hasMore=true\n"
    )
    assert "--- head (1500 chars) ---\n" + "A" * 1_500 + "\n" in shown
    assert shown.endswith("\n--- tail (500 chars) ---\n" + "C" * 500 + "\n]")
    called = f'session_search {{"sequences": [{sequence}]}}'
    back = f"expand sequence {sequence} to read it, in pages, by {called}\n"
    assert 0 < shown.index(back) < shown.index("--- head")
    assert one.reasons[sequence].startswith("long or empty results")
    assert one.slots()[sequence].form is Form.HEAD_TAIL


def test_several_texts_are_one() -> None:
    one, part = Session(), result("A" * 1_000)
    for letter, times in (("B", 1_000), ("C", 8_000)):
        part.tool_result.parts.add().text.text = letter * times
    one.answer("bash", part)
    [[shown]] = one.short().values()
    assert "A" * 1_000 + "B" * 500 + "\n--- tail" in shown


def test_a_result_over_the_hard_cap_is_told_of() -> None:
    """Comis truncates it first, and what it took is lost; the preview is the same."""
    one = Session()
    sequence = one.answer("bash", result("x" * 150_000))
    with capture_logs() as logs:
        [[shown]] = one.short().values()
        one.short()
    assert "bash returned 150000 chars. hasMore=true" in shown
    assert "--- head (1500 chars) ---" in shown
    [warned] = [line for line in logs if line["log_level"] == "warning"]
    assert (warned["sequence"], warned["chars"], warned["cap"]) == (sequence, 150_000, 100_000)


def test_what_is_long_by_its_picture_has_no_tail_and_keeps_the_picture() -> None:
    """Nobody but the harness could bring a picture back, so the model must see it once."""
    one = Session()
    sequence = one.answer("look", result("word " * 400, images=1))
    [[shown]] = one.short().values()
    assert "look returned 8400 chars" in shown
    assert "--- head (1500 chars) ---" in shown
    assert "--- tail" not in shown
    message = item_of(one.slots()[sequence].frame).message
    assert message.parts[0].tool_result.parts[1].HasField("image")
    # Of what the head would hold nothing would be left out.
    one.answer("look", result("x", images=2))
    assert list(one.short()) == [sequence]


@pytest.mark.parametrize("said", ["", " \n"])
def test_an_empty_result_says_so_and_an_empty_error_stands(said: str) -> None:
    """An empty result makes the next turn of a model silent."""
    one = Session()
    one.say()
    sequence = one.answer("bash", result(said))
    one.answer("bash", result(said, is_error=True))
    assert one.short() == {sequence: ['[Tool "bash" returned no output.]']}
    assert not one.messages[sequence - 1].parts[0].tool_result.parts or said  # stored as it came
    one.answer("bash", result(images=1))
    assert list(one.short()) == [sequence]


def test_what_is_brought_back_is_not_put_away_again() -> None:
    """It would never end."""
    one = Session()
    tools = ("ctx_expand", "ctx_search", "session_search", "mcp__context__ctx_expand")
    back = [one.answer(tool, result("x" * 100_000)) for tool in tools]
    details = json.dumps({"filePath": "/s/tool-results/c1.json"}).encode()
    back.append(one.answer("read", result("x" * 20_000, details_json=details)))
    assert not set(back) & set(one.short())
    other = json.dumps({"filePath": "/src/tool.ts"}).encode()
    away = {
        one.answer("read", result("x" * 20_000, details_json=other)),
        one.answer("bash", result("x" * 20_000, details_json=details)),
        one.answer("read", result("x" * 20_000, details_json=b'"/tool-results/"')),
        one.answer("read", result("x" * 20_000, details_json=b"/tool-results/")),
        one.answer("read", result("x" * 150_000, details_json=details)),
        one.answer("ctx_expand", result("x" * 100_001)),
    }
    assert set(one.short()) == away


def test_other_messages_are_left_alone() -> None:
    one = Session()
    one.say("word " * 10_000)
    one.add(pb.ROLE_ASSISTANT, pb.Part(text=pb.TextPart(text="word " * 10_000)))
    one.add(pb.ROLE_ASSISTANT, call("bash"))
    one.add(pb.ROLE_TOOL, result("x" * 9_000), labels={"pinned": ""})
    assert not one.short()


def test_while_calls_stand_open_results_are_as_they_came() -> None:
    """Law 2. From the last result on the form stays."""
    one = Session(history_turns=100)
    one.say()
    one.add(pb.ROLE_ASSISTANT, call("bash", "a"), call("read", "b"))
    first = one.add(pb.ROLE_TOOL, result("x" * 9_000, id="a"))
    assert not one.short()
    second = one.add(pb.ROLE_TOOL, result("x" * 16_000, id="b"))
    before = one.slots()
    assert set(one.short()) == {first, second}
    for number in range(30):
        one.say()
        one.answer("bash", result(f"{number} " * 2_000))
    after = one.slots()
    assert all(after[sequence].hash == slot.hash for sequence, slot in before.items())


def test_the_epoch_knows_only_forms_that_were_not_there_from_the_first() -> None:
    one = Session()
    one.say()
    one.answer("bash", result("x" * 9_000))
    plan = one.engine.plan(one.view, BUDGET)
    assert not plan.forms  # nothing was ever shown otherwise
    one.add(pb.ROLE_ASSISTANT, call("bash", "a"), call("bash", "b"))
    one.add(pb.ROLE_TOOL, result("x" * 9_000, id="a"))
    one.add(pb.ROLE_TOOL, result("x" * 9_000, id="b"))
    assert one.engine.plan(one.view, BUDGET).forms


def test_of_several_results_in_a_message_each_is_by_itself() -> None:
    """With a name that its call has where the result has none, also where ids repeat."""
    one = Session()
    one.add(pb.ROLE_ASSISTANT, call("bash", "a"), call("read", "a"), call("ls", "b"))
    sequence = one.add(
        pb.ROLE_TOOL,
        result("x" * 9_000, id="a"),
        result("y" * 9_000, id="a"),
        result(id="b"),
    )
    [[first, second, third]] = one.short().values()
    assert "disk: bash returned" in first
    assert second == "y" * 9_000
    assert third == '[Tool "ls" returned no output.]'
    assert not item_of(one.slots()[sequence].frame).message.HasField("native")


def test_a_name_breaks_no_line() -> None:
    one = Session()
    one.answer("ba\nsh] " + "y" * 100, result("x" * 9_000))
    [[shown]] = one.short().values()
    name = ("ba sh] " + "y" * 100)[:64]
    begins = f"[Tool result offloaded to disk: {name} returned 9000 chars. hasMore=true\nAll of it"
    assert shown.startswith(begins)


def test_results_of_a_step_share_what_they_may_have_together() -> None:
    """200,000 characters. In Comis they are whole again in the next turn."""
    one = Session()
    one.say()
    parts = [result(f"{n} word\n" * 14_000, id=str(n)) for n in range(3)]
    sizes = [len(texts(part)) for part in parts]
    one.add(pb.ROLE_ASSISTANT, *(call("ctx_expand", str(n)) for n in range(3)), call("bash", "s"))
    asked = [one.add(pb.ROLE_TOOL, part) for part in parts]
    one.add(pb.ROLE_TOOL, result("x" * 300, id="s"))
    assert sum(sizes) > 200_000 > 1.1 * max(sizes)
    shown = one.short()
    assert set(shown) == set(asked)
    chars = [len(said) for [said] in shown.values()]
    assert all(50_000 < size < 67_000 for size in chars)
    assert all(
        "characters are left out here; the whole message is stored" in said
        for [said] in shown.values()
    )
    before = one.slots()
    one.say()
    assert one.slots()[asked[0]].hash == before[asked[0]].hash


def test_each_result_of_a_step_has_something() -> None:
    one = Session()
    one.add(pb.ROLE_ASSISTANT, *(call("ctx_search", str(n)) for n in range(12)))
    for n in range(11):
        one.add(pb.ROLE_TOOL, result("word " * 20_000, id=str(n)))
    last = one.add(pb.ROLE_TOOL, result("x" * 4_100, id="11"))
    [shown] = one.short()[last]
    assert len(shown) >= 500


def test_neither_mask_nor_eviction_touches_what_is_short_and_it_stands_for_nothing() -> None:
    one = Session(eviction_min_age=3, observation_keep_window=1, observation_trigger_chars=50_000)
    first = one.answer("grep", result("w " * 2_000))
    one.add(pb.ROLE_ASSISTANT, call("read", path="a"))
    small = one.add(pb.ROLE_TOOL, result("small " * 500))
    one.add(pb.ROLE_ASSISTANT, call("read", path="a"))
    long = one.add(pb.ROLE_TOOL, result("long " * 4_000))
    for _ in range(60):
        one.answer("probe", result("word " * 600))
    slots = one.slots()
    assert slots[first].form is Form.PLACEHOLDER  # masks are on
    assert slots[long].form is Form.HEAD_TAIL
    assert slots[small].form is Form.VERBATIM
    one.add(pb.ROLE_ASSISTANT, call("read", path="a"))
    third = one.add(pb.ROLE_TOOL, result("newer " * 500))
    for _ in range(60):
        one.answer("probe", result("word " * 600))
    slots = one.slots()
    assert f"see sequence {third};" in texts(item_of(slots[small].frame).message.parts[0])
    assert slots[long].form is Form.HEAD_TAIL


@pytest.mark.timeout(60)
def test_two_results_of_one_message_that_say_the_same_end_the_search() -> None:
    """The second stands for the first, under the same sequence: what stands for that message, which
    is shown in short, was looked for without end."""
    one = Session(eviction_min_age=3)
    one.add(pb.ROLE_ASSISTANT, call("read", path="a"))
    small = one.add(pb.ROLE_TOOL, result("small " * 500))
    one.add(pb.ROLE_ASSISTANT, call("read", "a", path="a"), call("read", "b", path="a"))
    both = one.add(pb.ROLE_TOOL, *(result("long " * 4_000, id=id) for id in "ab"))
    for _ in range(60):
        one.answer("probe", result("word " * 600))
    slots = one.slots()
    assert slots[both].form is Form.HEAD_TAIL
    assert slots[small].form is Form.VERBATIM


def test_a_mask_in_the_same_message_lifts_nothing() -> None:
    one = Session(observation_keep_window=1, observation_trigger_chars=50_000)
    both = one.answer("grep", result("x" * 9_000, id="a"), result("w " * 2_000, id="b"))
    for _ in range(60):
        one.answer("probe", result("word " * 600))
    slot = one.slots()[both]
    first, second = (texts(part) for part in item_of(slot.frame).message.parts)
    assert slot.form is Form.PLACEHOLDER
    assert first.startswith("[Tool result offloaded to disk: grep returned 9000 chars")
    assert second.startswith("[Tool result summarized: grep")


def test_the_shorter_of_a_cap_and_a_reference_is_shown() -> None:
    one = Session()
    one.say()
    sequence = one.answer("bash", result("word " * 20_000))
    for budget in (8_000, 200_000):
        assert one.short(budget)[sequence][0].startswith("[Tool result offloaded to disk: ")
    # Many results in one message, none of them long, are over the cap of a small budget.
    one = Session()
    one.say()
    many = one.answer("bash", *(result("word " * 1_500, id=str(n)) for n in range(8)))
    assert one.slots(4_000)[many].form is Form.HEAD_TAIL


def test_what_base64_is_shown_as_is_measured() -> None:
    one = Session()
    one.say()
    encoded = b64encode(Random(1).randbytes(15_000)).decode()
    sequence = one.answer("bash", result(encoded))
    assert "disk" not in texts(item_of(one.slots()[sequence].frame).message.parts[0])
    sequence = one.answer("bash", result(f"{encoded}\n" + "word " * 2_000))
    said = texts(item_of(one.slots()[sequence].frame).message.parts[0])
    assert said.startswith("[Tool result offloaded to disk: bash returned 10")
    assert encoded[:100] not in said


def test_a_tail_that_says_how_it_ended_has_more_room() -> None:
    plain = "line of words\n" * 1_000
    head, tail = ends_of(plain, 3_000)
    assert plain[head - 1] == plain[tail - 1] == "\n"
    assert abs(head - 1_600) < 320
    assert abs(len(plain) - tail - 800) < 160
    for end in ("error: no", "exit code 3", "total 14", "{}"):
        head, tail = ends_of(plain + end, 3_000)
        assert abs(head - 1_500) < 300
        assert abs(len(plain) + len(end) - tail - 900) < 180
    short = "w " * 1_000 + "error"
    assert ends_of(short, 1_000)[0] == int(800 * 2 / 3)
    assert ends_of("x" * 9_000, 3_000) == (1_600, 9_000 - 800)


def test_a_summary_is_shorter_than_what_is_shown_of_what_it_covers() -> None:
    """However long it is in the store, of which the summarizer reads no more than a chunk."""
    one = Session(history_turns=100)
    for _ in range(60):
        one.say("word " * 40)
        one.answer("bash", result("word " * 12_000))
    budget = ReferenceTokens(16_000)
    assert one.engine.due(one.view, budget, None)
    goal = CompactionGoal(budget, floor=110)
    step = one.engine.compaction(one.view, goal)
    assert isinstance(step, CompactionStep)
    assert one.view.span(step.first, step.last) <= CHUNK + 12_100
    slots = one.slots(10_000_000)
    covered = [
        slots[slot.sequence].tokens
        for at in range(step.first, step.last + 1)
        for slot in one.view.atom(at).slots
    ]
    assert step.target_tokens < sum(covered)
