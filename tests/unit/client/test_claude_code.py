"""Session files of Claude Code: the branch, replies in several entries, compactions, subagents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contextengine.formats import Transcript, TranscriptError, from_anthropic, read_transcript
from contextengine.messages import text_of
from contextengine.types import ROLE_ASSISTANT, ROLE_TOOL, ROLE_USER

SESSION = "ec77ab8c-8c96-4900-8f81-e345bd29db80"
Json = dict[str, Any]
QUEUED = {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION, "content": "a"}


def entry(uuid: str, parent: str | None, kind: str, **members: Any) -> Json:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "type": kind,
        "uuid": uuid,
        "timestamp": "2026-11-23T20:42:53.144Z",
        "sessionId": SESSION,
        **members,
    }


def said(uuid: str, parent: str | None, text: str, **members: Any) -> Json:
    return entry(uuid, parent, "user", message={"role": "user", "content": text}, **members)


def reply(uuid: str, parent: str, name: str, *blocks: Json, model: str = "claude-opus-4-8") -> Json:
    message = {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(blocks),
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 9},
    }
    return entry(uuid, parent, "assistant", message=message)


def result(uuid: str, parent: str, call: str, text: str, error: bool = False) -> Json:
    block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": error}
    message = {"role": "user", "content": [block]}
    return entry(uuid, parent, "user", message=message, sourceToolAssistantUUID=parent)


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(name: str) -> Json:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": "ls"}}


def read(tmp_path: Path, *entries: Json) -> Transcript:
    file = tmp_path / f"{SESSION}.jsonl"
    lines = [json.dumps(one) for one in (QUEUED, *entries)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (session,) = read_transcript(file)
    return session


PARALLEL = (
    said("u1", None, "look"),
    entry("x", "u1", "attachment", attachment={"type": "skill_listing"}),
    reply("a1", "x", "msg_1", text("I look.")),
    reply("a2", "a1", "msg_1", call("c1")),
    reply("a3", "a2", "msg_1", call("c2")),
    result("r1", "a2", "c1", "a.txt"),
    result("r2", "a3", "c2", "Exit code 1", error=True),
)


@pytest.mark.parametrize("behind", ["r1", "r2"])
def test_blocks_of_a_reply_are_one_message_with_the_results_of_all_its_calls(
    tmp_path: Path, behind: str
) -> None:
    # Whichever of the parallel results the next reply stands behind.
    session = read(tmp_path, *PARALLEL, reply("a4", behind, "msg_2", text("Done.")))
    assert session.session_id == SESSION
    assert (session.model, session.provider) == ("claude-opus-4-8", "anthropic")
    assert [(message.id, message.role) for message in session.messages] == [
        ("u1", ROLE_USER),
        ("a1", ROLE_ASSISTANT),
        ("r1", ROLE_TOOL),
        ("r2", ROLE_TOOL),
        ("a4", ROLE_ASSISTANT),
    ]
    first = session.messages[1]
    assert [part.WhichOneof("kind") for part in first.parts] == ["text", "tool_call", "tool_call"]
    assert (first.provider, first.usage.output_tokens) == ("anthropic", 9)
    again = [part for one in from_anthropic(json.loads(first.native.json)) for part in one.parts]
    assert again == list(first.parts)
    assert session.messages[3].parts[0].tool_result.is_error
    assert session.left_out == {"attachments": 1, "operations of the prompt queue": 1}


@pytest.mark.parametrize("prompt", ["Only a.txt.", [text("Only a.txt.")]])
def test_what_was_said_while_the_model_worked_is_a_message(tmp_path: Path, prompt: object) -> None:
    """It stands in no other entry, and its model has read it."""
    queued = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"}
    taken_off = {**QUEUED, "operation": "remove", "reason": "absorbed_mid_turn"}
    session = read(
        tmp_path,
        *PARALLEL,
        taken_off,
        entry("q1", "r2", "attachment", attachment=queued),
        entry("q2", "q1", "attachment", attachment={"type": "queued_command", "prompt": ""}),
        entry("q3", "q2", "attachment", attachment={"type": "queued_command", "prompt": {"a": 1}}),
        entry("q4", "q3", "attachment", attachment={"type": "queued_command", "prompt": ["a"]}),
        reply("a4", "q4", "msg_2", text("Done.")),
    )
    assert [message.id for message in session.messages] == ["u1", "a1", "r1", "r2", "q1", "a4"]
    asked = session.messages[4]
    assert (asked.role, text_of(asked)) == (ROLE_USER, "Only a.txt.")
    assert asked.HasField("timestamp")
    assert json.loads(asked.native.json) == {"role": "user", "content": prompt}
    assert session.left_out == {"attachments": 4, "operations of the prompt queue": 2}


def test_a_result_between_the_blocks_of_a_reply_stands_behind_it(tmp_path: Path) -> None:
    u1, _, a1, a2, a3, r1, r2 = PARALLEL
    early = {**a3, "parentUuid": "r1"}
    session = read(tmp_path, u1, {**a1, "parentUuid": "u1"}, a2, r1, early, r2)
    assert [message.id for message in session.messages] == ["u1", "a1", "r1", "r2"]


def test_an_edited_prompt_leaves_a_branch_and_subagents_are_another_conversation(
    tmp_path: Path,
) -> None:
    session = read(
        tmp_path,
        said("u1", None, "one"),
        reply("a1", "u1", "m1", text("first")),
        said("u2", "a1", "LEFT"),
        reply("a2", "u2", "m2", call("c")),
        result("r2", "a2", "c", "LEFT"),
        said("u3", "a1", "edited"),
        said("s1", None, "task of a subagent", isSidechain=True),
        reply("a3", "u3", "m3", text("answer")),
    )
    assert [message.id for message in session.messages] == ["u1", "a1", "u3", "a3"]
    assert session.abandoned == {"u2", "a2", "r2"}
    assert session.left_out == {
        "operations of the prompt queue": 1,
        "entries of subagents": 1,
        "entries of branches that were left": 3,
    }


def test_a_compaction_stands_for_what_is_before_the_segment_it_keeps(tmp_path: Path) -> None:
    kept = {"preservedSegment": {"headUuid": "u2", "tailUuid": "a2"}}
    begun = (
        said("u1", None, "one"),
        reply("a1", "u1", "m1", text("first")),
        said("u2", "a1", "two"),
        reply("a2", "u2", "m2", text("second")),
    )
    boundary = entry("b", None, "system", subtype="compact_boundary", logicalParentUuid="a2")
    summary = said("k", "b", "This is what was said.", isCompactSummary=True)
    after = (said("u3", "k", "three"), reply("a3", "u3", "m3", text("third")))
    session = read(tmp_path, *begun, {**boundary, "compactMetadata": kept}, summary, *after)
    assert [message.id for message in session.messages] == ["u1", "a1", "u2", "a2", "u3", "a3"]
    assert [(one.id, one.count, one.text) for one in session.summaries] == [
        ("k", 2, "This is what was said.")
    ]
    whole = read(tmp_path, *begun, boundary, summary, *after)
    assert [one.count for one in whole.summaries] == [4]


def test_a_fork_begins_with_the_summary_of_what_its_file_does_not_hold(tmp_path: Path) -> None:
    boundary = entry("b", None, "system", subtype="compact_boundary", logicalParentUuid="gone")
    summary = said("k", "b", "This is what was said.", isCompactSummary=True)
    after = (said("u3", "k", "three"), reply("a3", "u3", "m3", text("third")))
    session = read(tmp_path, boundary, summary, *after)
    assert [message.id for message in session.messages] == ["k", "u3", "a3"]
    assert session.messages[0].parts[0].text.text == "This is what was said."
    assert not session.summaries


def test_what_no_model_said_is_left_out_and_another_model_is_named(tmp_path: Path) -> None:
    failed = reply("e", "a1", "x", text("API Error: 529"), model="<synthetic>")
    session = read(
        tmp_path,
        said("u1", None, "one"),
        reply("a1", "u1", "m1", text("first")),
        {**failed, "isApiErrorMessage": True},
        said("u2", "e", "again"),
        reply("a2", "u2", "m2", text("second"), model="claude-sonnet-4-8"),
    )
    assert [text_of(message) for message in session.messages] == ["one", "first", "again", "second"]
    assert [(one.index, one.model) for one in session.updates] == [(3, "claude-sonnet-4-8")]
    assert session.left_out["errors of the provider"] == 1


def test_a_file_that_begins_with_a_title_or_a_snapshot_is_one_as_well(tmp_path: Path) -> None:
    for first in (
        {"type": "summary", "summary": "Looking around", "leafUuid": "a9"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    ):
        file = tmp_path / "titled.jsonl"
        lines = [json.dumps(one) for one in (first, said("u1", None, "one"))]
        file.write_text("\n".join(lines), encoding="utf-8")
        (session,) = read_transcript(file)
        assert (session.session_id, len(session.messages)) == (SESSION, 1)
        assert sum(session.left_out.values()) == 1


def test_what_is_wrong_is_said_with_its_line(tmp_path: Path) -> None:
    bad = entry("u1", None, "user", message={"role": "user", "content": [{"type": "text"}, 7]})
    with pytest.raises(TranscriptError, match="content") as error:
        read(tmp_path, bad)
    assert error.value.line == 2
    with pytest.raises(TranscriptError, match="message is 7: an object is needed"):
        read(tmp_path, entry("u1", None, "user", message=7))


def test_an_entry_that_is_its_own_parent_ends_the_walk(tmp_path: Path) -> None:
    session = read(tmp_path, said("u1", "u2", "one"), said("u2", "u1", "two"))
    assert [message.id for message in session.messages] == ["u1", "u2"]
