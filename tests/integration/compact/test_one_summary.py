"""A long talk in a small budget has one summary, which still knows how it began."""

from __future__ import annotations

from contextengine import types as t
from contextengine.messages import assistant, user
from tests.integration.assemble.asking import ask, settled
from tests.integration.harness import House, budget, ref, texts

BUDGET = budget(2_000)
PLACES = ["Lisbon", "Tromso", "Quito", "Hanoi", "Bergen", "Cusco", "Oulu", "Siena"]


def summaries(items: list[t.Item]) -> list[t.Item]:
    return [item for item in items if item.HasField("summary")]


async def test_it_is_made_anew_from_the_messages_with_what_follows(house: House) -> None:
    session, shown = ref("talk"), list[t.Item]()
    for number in range(60):
        place = f"{PLACES[number % len(PLACES)]}-{number:02}"
        said = user(f"I flew to {place} and paid {300 + number} euros for it.", id=f"u{number}")
        answer = assistant(
            "That sounds like a good way to spend some days, and there is much to see there. " * 2,
            id=f"a{number}",
        )
        shown = list((await ask(house, session, ingest=[said], budget=BUDGET)).items)
        await house.client.ingest(session, answer)
        await settled(house, session)
    reply = await ask(house, session, budget=BUDGET)
    [one] = summaries(list(reply.items))
    assert one.summary.depth == 0
    assert one.summary.first_sequence == 1
    [text] = texts([one])
    kept = [number for number in range(60) if f"-{number:02}" in text]
    assert kept[0] < 5, "what was told first stands in it still"
    assert len(kept) > 0.6 * (one.summary.last_sequence / 2), "as does most of the rest"
    assert len(summaries(shown)) == 1
