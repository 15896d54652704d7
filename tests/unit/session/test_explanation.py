"""Explaining: one decision for every message of the session, with its rule, tokens and item."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.commands.lifecycle.record_host_change import HostCompacted
from contextengine_server.context.message import Form
from contextengine_server.context.plan import (
    Declared,
    Keep,
    Plan,
    Reshaped,
    Summarized,
    segment_slots,
)
from contextengine_server.context.view import View
from contextengine_server.context.work import at_once
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.registration import Registration
from contextengine_server.session.assembly.explanation import Decision, Kind, explain
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    long,
    request,
    result,
    scope,
    text_of,
    user,
)


async def explained(server: Server, tokens: int = 100_000, **more: Any) -> dict[int, Decision]:
    """The decisions by sequence. They partition the session, and name the items as they are."""
    assembly = await server.assemble(tokens, whole=True, **more)
    decisions = at_once(explain(assembly))
    sequences = [decision.entry.sequence for decision in decisions]
    assert sequences == list(range(1, (await server.head()).last_sequence + 1))
    slots = [
        slot for segment in assembly.plan.segments for slot in segment_slots(segment, assembly.view)
    ]
    for decision in decisions:
        if decision.item_index is not None:
            slot = slots[decision.item_index]
            assert (slot.sequence, slot.tokens, slot.form) == (
                decision.entry.sequence,
                decision.tokens,
                decision.form,
            )
        else:
            assert decision.tokens == 0
    return {decision.entry.sequence: decision for decision in decisions}


def told(decision: Decision) -> tuple[Kind, str]:
    return decision.kind, decision.rule


async def store(server: Server, *messages: pb.Message) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(*messages), None)


async def test_what_is_shown_says_why(server: Server) -> None:
    await store(
        server,
        pb.Message(role=pb.ROLE_SYSTEM, parts=[pb.Part(text=pb.TextPart(text="be kind"))]),
        user("one"),
        assistant("two"),
        user("three", labels={"pinned": "yes"}),
        assistant("four"),
        user("five"),
        assistant("six"),
    )
    decided = await explained(server)
    assert {at: told(one) for at, one in decided.items()} == {
        1: (Kind.PINNED, "leads the session"),
        2: (Kind.KEPT, "within the budget"),
        3: (Kind.KEPT, "within the budget"),
        4: (Kind.PINNED, "labelled pinned"),
        5: (Kind.KEPT, "within the budget"),
        6: (Kind.KEPT, "newest user message"),
        7: (Kind.KEPT, "law tail"),
    }
    assert [one.item_index for one in decided.values()] == list(range(7))


async def test_what_is_evicted_names_the_rule(server: Server) -> None:
    await server.talk(1, 6)
    decided = await explained(server, 1_500)
    assembly = await server.assemble(1_500)
    assert decided[1].kind is Kind.EVICTED
    assert decided[1].rule == assembly.plan.rule
    assert (decided[1].item_index, decided[1].summary_id, decided[1].tokens) == (None, "", 0)
    assert told(decided[12]) == (Kind.KEPT, "law tail")


async def test_what_is_covered_names_its_summary(server: Server) -> None:
    await server.talk(1, 8)
    await server.compact()
    assert (await server.state()).compactions
    decided = await explained(server)
    assert told(decided[1]) == (Kind.SUMMARIZED, "covered")
    view = (await server.assemble(whole=True)).view
    assert decided[1].summary_id == view.summaries[0].id
    assert decided[1].item_index is None
    # Items are counted with the summaries among them.
    assert decided[16].item_index is not None
    assert decided[16].item_index < 15


async def test_a_summary_that_is_evicted_is_named(server: Server) -> None:
    await server.talk(1, 12)
    await server.compact()
    view = (await server.assemble(whole=True)).view
    needed = view.total - view.atom(view.steps - 2).start
    decided = await explained(server, needed + 40)
    (first,) = {one.summary_id for one in decided.values() if one.entry.sequence == 1}
    assert told(decided[1]) == (Kind.EVICTED, f"its summary {first} was evicted")
    assert first == view.summaries[0].id


class Reasoned(DagEngine):
    """Shows all there is: its first message in another form, summaries, and the rest as it is."""

    id = "reasoned"

    def __init__(self, options: DagOptions) -> None:
        super().__init__(options)
        self.declared = Declared(1, frozenset({Form.PLACEHOLDER}))

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        if view.summaries:
            (summary,) = view.summaries
            rest = Keep(summary.last_step + 1, view.steps - 1, "it may matter")
            return Plan((Summarized(summary, "told in short"), rest))
        (slot,) = view.atom(0).slots
        masked = Reshaped(0, 0, "seen often", {1: replace(slot, form=Form.PLACEHOLDER)})
        return Plan((masked, Keep(1, view.steps - 1, "it may matter")), forms="one")


async def test_an_engine_says_why_in_words(serve: Serve) -> None:
    """Its reason stands wherever no law decides."""
    engine = Registration("reasoned", DagOptions, Reasoned, "plugin:test")
    server = await serve(engines=[engine])
    await server.engines.assign.run(scope(), "reasoned", {}, clear=False)
    await server.talk(1, 20)
    decided = await explained(server)
    assert told(decided[1]) == (Kind.MASKED, "seen often")
    assert told(decided[2]) == (Kind.KEPT, "it may matter")
    assert told(decided[40]) == (Kind.KEPT, "law tail")
    await server.compact(16_000, force=False)
    assert (await server.state()).compactions
    decided = await explained(server)
    (made,) = (await server.assemble(whole=True)).view.summaries
    assert told(decided[1]) == (Kind.SUMMARIZED, "told in short")
    assert told(decided[made.last_sequence + 1]) == (Kind.KEPT, "it may matter")


class Silent(DagEngine):
    """Shows some of what there is in other forms and lets some go, and says nothing of why."""

    id = "silent"

    def __init__(self, options: DagOptions) -> None:
        super().__init__(options)
        self.declared = Declared(1, frozenset({Form.PLACEHOLDER, Form.HEAD_TAIL}))

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        first, (_, answered) = view.atom(1).slots[0], view.atom(2).slots
        shown = Reshaped(1, 1, "", {first.sequence: replace(first, form=Form.HEAD_TAIL)})
        masked = replace(answered, form=Form.PLACEHOLDER)
        other = Reshaped(2, 2, "seen often", {masked.sequence: masked})
        return Plan((shown, other, Keep(3, view.steps - 1)), forms="one")


async def test_what_an_engine_does_not_say_is_said_by_rule(serve: Serve) -> None:
    engine = Registration("silent", DagOptions, Silent, "plugin:test")
    server = await serve(engines=[engine])
    await server.engines.assign.run(scope(), "silent", {}, clear=False)
    await store(server, user("a"), assistant("b"), assistant("", "3", "c1"), result("c1", "d"))
    await store(server, assistant("e"), user("f"), assistant("g"))
    decided = await explained(server)
    assert {at: told(one) for at, one in decided.items()} == {
        1: (Kind.EVICTED, "law budget"),
        2: (Kind.BOUNDED, "over its cap: head and tail"),
        3: (Kind.KEPT, "within the budget"),  # its reason is for the message in another form
        4: (Kind.MASKED, "seen often"),
        5: (Kind.KEPT, "within the budget"),
        6: (Kind.KEPT, "newest user message"),
        7: (Kind.KEPT, "law tail"),
    }


async def test_what_answers_nothing_is_dropped(server: Server) -> None:
    await store(server, user("a"), result("c9", "orphan"), user("b"))
    decided = await explained(server)
    assert decided[2].kind is Kind.DROPPED
    assert decided[2].rule
    assert decided[2].item_index is None
    assert decided[3].item_index == 1


async def test_results_that_were_made_up_are_counted_with_their_call(server: Server) -> None:
    await store(server, user("a"), assistant("calls", "2", "c1", "c2"), result("c2", "two"))
    await store(server, user("b"))
    decided = await explained(server)
    assert decided[2].synthetic_count == 1
    assert [decided[at].synthetic_count for at in (1, 3, 4)] == [0, 0, 0]
    assert (decided[2].item_index, decided[4].item_index) == (1, 4)


async def test_what_is_over_its_cap_is_bounded(serve: Serve) -> None:
    server = await serve()
    await store(server, user("a"), assistant("", "2", "c1"), result("c1", long("w", 60_000)))
    await store(server, assistant("done"), user("b"))
    decided = await explained(server)
    assert told(decided[3]) == (Kind.BOUNDED, "over its cap: head and tail")
    assert decided[3].form is Form.HEAD_TAIL
    assert decided[3].tokens < decided[3].entry.tokens


async def test_a_late_result_for_what_is_summarized_is_a_note(server: Server) -> None:
    await store(server, user("a", "1"), assistant("calls", "2", "c1"), user("b", "3"))
    await server.talk(1, 6)
    await server.compact()
    assert (await server.state()).compactions
    await store(server, result("c1", "late", "late"))
    decided = await explained(server)
    note = decided[max(decided)]
    assert told(note) == (Kind.KEPT, "late result of a summarized call, as a note")
    assert note.form is Form.NOTE
    assert text_of(pb.Message.FromString(note.entry.body)) == "late"


async def test_some_parts_of_a_message_may_be_left_out(server: Server) -> None:
    both = pb.Message(
        role=pb.ROLE_TOOL,
        parts=[
            pb.Part(tool_result=pb.ToolResultPart(call_id=name, parts=[])) for name in ("c1", "c9")
        ],
    )
    await store(server, user("a"), assistant("calls", "2", "c1"), both)
    decided = await explained(server)
    assert decided[3].form is Form.SOME_PARTS
    assert decided[3].rule.endswith("; parts that answer no open call are left out")
    assert decided[3].rule.startswith("law tail")


async def test_an_engine_that_passes_through_keeps_everything(server: Server) -> None:
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    await server.talk(1, 3)
    assert {one.kind for one in (await explained(server)).values()} == {Kind.KEPT}


async def test_what_is_excluded_says_so(server: Server) -> None:
    note = pb.Message(role=pb.ROLE_CUSTOM, custom_role="note", labels={"excluded": "yes"})
    await store(server, user("a"), note, user("c"))
    decided = await explained(server)
    assert told(decided[2]) == (Kind.DROPPED, "labelled excluded")


def answers(*calls: str) -> pb.Message:
    """One message of a tool's with several results."""
    parts = [pb.Part(tool_result=pb.ToolResultPart(call_id=call, parts=[])) for call in calls]
    return pb.Message(role=pb.ROLE_TOOL, parts=parts)


async def test_a_message_is_shown_where_any_of_its_results_is(server: Server) -> None:
    """Its results stand behind calls of two steps, of which the old one is evicted."""
    await store(server, user("a"), assistant("old", "2", "c1"), user(long("b", 4_000)))
    await store(server, assistant("new", "4", "c2"), answers("c1", "c2"))
    whole = await explained(server)
    parts_left_out = "; parts that answer no open call are left out"
    assert told(whole[5]) == (Kind.KEPT, "within the budget" + parts_left_out)
    assert whole[5].item_index == 2
    await store(server, user("c"))
    decided = await explained(server, 1_500)
    assert [decided[at].kind for at in (1, 2, 3)] == [Kind.EVICTED] * 3
    assert decided[5].kind is Kind.KEPT
    assert decided[5].item_index is not None


async def test_of_what_shows_none_of_its_results_a_summary_is_named(server: Server) -> None:
    """The first of its two calls is summarized, the second evicted."""
    await store(server, user(long("a", 300)), assistant("old", "2", "c1"), user("b", "3"))
    await store(server, assistant(long("new", 1_200), "4", "c2"), answers("c1", "c2"))
    await store(server, user("c", "6"), assistant("d", "7"))
    change = HostCompacted(1, 2, "what was said")
    await server.context.record_host_change.run(TENANT, S1, change, request())
    (made,) = (await server.assemble(whole=True)).view.summaries
    decided = await explained(server, 400)
    assert decided[4].kind is Kind.EVICTED
    assert told(decided[5]) == (Kind.SUMMARIZED, "covered")
    assert decided[5].summary_id == made.id


async def test_what_is_explained_is_as_it_was_when_it_began(server: Server) -> None:
    """The session goes on at every step of it: a call gets its result, which makes another atom of
    the newest, and more is said."""
    await server.talk(1, 6)
    await server.assemble(100_000, ingest=incoming(assistant("", "a1", "c")))
    assembly = await server.assemble(100_000, whole=True)
    alone = at_once(explain(assembly))
    work, told = explain(assembly), iter([result("c", "done"), user("next"), assistant("more")])
    while True:
        try:
            next(work)
        except StopIteration as done:
            beside = done.value
            break
        if (message := next(told, None)) is not None:
            await server.assemble(100_000, ingest=incoming(message))
    assert beside == alone
    assert next(told, None) is None
    assert len(await explained(server)) == len(alone) + 3
