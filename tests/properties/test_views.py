"""What a view says of itself, against what is shown of it."""

from __future__ import annotations

from hypothesis import given

from contextengine_server.context.laws.prefix import is_prefix
from contextengine_server.context.prefix import chained
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.testing.engine.random_trials import compacted
from contextengine_server.testing.engine.trial import Trial
from contextengine_server.testing.engine.views import sent_slots


@given(compacted())
def test_view_tokens_are_what_showing_everything_costs(one: Trial) -> None:
    plan = DagEngine(DagOptions()).plan(one.view, 1 << 40)
    assert one.view.view_tokens() == sum(slot.tokens for slot in sent_slots(plan, one.view))


def test_a_hash_chain_names_every_beginning() -> None:
    hashes = [bytes([n]) * 16 for n in range(5)]
    links = chained(hashes)
    assert len(set(links)) == 6
    assert chained(hashes[:3]) == links[:4]
    assert chained([*hashes[:2], hashes[3]])[3] not in links
    assert is_prefix([], hashes)
    assert is_prefix(hashes[:2], hashes)
    assert not is_prefix(hashes, hashes[:2])
    assert not is_prefix(hashes[1:2], hashes)
