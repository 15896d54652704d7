"""Parts of the packages for frameworks, and the forms of the Python client in the frameworks' own
hands: what is written for them they take. Runs where they are installed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contextengine import Message, assistant, system, text_of, tool_call, tool_result, user
from contextengine.formats import (
    from_langchain,
    from_pydantic_ai,
    read_transcript,
    to_gemini,
    to_langchain,
    to_pydantic_ai,
)
from contextengine.types import FORM_PLACEHOLDER, Item

DATA = Path(__file__).parents[1] / "data"
VECTORS = Path(__file__).parents[1] / "conformance" / "vectors" / "formats.json"


def needed(module: str) -> Any:
    """The module, or the test is skipped."""
    return pytest.importorskip(module, exc_type=ImportError)


def sessions() -> list[list[Message]]:
    """Real conversations, as messages that came from nowhere in particular."""
    found = []
    for name in ("airline_transcripts.jsonl", "coding_session.pi.jsonl"):
        for session in read_transcript(DATA / name):
            for message in session.messages:
                message.ClearField("native")
            found.append(list(session.messages))
    return found


def vector(name: str) -> Any:
    """The request of a format's vector."""
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]
    return next(json.loads(case["json"]) for case in cases if case["format"] == name)


def texts(messages: list[Message]) -> list[str]:
    return [text_of(message) for message in messages if text_of(message)]


def test_langchain_takes_what_is_written_for_it() -> None:
    core = needed("langchain_core.messages")
    for messages in sessions():
        taken = core.messages_from_dict(to_langchain(messages))
        assert texts(from_langchain(core.messages_to_dict(taken))) == texts(messages)
    given = core.messages_from_dict(vector("langchain")["messages"])
    assert core.messages_to_dict(given)[2]["data"]["tool_calls"][0]["id"] == "c1"


def test_pydantic_ai_takes_what_is_written_for_it() -> None:
    adapter = needed("pydantic_ai.messages").ModelMessagesTypeAdapter
    for messages in sessions():
        taken = adapter.validate_python(to_pydantic_ai(messages))
        again = from_pydantic_ai(adapter.dump_python(taken, mode="json"))
        assert texts(again) == texts(messages)
    adapter.validate_python(vector("pydantic-ai")["messages"])


def test_the_kit_takes_what_is_written_for_it() -> None:
    types = needed("google.genai.types")
    for messages in sessions():
        for content in to_gemini(messages)["contents"]:
            types.Content.model_validate(content)


def test_a_request_that_is_shown_whole_is_the_runs_own_and_one_in_part_is_not() -> None:
    needed("pydantic_ai.capabilities")
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    from contextengine_pydantic_ai.history import read, shown

    both = ModelRequest(
        parts=[ToolReturnPart("f", "found", tool_call_id="c"), UserPromptPart("and then?")]
    )
    reply = ModelResponse(parts=[TextPart("done")])
    history = read([ModelResponse(parts=[ToolCallPart("f", tool_call_id="c")]), both, reply])
    assert [text_of(one) for one in history.kept] == ["", "found", "and then?", "done"]
    items = [Item(id=one.id, message=one) for one in history.kept[1:]]
    assert all(one is own for one, own in zip(shown(items, history), [both, reply], strict=True))
    summary = Item(id="ce:summary:1", message=user("what was said"))
    part, rest, last = shown([summary, *items[1:]], history)
    assert part.parts[0].content == "what was said"
    assert [one.content for one in rest.parts] == ["and then?"]
    assert last is reply
    items[0].form = FORM_PLACEHOLDER
    items[0].message.CopyFrom(tool_result("c", "[left out]", name="f"))
    cut, *_ = shown(items, history)
    assert cut is not both
    assert cut.parts[0].content == "[left out]"


def test_contents_that_are_shown_verbatim_are_the_requests_own() -> None:
    types = needed("google.genai.types")
    needed("google.adk.plugins")
    from contextengine_google_adk.contents import kept, shown, with_addition

    part = types.Part(inline_data=types.Blob(data=bytes(range(256)), mime_type="image/png"))
    contents = [types.Content(role="user", parts=[types.Part(text="hi"), part])]
    rows = kept(contents)
    assert rows[0].parts[1].image.data == bytes(range(256))
    assert shown([Item(id=rows[0].id, message=rows[0])], contents, rows)[0] is contents[0]
    other = shown([Item(id="ce:summary:1", message=user("said"))], contents, rows)
    assert [part.text for part in other[0].parts or ()] == ["said"]
    assert with_addition(None, "") is None
    assert with_addition("Be brief.", "More.") == "Be brief.\n\nMore."
    told = with_addition(types.Content(parts=[types.Part(text="Be brief.")]), "More.")
    assert [part.text for part in told.parts] == ["Be brief.", "More."]


@pytest.mark.parametrize(
    ("user_id", "session_id", "agent", "run", "name"),
    [
        ("ann", "1", "root", {}, "ann/1"),
        ("ann/1", "2", "root", {}, "ann%2F1/2"),
        ("ann", "1", "other", {}, "ann/1/other"),
        ("ann", "1", "other", {"branch": "both.other"}, "ann/1/other/both.other"),
        ("ann", "1", "root", {"isolation_scope": "t1"}, "ann/1/root/t1"),
        ("a" * 300, "1", "root", {}, None),
    ],
)
def test_sessions_of_two_users_are_two(
    user_id: str, session_id: str, agent: str, run: dict[str, str], name: str | None
) -> None:
    needed("google.adk.plugins")
    from contextengine_google_adk.plugin import _session_of

    root = SimpleNamespace(root_agent=SimpleNamespace(name="root"))
    context = SimpleNamespace(
        session=SimpleNamespace(user_id=user_id, id=session_id),
        agent_name=agent,
        _invocation_context=SimpleNamespace(
            **{"agent": root, "branch": None, "isolation_scope": None, **run}
        ),
    )
    made = _session_of(context)
    assert made == name or (name is None and len(made) == 30)


def test_a_turn_of_the_agents_sdk_ends_with_an_answer() -> None:
    needed("agents.memory.session_settings")
    from contextengine_openai_agents.items import definitions, is_answer, kept, shown

    assert is_answer([assistant("done")])
    assert not is_answer([])
    assert not is_answer([user("hi")])
    assert not is_answer([assistant(tool_calls=[tool_call("c", "f")])])
    items = [{"role": "user", "content": "hi"}, {"type": "reasoning", "id": "r", "summary": []}]
    assert shown([Item(message=one) for one in kept(items)]) == items
    assert len({one.id for one in kept([*items, *items])}) == 4
    tool = SimpleNamespace(name="f", description=None, params_json_schema={"type": "object"})
    assert [one.name for one in definitions([tool, object()])] == ["f"]
    assert shown([Item(message=system("Be brief."))])[0]["role"] == "system"
