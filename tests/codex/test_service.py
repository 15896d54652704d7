"""A whole agent turn through the service and the real Codex: Ingest, Assemble with a projection, a
Codex turn, AfterTurn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contextengine import assistant, tool_call, tool_result, user
from contextengine import types as t
from contextengine_server.projection.codex import jsonl
from tests.codex.app_server import AppServer, Harness
from tests.codex.mock import ResponsesMock, plain, texts
from tests.integration.harness import house, ref


def text(said: str) -> list[t.Part]:
    return [t.Part(text=t.TextPart(text=said))]


@pytest.mark.parametrize("inject", [False, True], ids=["text", "items"])
async def test_an_agents_turns(
    tmp_path: Path, codex: AppServer, mock: ResponsesMock, inject: bool
) -> None:
    session = ref("case-1", agent="support")
    harness = Harness(codex)
    options = t.ProjectionOptions(
        target=t.PROJECTION_TARGET_CODEX,
        base_instructions="You help customers.",
        inject_items=inject,
    )
    async with house(tmp_path) as home:

        async def turn(prompt: str) -> t.ProjectResponse:
            """From a prompt to the end of its turn, as a harness goes."""
            options.ClearField("binding")
            if harness.binding is not None:
                options.binding.CopyFrom(harness.binding)
            reply = await home.client.assemble(session, prompt=text(prompt), projection=options)
            await harness.run(reply.projection)
            answer = f"answer {len(mock.requests)}"
            after = await home.client.after_turn(session, [user(prompt), assistant(answer)])
            harness.stored(after)
            return reply.projection

        await home.client.ingest_batch(
            session,
            [
                user("Where is my order?"),
                assistant("I look.", tool_calls=[tool_call("c1", "find", {"id": 7})]),
                tool_result("c1", "in the lorry", name="find"),
                assistant("It is on its way."),
            ],
        )
        first = await turn("When?")
        assert (first.action, first.action_reason) == (
            t.PROJECTION_ACTION_START,
            "missing-thread-binding",
        )
        request = mock.requests[-1]
        assert "You help customers." in texts(request, "developer")
        if inject:
            items = [json.loads(item) for item in first.inject_items_json]
            assert plain(request["input"])[-len(items) - 1 : -1] == items
            assert texts(request, "user")[-1] == "When?"
        else:
            records, _, prompt = jsonl.parse(texts(request, "user")[-1])
            assert [record["t"] for record in records] == ["msg", "msg", "call", "result", "msg"]
            assert prompt == "When?"

        second = await turn("And then?")
        assert (second.action, second.action_reason) == (
            t.PROJECTION_ACTION_RESUME,
            "matching-thread-bootstrap-binding",
        )
        assert second.prompt == "And then?"
        earlier, later = (request["input"] for request in mock.requests[-2:])
        assert later[: len(earlier)] == earlier

        # Something reaches the session outside the thread: it alone is handed over.
        await home.client.ingest(session, user("A note from elsewhere."))
        third = await turn("And now?")
        sent = texts(mock.requests[-1], "user")
        if inject:
            assert third.action == t.PROJECTION_ACTION_INJECT
            assert sent[-2:] == ["A note from elsewhere.", "And now?"]
        else:
            assert [record["text"] for record in jsonl.parse(sent[-1])[0]] == [
                "A note from elsewhere."
            ]
        assert [len(request["input"]) for request in mock.requests] == sorted(
            len(request["input"]) for request in mock.requests
        )
        fourth = await turn("Done?")
        assert (fourth.action, fourth.prompt) == (t.PROJECTION_ACTION_RESUME, "Done?")
