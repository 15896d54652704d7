"""What is read again is shown once, over a running service.
See docs/semantics.md#results-read-again."""

from __future__ import annotations

from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result
from tests.integration.assemble.asking import ask, assign, epoch, hashes, prose, quiet, say, store
from tests.integration.harness import House, budget, ref

S = ref("s1")
OPTIONS = {"freshTailTurns": 2, "leafChunkTokens": 1_000, "leafTargetTokens": 120}


def read(number: int, path: str, tool: str = "read") -> list[t.Message]:
    """A file is read: its name is all that says so."""
    call = f"c{number}"
    return [
        assistant(tool_calls=[tool_call(call, tool, {"path": path})], id=f"call{number}"),
        tool_result(call, prose(f"{path}-{number}", 400), name=tool, id=f"result{number}"),
    ]


def shapes(reply: t.AssembleResponse) -> dict[int, t.Form]:
    """The forms of the messages shown, by sequence."""
    return {
        item.origin.sequence: item.form
        for item in reply.items
        if item.origin.WhichOneof("kind") == "sequence"
    }


async def begun(house: House) -> list[t.Message]:
    """Messages 1 to 6 are talk, the result 8 is read again by 12 under another name of the tool."""
    await assign(house, S, "dag", **OPTIONS)
    messages = [say(f"u{n}", 300) for n in range(6)]
    messages += [*read(1, "a.py"), *read(2, "b.py"), *read(3, "./a.py", "file_read")]
    messages += [m for n in range(4, 8) for m in read(n, f"{n}.py")]
    await store(house, S, messages)
    await quiet(house, S)
    return messages


async def summarize(house: House) -> None:
    """What was said first is summarized, and nothing that was read."""
    covered = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=1, last_sequence=5, summary="talk"
    )
    await house.client.record_host_change(S, change_id="1-5", compacted=covered)


async def test_it_is_masked_with_a_compaction_and_stays_so(house: House) -> None:
    messages = await begun(house)
    before = await ask(house, S, budget=budget(20_000))
    assert set(shapes(before).values()) == {t.Form.FORM_UNSPECIFIED}
    await summarize(house)
    reply = await ask(house, S, budget=budget(20_000), explain=True)
    masked = [sequence for sequence, form in shapes(reply).items() if form]
    assert masked == [8]
    [item] = [item for item in reply.items if item.origin.sequence == 8]
    assert item.form == t.Form.FORM_PLACEHOLDER
    said = item.message.parts[0].tool_result.parts[0].text.text
    assert said.startswith("[superseded: ")
    assert "see sequence 12" in said
    assert "expand sequence 8" in said
    decision = {one.sequence: one for one in reply.decisions}[8]
    assert decision.kind == t.Decision.Kind.KIND_MASKED
    assert decision.rule == "a later result says the same anew"
    # The whole of it is there, and a restart changes nothing.
    found = await house.client.recall.expand(S, sequences=[8])
    assert found.items[0].message.parts == messages[7].parts
    await house.restart()
    again = await ask(house, S, budget=budget(20_000))
    assert (hashes(again), epoch(again)) == (hashes(reply), epoch(reply))
    # What is read from here on masks nothing before the next compaction.
    await store(house, S, read(9, "b.py"))
    later = await ask(house, S, budget=budget(20_000), known_epoch=epoch(reply))
    assert epoch(later) == epoch(reply)
    assert hashes(later)[: len(reply.items)] == hashes(reply)


async def test_undoing_the_compaction_undoes_the_mask(house: House) -> None:
    await begun(house)
    await summarize(house)
    await house.client.compact(S, undo_to_generation=0)
    reply = await ask(house, S, budget=budget(20_000))
    assert set(shapes(reply).values()) == {t.Form.FORM_UNSPECIFIED}


async def test_a_fork_shows_what_the_session_shows(house: House) -> None:
    """A session that goes on with another's view masks what that one does."""
    await begun(house)
    await summarize(house)
    child = ref("s2")
    await assign(house, child, "dag", **OPTIONS)
    await house.client.bootstrap(child, continues=S)
    before, after = [await ask(house, each, budget=budget(20_000)) for each in (S, child)]
    assert hashes(after) == hashes(before)
    assert shapes(after)[8] == t.Form.FORM_PLACEHOLDER
