"""Other programs' databases brought into a server: their summaries are ours, and a key's sessions
stay its own."""

from __future__ import annotations

from pathlib import Path

from contextengine_server.cli.imports.files import read_sessions
from contextengine_server.cli.imports.session import ImportedTranscript, store
from tests.integration.harness import House, ref, texts
from tests.unit.cli.imports.hosts import lossless_claw

WORDS = "a long tale of what was done " * 40


async def brought(house: House, file: Path) -> list[ImportedTranscript]:
    return [
        await store(house.client, "agent", session, lambda *_: None)
        for session in read_sessions(file)
    ]


async def test_summaries_of_lossless_claw_are_shown_and_drilled_into(
    house: House, tmp_path: Path
) -> None:
    file = lossless_claw(tmp_path / "lcm.db", words=WORDS)
    old, new = await brought(house, file)
    assert (old.stored, new.stored, new.summaries) == (1, 10, 3)
    items = (await house.client.assemble(ref("s-new"))).items
    kinds = [item.origin.WhichOneof("kind") for item in items]
    assert kinds == ["summary_id", *["sequence"] * 6]
    assert "they met and spoke" in texts(items)[0]
    expanded = await house.client.recall.expand(
        ref("s-new"), summary_ids=[items[0].origin.summary_id], max_depth=2, include_messages=True
    )
    said = str(list(expanded.items))
    assert "they spoke" in said
    assert "message 4" in said

    again = await brought(house, file)
    assert [(one.stored, one.known, one.summaries) for one in again] == [(0, 1, 0), (0, 10, 0)]
    assert texts((await house.client.assemble(ref("s-new"))).items) == texts(items)


async def test_the_newest_conversation_of_a_key_is_its_current_session(
    house: House, tmp_path: Path
) -> None:
    await brought(house, lossless_claw(tmp_path / "lcm.db"))
    current = await house.client.get_status(ref("", key="main"))
    assert current.session_id == "s-new"
