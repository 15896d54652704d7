"""What the real Codex writes down of a thread, read back."""

from __future__ import annotations

import json
from pathlib import Path

from contextengine.formats import read_transcript
from contextengine.messages import text_of
from contextengine.types import ROLE_ASSISTANT, ROLE_TOOL, ROLE_USER
from tests.codex.app_server import AppServer
from tests.codex.mock import Json, ResponsesMock, said, texts


def looked(request: Json) -> list[Json]:
    """A reply that thinks, speaks and calls a tool twice."""
    name = next(tool["name"] for tool in request["tools"] if tool.get("name", "").startswith("e"))
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"}
    calls = [
        {
            "type": "function_call",
            "call_id": f"c{number}",
            "name": name,
            "arguments": json.dumps({"cmd": f"echo {number}"}),
        }
        for number in range(2)
    ]
    return [thought, said("I look."), *calls]


async def test_a_rollout_is_the_thread_that_the_model_saw(
    tmp_path: Path, codex: AppServer, mock: ResponsesMock
) -> None:
    def answer(request: Json) -> list[Json]:
        match len(mock.requests):
            case 1:
                return looked(request)
            case 2:
                return [said("Two files.")]
        return [said("They looked.")]

    mock.answer = answer
    thread = await codex.thread("You look at files.")
    await codex.turn(thread, [{"type": "text", "text": "look"}])
    await codex.compact(thread)
    await codex.turn(thread, [{"type": "text", "text": "go on"}])

    (file,) = (tmp_path / "codex" / "sessions").rglob("rollout-*.jsonl")
    (session,) = read_transcript(file)
    assert (session.session_id, session.provider, session.model) == (thread, "mock", "mock-model")
    spoken = [one for one in session.messages if one.role in (ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL)]
    assert [(one.role, [part.WhichOneof("kind") for part in one.parts]) for one in spoken] == [
        (ROLE_USER, ["text"]),
        (ROLE_ASSISTANT, ["reasoning", "text", "tool_call", "tool_call"]),
        (ROLE_TOOL, ["tool_result"]),
        (ROLE_TOOL, ["tool_result"]),
        (ROLE_ASSISTANT, ["text"]),
        (ROLE_USER, ["text"]),
        (ROLE_ASSISTANT, ["text"]),
    ]
    assert [text_of(one) for one in spoken if one.role == ROLE_USER] == ["look", "go on"]
    (summary,) = session.summaries
    assert summary.text.endswith("They looked.")
    assert summary.text in texts(mock.requests[-1], "user")
    assert text_of(session.messages[summary.count - 1]) == "Two files."
