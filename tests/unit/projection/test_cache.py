"""Items that come again: what was made of them once is what would be made of them anew, and takes
no more room than it may."""

from __future__ import annotations

from random import Random

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.api.projection_cache import ITEM_SHARE, OVERHEAD, ProjectionCache
from contextengine_server.context.message import Form
from contextengine_server.projection import render_state
from contextengine_server.projection.codex.renderer import render
from contextengine_server.projection.model import Item, Text
from contextengine_server.projection.tool_pairs import Paired, pair
from contextengine_server.wire.slots import frame, origin_sequence
from tests.unit.projection.histories import MODELS, RENDER, rendered
from tests.unit.projection.making import task

ROOM = 64 << 20
ROLES = (
    pb.ROLE_USER,
    pb.ROLE_ASSISTANT,
    pb.ROLE_ASSISTANT,
    pb.ROLE_TOOL,
    pb.ROLE_TOOL,
    pb.ROLE_SYSTEM,
)


def part(random: Random, role: pb.Role) -> pb.Part:
    """Few ids, so that calls and results meet, miss and repeat one another."""
    name = random.choice(["c1", "c1", "c2", "c 3"])
    kind = random.random()
    if role == pb.ROLE_TOOL or kind < 0.05:
        text = pb.Part(text=pb.TextPart(text=f"result {random.random()}"))
        return pb.Part(
            tool_result=pb.ToolResultPart(call_id=name, parts=[text], is_error=kind < 0.3)
        )
    if role == pb.ROLE_ASSISTANT and kind < 0.5:
        call = pb.ToolCallPart(call_id=name, name="exec", arguments_json=b'{"a": 1}')
        return pb.Part(tool_call=call, thought_signature=b"seal" if kind < 0.2 else b"")
    if role == pb.ROLE_ASSISTANT and kind < 0.7:
        return pb.Part(reasoning=pb.ReasoningPart(text="hm", signature=b"sig", item_id="rs_1"))
    return pb.Part(text=pb.TextPart(text=f"text <é\n {random.random()}"))


def framed(random: Random, sequence: int) -> bytes:
    role = random.choice(ROLES)
    model = random.choice([*MODELS.values(), ""])
    provider = {"cl": "anthropic", "ge": "google", "gp": "openai"}.get(model[:2], "")
    message = pb.Message(role=role, model=model, provider=provider)
    message.parts.extend(part(random, role) for _ in range(random.choice([1, 1, 2, 3])))
    if random.random() < 0.05:
        message.role, message.custom_role = pb.ROLE_UNSPECIFIED, "notice"
        message.labels["excluded"] = random.choice(["true", "false"])
    return frame(
        f"m{sequence}",
        origin_sequence(sequence),
        b"h" * 16,
        9,
        Form.VERBATIM,
        message.SerializeToString(),
    )


def plain(kind: str, sequence: int) -> bytes:
    """A message of an orderly turn."""
    roles = {"user": pb.ROLE_USER, "result": pb.ROLE_TOOL}
    message = pb.Message(role=roles.get(kind, pb.ROLE_ASSISTANT))
    text = pb.Part(text=pb.TextPart(text=f"text {sequence}"))
    if kind == "call":
        message.parts.add().tool_call.call_id = f"c{sequence}"
    elif kind == "result":
        message.parts.add().tool_result.MergeFrom(
            pb.ToolResultPart(call_id=f"c{sequence - 1}", parts=[text])
        )
    else:
        message.parts.append(text)
    return frame(
        "", origin_sequence(sequence), b"h" * 16, 9, Form.VERBATIM, message.SerializeToString()
    )


def said(items: list[Item], target: str, prompt: str = "go on") -> object:
    if target == "codex":
        done = render(task(items, prompt, budget=2_000_000))
        return done.prompt, [(loss.index, loss.what) for loss in done.losses]
    made = rendered(target, items, prompt=(Text(prompt),) if prompt else ())
    return (
        made.messages_json,
        made.system_json,
        [(loss.index, loss.what, loss.rule) for loss in made.losses],
    )


@pytest.mark.parametrize("target", ["codex", *RENDER])
def test_what_is_kept_is_what_would_be_made_anew_among_any_neighbours(target):
    random = Random(target)
    for _ in range(15):
        kept = ProjectionCache(ROOM)
        frames = [framed(random, at) for at in range(1, 25)]
        for _ in range(12):
            first = random.randrange(len(frames))
            shown = [one for one in frames[first:] if random.random() < 0.9]
            assert said(kept.of(shown), target) == said(ProjectionCache(0).of(shown), target)


@pytest.mark.parametrize("target", ["codex", *RENDER])
def test_what_is_appended_goes_on_from_what_was_written(target):
    random = Random(target)
    for _ in range(6):
        kept = ProjectionCache(ROOM)
        frames = [framed(random, at) for at in range(1, 60)]
        for end in range(1, 60, random.choice([1, 2, 5])):
            for prompt in ("", "and now?"):
                new = ProjectionCache(0).of(frames[:end])
                assert said(kept.of(frames[:end]), target, prompt) == said(new, target, prompt)


@pytest.mark.parametrize("target", RENDER)
def test_a_draft_that_is_kept_is_gone_on_from(target, monkeypatch):
    turn = ["user", "call", "result", "assistant"]
    frames = [plain(random_role, at) for at, random_role in enumerate(turn * 25, 1)]
    kept = ProjectionCache(ROOM)
    said(kept.of(frames[:60]), target)
    starts = []

    def noted(items: list[Item], start: int) -> Paired:
        starts.append(start)
        return pair(items, start)

    monkeypatch.setattr(render_state, "pair", noted)
    for end in (60, 64, 100):
        said(kept.of(frames[:end]), target)
    assert starts[0] == starts[1] > 50
    assert said(kept.of(frames), target) == said(ProjectionCache(0).of(frames), target)
    assert said(kept.of([*frames[:20], *frames[21:]]), target)
    assert starts[-1] == 0


@pytest.mark.parametrize("target", ["codex", *RENDER])
def test_what_comes_again_is_made_once(target):
    random = Random(7)
    kept = ProjectionCache(ROOM)
    frames = [framed(random, at) for at in range(1, 40)]
    first = kept.of(frames)
    said(first, target)
    held = kept.bytes
    assert held > sum(2 * len(one) + OVERHEAD for one in frames)
    again = kept.of(frames)
    assert all(one is other for one, other in zip(first, again, strict=True))
    said(again, target)
    assert kept.bytes == held


def test_the_room_is_kept_and_the_oldest_leave_first():
    random = Random(7)
    frames = [framed(random, at) for at in range(1, 200)]
    kept = ProjectionCache(200_000)
    for at in range(0, len(frames) - 5):
        for target in RENDER:
            said(kept.of(frames[at : at + 5]), target)
    newest = kept.of(frames[-5:])
    assert 0 < kept.bytes <= 200_000
    assert all(one is other for one, other in zip(kept.of(frames[-5:]), newest, strict=True))
    assert kept.of(frames[:1])[0] is kept.of(frames[:1])[0]
    late = kept.of(frames[:1])[0].cache
    for one in frames[1:]:
        kept.of([one])
    held = kept.bytes
    assert late is not None
    late.grew(1_000_000)  # a thread that is still at it when its item is let go
    assert kept.bytes == held


def test_a_huge_item_drives_nothing_out():
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="x" * 10_000))])
    huge = frame("m1", origin_sequence(1), b"h" * 16, 9, Form.VERBATIM, message.SerializeToString())
    kept = ProjectionCache(10_000 * ITEM_SHARE)
    assert kept.of([huge])[0].cache is None
    assert kept.bytes == 0
