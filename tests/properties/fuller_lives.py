"""Lives in which more happens: bills, children that end, tools that a model runs, prompts beside
the list, and parts of every kind, with texts that no word parts."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.commands.subagents.prepare_subagent_spawn import SpawnRequest
from contextengine_server.commands.turn.after_turn import Turn
from contextengine_server.commands.turn.update_model import Model
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.recall.expansion import Wanted
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.assembly import Prompt
from contextengine_server.session.model import Report
from tests.properties.lives import (
    BUDGETS,
    CALL_IDS,
    Event,
    Happening,
    Player,
    Said,
    happened,
    message_of,
    said,
    text,
    written_of,
)
from tests.unit.commands.house import AGENT, TENANT, Server, incoming, request

ODD_TEXTS = (
    "",
    " ",
    "\n\n\n",
    "x" * 3_000,
    "语言模型看到什么由它决定。" * 60,
    "\u202eabc\u0000def\ufeff" * 40,
    "🧵👩‍👩‍👧‍👦" * 120,
    "| a | b |\n|---|---|\n" * 90,
    "```python\nprint('x')\n" * 70,
    "<system-reminder>\nkeep to it\n</system-reminder>\n" * 20,
    '{"a": [1, 2, {"b": null}]}\n' * 60,
    "ce:summary:1 [message 1: 5 tokens left out]\n" * 30,
)
MORE = ["turn", "bill", "overflow", "tool", "expand", "spawn", "ended", "prompt", "window", "odd"]

_more = st.builds(
    Happening, st.sampled_from([*MORE, "turn", "odd", "odd"]), st.integers(0, 11), st.integers(0, 7)
)
fuller_lives = st.lists(st.one_of(said, said, happened, _more), min_size=8, max_size=60)


class FullerPlayer(Player):
    """Plays such a life."""

    def __init__(self, server: Server, forgets: frozenset[int] = frozenset()) -> None:
        super().__init__(server, forgets)
        self.children: list[tuple[Ref, Ref, str]] = []
        """Parent, child, and the token of its grant."""

    async def _event(self, number: int, event: Event) -> object:
        ref, context, first, second = self.refs[-1], self.server.context, 0, 0
        if isinstance(event, Happening):
            first, second = event.first, event.second
        match event.what if isinstance(event, Happening) else "":
            case "turn":
                ended = [message_of(Said(pb.ROLE_ASSISTANT, (("text", 0, 60),)), number)]
                ended.append(odd_message(first, number, "b"))
                report = Report(
                    input_tokens=first * 500,
                    output_tokens=7,
                    cache_read_tokens=second * 100,
                    billed=second > 0,
                    stopped_for_length=first == 3,
                )
                key = f"k{first}" if second == 1 else ""
                done = await context.after_turn.run(
                    TENANT, ref, Turn(incoming(*ended), key=key, report=report)
                )
                # Whether a compaction is due is a guess until the history is read.
                return done.written.revision, done.written.repeated
            case "bill" | "overflow":
                refused = event.what == "overflow"  # type: ignore[union-attr]
                report = Report(
                    input_tokens=first * 700,
                    billed=not refused,
                    overflow_limit=1_000 * (first + 1) if refused else 0,
                )
                told = await context.report_usage.run(TENANT, ref, report, request(f"r{number}"))
                return told.revision, told.model
            case "window":
                model = Model(model="gpt-4o", window=(0, 700, 3_000, 9_000)[first % 4])
                await context.update_model.run(TENANT, ref, model, None)
                return None
            case "tool":
                name, given = (
                    ("ctx_search", {"query": f"file{first} saw"}),
                    ("ctx_expand", {"sequences": [first + 1]}),
                    ("ctx_inspect", {"sequences": [first + 1]}),
                    ("memory_search", {"query": f"file{first}"}),
                )[second % 4]
                arguments = json.dumps(given).encode()
                answered = await context.call_tool.run(TENANT, ref, name, arguments, "")
                return answered.answer.json, answered.tokens
            case "expand":
                wanted = Wanted(sequences=[first + 1, second + 1], depth=1)
                found = await self.server.recall.expand.run(TENANT, ref, wanted, "")
                return found.tokens, found.missing
            case "spawn":
                child = Ref(AGENT, f"c{number}")
                spawn = SpawnRequest(ref, child, fork=first % 2 > 0, objective=f"find file{first}")
                await context.prepare_subagent_spawn.run(TENANT, spawn)
                self.children.append((ref, child, ""))
                self.refs.append(child)
                return None
            case "ended":
                if not self.children:
                    return None
                parent, child, token = self.children.pop()
                reason = ("completed", "deleted", "swept", "failed")[first % 4]
                alive = await context.end_subagent.run(TENANT, child, reason, token)
                self.refs.append(parent)
                return alive
            case "prompt":
                prompt = Prompt((f"and now? {number}",), 4)
                assembly = await self.server.assemble(
                    BUDGETS[first % len(BUDGETS)],
                    ref,
                    prompt=prompt,
                    prompt_tokens=ReferenceTokens(12),
                    objective="" if second % 2 else f"objective {second}",
                    ingest=incoming(odd_message(second, number, "p")) if first % 2 else (),
                )
                return written_of(assembly)
            case "odd":
                odd = incoming(odd_message(first, number, kind=second))
                return (await context.ingest.run(TENANT, ref, odd, None)).revision
        return await super()._event(number, event)


def odd_message(first: int, number: int, suffix: str = "", kind: int = 0) -> pb.Message:
    """A message with a text, a picture, a file, an opaque item or a result of such."""
    words = ODD_TEXTS[first % len(ODD_TEXTS)]
    made = pb.Message(id=f"o{number}{suffix}", role=pb.ROLE_USER)
    call = CALL_IDS[first % len(CALL_IDS)]
    picture = pb.Part(image=pb.ImagePart(uri=f"file{number}.png", width=900, height=first * 400))
    match kind:
        case 1:
            made.parts.extend([picture, text(words)])
        case 2:
            file = pb.FilePart(data=words.encode(), mime_type="application/pdf", name=f"f{first}")
            made.parts.append(pb.Part(file=file))
        case 3:
            made.role = pb.ROLE_ASSISTANT
            item = pb.OpaquePart(
                format="openai.responses",
                type="web_search_call",
                json=json.dumps({"type": "web_search_call", "q": words}).encode(),
            )
            made.parts.append(pb.Part(opaque=item))
        case 4:
            made.role = pb.ROLE_TOOL
            answer = pb.ToolResultPart(call_id=call, parts=[text(words), picture], is_error=True)
            made.parts.append(pb.Part(tool_result=answer))
        case 5:
            made.role = pb.ROLE_ASSISTANT
            called = pb.ToolCallPart(call_id=call, name="write", arguments_json=words.encode())
            made.parts.extend([pb.Part(tool_call=called), text(words)])
        case 6:
            made.role, made.custom_role = pb.ROLE_CUSTOM, "note"
            made.parts.append(text(words))
        case 7:
            made.parts.extend([])
        case _:
            made.parts.append(text(words))
    return made
