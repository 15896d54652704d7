"""Files of Pi and OpenClaw brought into a server: the branch that goes on, the harness's summaries,
and a file that grew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine.formats import read_transcript
from contextengine_server.cli.imports.session import ImportedTranscript, remarks, store
from tests.integration.harness import House, ref, texts
from tests.unit.client.pi_files import entry, said, written

LONG = "a long tale of what was done " * 40
A, B = said("a", None, f"question {LONG}"), said("b", "a", f"reply {LONG}", "assistant")
C, D = said("c", "b", "ABANDONED question"), said("d", "c", "ABANDONED answer", "assistant")
E, F = said("e", "b", "edited question"), said("f", "e", "answer", "assistant")
SESSION = ref("pi-1")


async def brought(house: House, tmp_path: Path, *entries: dict[str, Any]) -> ImportedTranscript:
    (session,) = read_transcript(written(tmp_path / "s.jsonl", *entries))
    return await store(house.client, "agent", session, lambda *_: None)


async def test_only_the_branch_that_goes_on_is_live(house: House, tmp_path: Path) -> None:
    done = await brought(house, tmp_path, A, B, C, D, E, F)
    assert (done.stored, done.known, done.rewound) == (4, 0, 0)
    assert texts((await house.client.assemble(SESSION)).items)[2:] == ["edited question", "answer"]
    assert list(remarks([done])) == ["left out: 2 entries of branches that were left"]


async def test_a_compaction_of_the_harness_is_shown_as_its_summary(
    house: House, tmp_path: Path
) -> None:
    compaction = entry("compaction", "k", "b", summary="they met", firstKeptEntryId="e")
    kept = said("e", "k", "and then?")
    done = await brought(
        house, tmp_path, A, B, kept | {"parentId": "b"}, compaction | {"parentId": "e"}
    )
    assert (done.stored, done.summaries, done.longer) == (3, 1, 0)
    items = (await house.client.assemble(SESSION)).items
    assert [item.origin.WhichOneof("kind") for item in items] == ["summary_id", "sequence"]
    assert "they met" in texts(items)[0]
    assert len(await house.rows(SESSION)) == 3
    again = await brought(
        house, tmp_path, A, B, kept | {"parentId": "b"}, compaction | {"parentId": "e"}
    )
    assert (again.stored, again.known, again.summaries) == (0, 3, 0)
    assert texts((await house.client.assemble(SESSION)).items) == texts(items)


async def test_a_summary_that_is_longer_than_its_messages_is_said(
    house: House, tmp_path: Path
) -> None:
    short = said("a", None, "hi")
    compaction = entry("compaction", "k", "a", summary=LONG, firstKeptEntryId="b")
    done = await brought(house, tmp_path, short, compaction, said("b", "k", "go on"))
    assert (done.summaries, done.longer) == (0, 1)
    assert "no shorter" in next(remarks([done]))


async def test_a_file_that_grew_goes_on(house: House, tmp_path: Path) -> None:
    await brought(house, tmp_path, A, B)
    more = await brought(house, tmp_path, A, B, E, F)
    assert (more.stored, more.known) == (2, 2)
    assert [row.message.id for row in await house.rows(SESSION)] == ["a", "b", "e", "f"]


async def test_a_harness_that_went_back_is_followed(house: House, tmp_path: Path) -> None:
    await brought(house, tmp_path, A, B, C, D)
    done = await brought(house, tmp_path, A, B, C, D, E, F)
    assert (done.stored, done.known, done.rewound) == (2, 2, 2)
    assert [row.message.id for row in await house.rows(SESSION)] == ["a", "b", "e", "f"]
    assert any("branch that was left" in line for line in remarks([done]))
    again = await brought(house, tmp_path, A, B, C, D, E, F)
    assert (again.stored, again.known, again.rewound) == (0, 4, 0)


async def test_another_session_of_the_same_id_is_refused(house: House, tmp_path: Path) -> None:
    await brought(house, tmp_path, A, said("x", "a", "of another file"))
    with pytest.raises(ContextEngineError) as caught:
        await brought(house, tmp_path, A, B, C, D, E, F)
    assert caught.value.reason == "SESSION_EXISTS"
    assert len(await house.rows(SESSION)) == 2
