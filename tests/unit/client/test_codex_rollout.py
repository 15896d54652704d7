"""Rollout files of Codex: items as messages, compactions, turns that were taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contextengine.formats import Transcript, TranscriptError, from_responses, read_transcript
from contextengine.messages import text_of
from contextengine.types import ROLE_ASSISTANT, ROLE_TOOL, ROLE_USER

THREAD = "01a20a25-0502-7c01-9062-009dcd21a1e3"


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-23T20:42:08.036Z", "type": kind, "payload": payload}


def item(kind: str, **members: Any) -> dict[str, Any]:
    return line("response_item", type=kind, **members)


def said(text: str, role: str = "user") -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": part, "text": text}])


def called(call_id: str) -> dict[str, Any]:
    return item("function_call", call_id=call_id, name="shell", arguments='{"cmd":"ls"}')


def answered(call_id: str) -> dict[str, Any]:
    return item("function_call_output", call_id=call_id, output="a.txt")


HEAD = line("session_meta", id=THREAD, model_provider="openai")
CHOSE = line("turn_context", model="gpt-5.2")
EVENT = line("event_msg", type="item_completed")


def read(tmp_path: Path, *lines: dict[str, Any]) -> Transcript:
    file = tmp_path / "rollout.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in (HEAD, *lines)), encoding="utf-8")
    (session,) = read_transcript(file)
    return session


def test_items_of_one_reply_are_one_message_whatever_stands_between_them(tmp_path: Path) -> None:
    thought = item("reasoning", id="rs_1", summary=[], encrypted_content="abc")
    lines = (CHOSE, said("look"), EVENT, thought, EVENT, said("I look.", "assistant"), EVENT)
    calls = (called("c0"), called("c1"), EVENT, answered("c1"), answered("c0"))
    session = read(tmp_path, *lines, *calls, said("Done.", "assistant"))
    assert session.session_id == THREAD
    assert (session.model, session.provider) == ("gpt-5.2", "openai")
    roles = [message.role for message in session.messages]
    assert roles == [ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL, ROLE_TOOL, ROLE_ASSISTANT]
    reply = session.messages[1]
    kinds = [part.WhichOneof("kind") for part in reply.parts]
    assert kinds == ["reasoning", "text", "tool_call", "tool_call"]
    assert (reply.model, reply.api) == ("gpt-5.2", "openai-responses")
    assert reply.timestamp.ToJsonString() == "2026-11-23T20:42:08.036Z"
    assert session.left_out == {"settings of turns": 1, "events for the screen": 5 - 1}
    # The line that a message begins with names it, and its original says the same again.
    assert [message.id for message in session.messages] == [
        f"{THREAD}:{number}" for number in (3, 5, 12, 13, 14)
    ]
    again = from_responses(json.loads(reply.native.json))
    assert list(again[0].parts) == list(reply.parts)


def test_a_file_that_has_grown_gives_what_it_gave_and_more(tmp_path: Path) -> None:
    lines = [CHOSE, said("one"), said("first", "assistant"), EVENT, said("two"), called("c")]
    grown = [*lines, answered("c"), said("second", "assistant"), line("of_the_future", n=1)]
    before = read(tmp_path, *lines).messages
    after = read(tmp_path, *grown)
    assert list(after.messages[: len(before)]) == list(before)
    assert after.left_out["lines of type of_the_future"] == 1


def test_a_compaction_stands_for_what_was_before_it_and_not_for_its_own_reply(
    tmp_path: Path,
) -> None:
    made = "They looked at the files."
    compacted = line("compacted", message=f"Another model began: {made}", replacement_history=[])
    session = read(
        tmp_path, CHOSE, said("one"), said("a", "assistant"), said(made, "assistant"), compacted,
        said("two"), said("b", "assistant"),
    )  # fmt: skip
    assert [text_of(message) for message in session.messages] == ["one", "a", "two", "b"]
    ((count, text),) = [(one.count, one.text) for one in session.summaries]
    assert (count, text) == (2, f"Another model began: {made}")
    assert session.left_out["replies that made a summary"] == 1
    # One whose text is the provider's secret leaves the messages as they are.
    sealed = read(tmp_path, said("one"), said("a", "assistant"), line("compacted", message=""))
    assert (len(sealed.messages), sealed.summaries) == (2, ())
    assert sealed.left_out == {"compactions without a text": 1}


def test_turns_that_were_taken_back_are_on_a_branch_that_was_left(tmp_path: Path) -> None:
    back = line("event_msg", type="thread_rolled_back", num_turns=2)
    turns = [said("one"), said("a", "assistant"), said("two"), said("b", "assistant"), called("c")]
    session = read(tmp_path, *turns, said("three"), said("c", "assistant"), back, said("other"))
    assert [text_of(message) for message in session.messages] == ["one", "a", "other"]
    assert session.abandoned == {f"{THREAD}:{number}" for number in (4, 5, 7, 8)}
    assert session.left_out == {"messages of turns that were taken back": 4}


def test_another_model_is_said_where_it_was_chosen(tmp_path: Path) -> None:
    other = line("turn_context", model="gpt-5.2-mini")
    session = read(tmp_path, CHOSE, said("one"), said("a", "assistant"), CHOSE, other, said("two"))
    assert [(one.index, one.model) for one in session.updates] == [(2, "gpt-5.2-mini")]
    assert session.messages[1].model == "gpt-5.2"


def test_the_head_of_a_parent_thread_names_nothing(tmp_path: Path) -> None:
    parent = line("session_meta", id="parent", model_provider="azure")
    session = read(tmp_path, parent, said("one"))
    assert (session.session_id, session.messages[0].id) == (THREAD, f"{THREAD}:3")
    assert session.left_out == {"heads of forked threads": 1}


@pytest.mark.parametrize(
    ("bad", "said_of_it"),
    [
        ({"type": "response_item"}, "2: payload is missing: an object is needed"),
        (line("response_item", type="message"), "role is missing"),
        ({"payload": {}}, "2: type is missing"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, bad: dict[str, Any], said_of_it: str
) -> None:
    with pytest.raises(TranscriptError) as error:
        read(tmp_path, bad, said("after it"))
    assert said_of_it in str(error.value)
    assert error.value.line == 2


SEGMENT, SECOND, FORK = (f"01a20a25-0502-7c01-9062-00000000000{at}" for at in range(3))


def write(file: Path, *lines: dict[str, Any], begins: int = 0) -> Path:
    """A file of a thread whose history Codex pages: each line has its place in the thread."""
    file.parent.mkdir(parents=True, exist_ok=True)
    placed = [{**one, "ordinal": begins + at} for at, one in enumerate(lines)]
    file.write_text("".join(json.dumps(one) + "\n" for one in placed), encoding="utf-8")
    return file


def head(base: str, until: int, thread: str = THREAD) -> dict[str, Any]:
    before = {"thread_id": base, "end_ordinal_exclusive": until}
    return line("session_meta", id=thread, model_provider="openai", history_base=before)


def words(path: Path) -> tuple[list[str], list[str], frozenset[str]]:
    (session,) = read_transcript(path)
    names = [message.id for message in session.messages]
    return [text_of(one) for one in session.messages], names, session.abandoned


def test_a_thread_that_was_taken_back_goes_on_in_another_file(tmp_path: Path) -> None:
    day = tmp_path / "sessions" / "2026" / "11"
    first = write(
        day / "26" / f"rollout-2026-11-26T22-30-39-{THREAD}.jsonl",
        *(HEAD, said("one"), said("ONE", "assistant"), said("two"), said("TWO", "assistant")),
    )
    again = day / "27" / f"rollout-2026-11-27T00-30-47-{THREAD}_{SEGMENT}.jsonl"
    write(again, head(THREAD, 3), said("instead"), said("INSTEAD", "assistant"), begins=3)
    texts, names, abandoned = words(again)
    assert texts == ["one", "ONE", "instead", "INSTEAD"]
    # What is stored of the first file keeps its names, and no line of another has one of them.
    assert names == [f"{THREAD}:2", f"{THREAD}:3", f"{SEGMENT}:2", f"{SEGMENT}:3"]
    assert names[:2] == words(first)[1][:2]
    assert abandoned == {f"{THREAD}:4", f"{THREAD}:5"}
    # Back behind that as well: the file between is left whole, though no head names it.
    third = again.with_name(f"rollout-2026-11-27T00-31-00-{THREAD}_{SECOND}.jsonl")
    write(third, head(THREAD, 1), said("anew"), begins=1)
    texts, names, abandoned = words(third)
    assert texts == ["anew"]
    assert {f"{SEGMENT}:2", f"{SEGMENT}:3", f"{THREAD}:2", f"{THREAD}:5"} < abandoned
    # A thread that was forked from a segment.
    fork = day / "27" / f"rollout-2026-11-27T00-32-00-{FORK}.jsonl"
    write(fork, head(SEGMENT, 5, FORK), said("aside"), begins=5)
    assert words(fork)[0] == ["one", "ONE", "instead", "aside"]
    assert words(fork)[1][-1] == f"{FORK}:2"
    (session,) = read_transcript(fork)
    assert session.session_id == FORK


def test_a_file_whose_beginning_is_gone_is_what_there_is(tmp_path: Path) -> None:
    file = tmp_path / f"rollout-2026-11-27T00-30-47-{THREAD}_{SEGMENT}.jsonl"
    write(file, head(THREAD, 3), said("instead"), begins=3)
    assert words(file)[0] == ["instead"]
    # A head that names itself, or whatever is no id, leads nowhere.
    for name in (SEGMENT, "*", "../x"):
        write(file, head(name, 3), said("instead"), begins=3)
        assert words(file)[0] == ["instead"]
