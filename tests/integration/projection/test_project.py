"""Projection.Project and the projection of Assemble, over the wire."""

from __future__ import annotations

import json

import pytest

from contextengine import ContextEngineError, assistant, system, tool_call, tool_result, user
from contextengine import types as t
from contextengine_server.api import projection_options as options_in
from contextengine_server.projection import thread
from contextengine_server.projection.codex import jsonl
from tests.integration.harness import House, budget, problem, ref
from tests.integration.projection.asking import (
    TARGETS,
    judged,
    options,
    project,
    text,
)
from tests.unit.projection.histories import PNG

HISTORY = [
    user("Where is my order?", id="m1"),
    assistant("I look.", tool_calls=[tool_call("c1", "find", {"id": 7})], id="m2"),
    tool_result("c1", "in the lorry", name="find", id="m3"),
    assistant("It is on its way.", id="m4"),
]


async def stored(house: House, *messages: t.Message) -> t.SessionRef:
    await house.client.ingest_batch(ref(), [*HISTORY, *messages])
    return ref()


@pytest.mark.parametrize("target", TARGETS)
async def test_a_session_and_the_same_list_look_alike(house: House, target: str) -> None:
    session = await stored(house, user("When?", id="m5"))
    own = await project(house, session, target)
    listed = await house.client.projection.project(
        options(target), messages=[*HISTORY, user("When?", id="m5")], budget=budget(50_000)
    )
    assert judged(own, target) == judged(listed, target) == []
    if target != "codex":
        assert own.messages_json == listed.messages_json
    assert (
        own.pre_prompt_message_count
        == listed.pre_prompt_message_count
        == (4 if target == "codex" else 5)
    )


async def test_the_newest_users_message_is_the_prompt_or_the_one_that_is_given(
    house: House,
) -> None:
    session = await stored(house, user("When?", id="m5"))
    for given in ([], text(" When?\n")):
        reply = await project(house, session, prompt=given)
        records, _, prompt = jsonl.parse(reply.prompt)
        assert (prompt.strip(), [record["t"] for record in records]) == (
            "When?",
            ["msg", "msg", "call", "result", "msg"],
        )
        assert reply.binding.last_sequence == 5
    other = jsonl.parse((await project(house, session, prompt=text("Other"))).prompt)
    assert (other[2], len(other[0])) == ("Other", 6)


async def test_one_call_stores_assembles_and_projects(house: House) -> None:
    session = await stored(house)
    plain = await house.client.assemble(session)
    reply = await house.client.assemble(
        session, ingest=[user("When?", id="m5")], projection=options()
    )
    assert not plain.HasField("projection")
    assert [item.message.id for item in reply.items] == ["m1", "m2", "m3", "m4", "m5"]
    assert jsonl.parse(reply.projection.prompt)[2] == "When?"
    assert reply.projection.binding.epoch == reply.context_projection.epoch
    assert reply.projection == await project(house, session)
    named = await house.client.assemble(session, current_message_id="m1", projection=options())
    assert jsonl.parse(named.projection.prompt)[2] == "Where is my order?"


async def test_what_is_asked_differently_is_projected_differently(house: House) -> None:
    session = await stored(house)
    asked = t.AssembleRequest(session=session, prompt=text("x"), projection=options())
    replies = [await house.stub.Assemble(asked) for _ in range(3)]
    assert replies[0] == replies[1] == replies[2]
    asked.projection.renderer = "openclaw"
    assert (await house.stub.Assemble(asked)).projection.renderer == "openclaw"
    asked.ClearField("projection")
    assert not (await house.stub.Assemble(asked)).HasField("projection")


async def test_what_does_not_fit_is_refused_and_says_what_to_do(house: House) -> None:
    session = await stored(house)
    with pytest.raises(ContextEngineError) as caught:
        await project(house, session, base_instructions="x" * 40_000)
    assert problem(caught.value) == (
        "FAILED_PRECONDITION",
        "PROJECTION_IMPOSSIBLE",
        ["options.base_instructions"],
    )
    with pytest.raises(ContextEngineError) as caught:
        await project(house, session, max_chars=1)
    assert problem(caught.value) == (
        "FAILED_PRECONDITION",
        "PROJECTION_IMPOSSIBLE",
        ["options.max_chars"],
    )
    least = int(str(caught.value).split("give at least ")[1].split(",")[0])
    assert (await project(house, session, max_chars=least)).prompt
    with pytest.raises(ContextEngineError, match=f"give at least {least}"):
        await project(house, session, max_chars=least - 1)
    for given, named in (
        ({"budget": budget(30)}, "budget"),
        ({"token_budget": 30}, "options.token_budget"),
    ):
        with pytest.raises(ContextEngineError) as caught:
            await project(house, session, prompt=text("x" * 9_000), **given)
        assert problem(caught.value) == ("FAILED_PRECONDITION", "PROJECTION_IMPOSSIBLE", [named])
    with pytest.raises(ContextEngineError) as caught:
        await house.client.assemble(session, projection=options(base_instructions="x" * 40_000))
    assert problem(caught.value)[2] == ["projection.base_instructions"]


async def test_options_of_codex_are_refused_for_a_providers_form(house: House) -> None:
    session = await stored(house)
    given = {
        "mode": t.PROJECTION_MODE_PER_TURN,
        "payload_mode": t.PAYLOAD_MODE_ELIDE,
        "binding": t.ProjectionBinding(),
        "host_events": [t.HostEvent(kind=t.HostEvent.KIND_OVERFLOW)],
        "max_chars": 9,
        "token_budget": 9,
        "reserve_tokens": 0,
        "dynamic_tools_fingerprint": "x",
        "product_name": "x",
    }
    for target in set(TARGETS) - {"codex"}:
        for name, value in given.items():
            with pytest.raises(
                ContextEngineError, match=f"is for the target codex alone.*{target}"
            ) as caught:
                await project(house, session, target, **{name: value})
            assert problem(caught.value)[::2] == ("INVALID_ARGUMENT", [f"options.{name}"])
        with pytest.raises(ContextEngineError) as caught:
            await house.client.assemble(session, projection=options(target, max_chars=9))
        assert problem(caught.value)[2] == ["projection.max_chars"]
        reply = await project(house, session, target, inject_items=True)
        assert [warning.partition(":")[0] for warning in reply.warnings] == ["inject_items"]


async def test_a_list_without_messages_is_said_to_be_refused(house: House) -> None:
    policy = system("Be brief.", id="p1")
    for target in TARGETS:
        made = await house.client.projection.project(options(target), messages=[policy])
        empty = target in ("anthropic", "gemini")
        assert [warning.partition(":")[0] for warning in made.warnings] == [
            "empty_messages"
        ] * empty
        asked = await house.client.projection.project(
            options(target), messages=[policy], prompt=text("x")
        )
        assert (list(asked.warnings), judged(asked, target)) == ([], [])
    for target in set(TARGETS) - {"codex"}:
        nothing = await house.client.assemble(ref(f"new to {target}"), projection=options(target))
        assert [w.partition(":")[0] for w in nothing.projection.warnings] == ["empty_messages"]


@pytest.mark.parametrize("target", TARGETS)
async def test_an_agents_first_turn_projects_a_list_without_messages(
    house: House, target: str
) -> None:
    first = await house.client.projection.project(options(target), messages=[], prompt=text("Hi"))
    await house.client.bootstrap(ref())
    new = await project(house, ref(), target, prompt=text("Hi"))
    assert judged(first, target) == []
    assert (list(first.warnings), list(first.losses)) == ([], [])
    assert (first.prompt, first.messages_json) == (new.prompt, new.messages_json)
    assert (first.prompt or first.messages_json.decode()).count("Hi") == 1


@pytest.mark.parametrize("target", TARGETS)
async def test_a_loss_names_its_item_wherever_the_prompt_stands(house: House, target: str) -> None:
    thought = t.Message(id="m3", role=t.ROLE_ASSISTANT)
    thought.parts.add().reasoning.text = "hm"
    thought.parts.add().text.text = "I see."
    hidden = t.Message(id="m2", role=t.ROLE_CUSTOM, custom_role="note", labels={"excluded": "true"})
    hidden.parts.add().text.text = "not for the model"
    messages = [
        system("Be brief.", id="p1"),
        user("Where?", id="m1"),
        hidden,
        thought,
        user("When?", id="m4"),
    ]
    await house.client.ingest_batch(ref(), messages)
    for current in ("", "m1", "m4"):
        reply = await house.client.assemble(
            ref(), current_message_id=current, projection=options(target)
        )
        at = [item.message.id for item in reply.items].index("m3")
        assert (
            "not for the model"
            not in reply.projection.prompt + reply.projection.messages_json.decode()
        )
        assert at == 2  # what the harness excludes is no item
        assert [
            loss.item_index
            for loss in reply.projection.losses
            if "thought" in loss.what or "think" in loss.what or "reasoning" in loss.what
        ] == [at]


@pytest.mark.parametrize("renderer", ["jsonl", "openclaw"])
async def test_pictures_that_cannot_be_shown_are_left_out_and_named(
    house: House, renderer: str
) -> None:
    def picture(
        data: bytes = b"", mime: str = "image/png", uri: str = "", detail: str = ""
    ) -> t.Part:
        if uri:
            return t.Part(image=t.ImagePart(mime_type=mime, uri=uri, detail=detail))
        return t.Part(image=t.ImagePart(mime_type=mime, data=data, detail=detail))

    await stored(house)
    shown = [
        picture(PNG, "image/jpeg", detail="odd"),
        picture(uri="https://example.com/a.png", detail="low"),
    ]
    lost = [
        picture(PNG[:-20]),
        picture(PNG[:40] + b"\0" + PNG[41:]),
        picture(b"BM" + bytes(60), "image/bmp"),
        picture(uri="file:///etc/hostname"),
        picture(uri="data:image/png;base64,%%"),
        picture(b"<svg/>", "image/svg+xml"),
    ]
    made = await project(
        house, ref(), renderer=renderer, prompt=[*text("What is this?"), *shown, *lost]
    )
    parts = json.loads(made.turn_input_json)
    assert [part["type"] for part in parts] == ["text", "image", "image", *["text"] * len(lost)]
    assert parts[1]["url"].startswith("data:image/png;base64,")
    assert ("detail" in parts[1], parts[2]["detail"]) == (False, "low")
    assert all(part["text"].startswith("[image ") for part in parts[3:])
    assert [loss.rule for loss in made.losses].count("X11") == len(lost)
    assert [
        warning
        for warning in made.warnings
        if warning.startswith(f"pictures_left_out: {len(lost)} ")
    ]
    assert judged(made, "codex") == []


async def test_a_picture_without_a_word_is_a_prompt(house: House) -> None:
    picture = t.Message(
        role=t.ROLE_USER, parts=[t.Part(image=t.ImagePart(mime_type="image/png", data=PNG))]
    )
    other = t.Message(
        role=t.ROLE_USER, parts=[t.Part(image=t.ImagePart(mime_type="image/gif", data=b"GIF89a;"))]
    )
    made = await house.client.projection.project(options(), messages=[picture])
    assert [part["type"] for part in json.loads(made.turn_input_json)] == ["image"]
    both = await house.client.projection.project(options(), messages=[other], prompt=picture.parts)
    assert both.stats.records == 1


async def test_a_session_that_is_not_there_is_not_projected(house: House) -> None:
    with pytest.raises(ContextEngineError) as caught:
        await project(house, ref("none"))
    assert caught.value.reason == "SESSION_NOT_FOUND"


async def test_secrets_in_payloads_do_not_leave_and_texts_stay(house: House) -> None:
    key = "sk-" + "a1B2" * 8
    session = await stored(
        house,
        user(f"my key is {key}", id="m5"),
        assistant("", tool_calls=[tool_call("c2", "env", {"key": key})], id="m6"),
        tool_result("c2", f"\x1b[1mKEY={key}\x1b[0m", name="env", id="m7"),
        assistant("ok", id="m8"),
    )
    reply = await project(house, session, prompt=text("x"))
    assert (reply.prompt.count(key), reply.stats.redactions) == (1, 2)
    assert [loss.rule for loss in reply.losses] == ["secrets"]
    bootstrap = t.PROJECTION_MODE_THREAD_BOOTSTRAP
    openclaw = await project(house, session, prompt=text("x"), renderer="openclaw", mode=bootstrap)
    assert openclaw.prompt.count(key) == 1


async def test_the_addition_stands_before_a_providers_system_prompt(house: House) -> None:
    reply = await house.client.projection.project(
        options("anthropic", base_instructions="Base."),
        messages=HISTORY,
        system_prompt_addition="Addition.",
    )
    assert reply.instructions == "Addition.\n\nBase."
    assert json.loads(reply.system_json)[0]["text"] == "Addition.\n\nBase."
    codex = await house.client.projection.project(
        options(base_instructions="Base."),
        messages=HISTORY,
        system_prompt_addition=" Addition. ",
        epoch="e1",
    )
    assert codex.instructions == "Base.\n\nAddition."
    assert codex.binding.epoch == "e1"


def test_a_projection_knows_every_value_of_its_enums() -> None:
    assert set(options_in.MODES) == set(t.ProjectionMode.values())
    assert set(options_in.PAYLOADS) == set(t.PayloadMode.values())
    events = {event.value for event in thread.ThreadEvent}
    assert events == set(t.HostEvent.Kind.values()) - {0}
    assert {action.value for action in thread.Action} == set(t.ProjectionAction.values()) - {0}


def test_the_table_of_targets_and_the_enum_say_the_same() -> None:
    said = {f"PROJECTION_TARGET_{name.upper().replace('-', '_')}": name for name in TARGETS}
    assert set(said) == set(t.ProjectionTarget.keys()) - {"PROJECTION_TARGET_UNSPECIFIED"}
    for value, name in said.items():
        assert t.ProjectionTarget.Value(value) == TARGETS[name].number


@pytest.mark.parametrize("target", TARGETS)
async def test_a_form_is_asked_for_by_its_name_as_well(house: House, target: str) -> None:
    session = await stored(house)
    by_value = await project(house, session, target)
    by_name = await house.client.projection.project(
        t.ProjectionOptions(target_name=target), session=session
    )
    both = options(target)
    both.target_name = target
    assert by_name == by_value == await house.client.projection.project(both, session=session)
    assert (by_name.target, by_name.target_name) == (TARGETS[target].number, "")


@pytest.mark.parametrize("target", TARGETS)
async def test_summaries_are_shown_as_data_in_every_form(house: House, target: str) -> None:
    messages = [
        message
        for turn in range(60)
        for message in (user(f"q{turn} " + "word " * 60), assistant(f"a{turn} " + "word " * 60))
    ]
    await house.client.ingest_batch(ref(), messages)
    compacted = await house.client.compact(ref(), force=True, budget=budget(4_000))
    assert compacted.summaries
    for way in (
        ({}, {"inject_items": True}, {"renderer": "openclaw"}) if target == "codex" else ({},)
    ):
        reply = await project(house, ref(), target, **way, prompt=text("x"), budget=budget(4_000))
        assert judged(reply, target) == []
        said = (reply.prompt.encode() or reply.messages_json) + b"".join(reply.inject_items_json)
        assert compacted.summaries[0].id.encode() in said
        assert b"trust=untrusted" in said
        assert "trust=untrusted" not in reply.instructions


async def test_without_an_agent_what_was_sent_is_projected(house: House) -> None:
    reply = await house.client.assemble(
        ref("", agent=""), ingest=[user("alone")], projection=options()
    )
    assert reply.outcome_reason == "INCOMPLETE_SCOPE"
    assert reply.projection.prompt == "alone"
