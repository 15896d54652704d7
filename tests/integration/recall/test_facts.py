"""What Comis and lossless-claw promise of looking back, by the numbers of the collected facts."""

from __future__ import annotations

import json

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.errors import BudgetSpent
from contextengine.messages import user
from tests.integration.harness import House, problem, ref
from tests.integration.subagents.family import Family

from .asking import S, call, covered, deep, find, write

KEY = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2


async def test_comis_107_a_search_keeps_to_its_scope_its_limit_and_its_secrets(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an agent the call is refused as what it is, a call that cannot be: it has no scope
    that could be denied."""
    with pytest.raises(ContextEngineError) as refused:
        await house.client.call_tool(
            t.SessionRef(session_id="s1"), name="ctx_search", arguments_json=b"{}"
        )
    assert problem(refused.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["session.agent_id"])
    await write(house, S, *(user(f"zebra {n} with the key {KEY}") for n in range(40)))
    await find(house, "zebra")
    capsys.readouterr()
    found, reply = await call(
        house, "ctx_search", {"query": "zebra xylophone-query", "mode": "text", "limit": 50}
    )
    assert not reply.is_error
    found, reply = await call(house, "ctx_search", {"query": "zebra", "limit": 50})
    assert len(found["hits"]) == 30
    for hit in found["hits"]:
        assert KEY not in json.dumps(hit)
        assert "zebra" in hit["snippet"]
        assert hit["snippet"].startswith("<<<untrusted ")
    logged = capsys.readouterr()
    assert "zebra" not in logged.err + logged.out


async def test_comis_109_what_is_longer_than_the_cap_comes_in_pages_without_secrets(
    house: House,
) -> None:
    """No file is written into anyone's directory: what is cut off is a page away."""
    said = [user(f"zebra {n} and the key {KEY}" + " and so on" * 60) for n in range(12)]
    await write(house, S, *said, "the newest")
    summary = await covered(house, S, 1, 12, "about zebras")
    came, page, pages = "", "", 0
    while True:
        brought, reply = await call(
            house, "ctx_expand", {"summary_id": summary.id, "max_tokens": 400, "page": page}
        )
        assert not reply.is_error
        assert brought["tokens"] <= 400
        came, pages = came + json.dumps(brought["items"]), pages + 1
        page = brought.get("next_page", "")
        assert bool(page) == brought.get("truncated", False)
        if not page:
            break
    assert pages > 2
    assert KEY not in came
    assert all(f"zebra {n} " in came for n in range(12))


async def test_lossless_claw_59_a_child_gets_no_more_than_it_was_granted(house: House) -> None:
    """Other messages than the parent's, other depths, more tokens, a grant of its own over the
    parent's: refused or clamped."""
    family = Family(house, "fact59")
    top = (await deep(house, family.parent))[-1]
    stranger = ref("stranger")
    await write(house, stranger, *(["a secret of others " * 40] * 3))
    foreign = await covered(house, stranger, 1, 3, "s")
    grant = t.RecallGrant(max_tokens=600, max_depth=1)
    token = (await family.prepare(grant=grant)).spawn_token
    recall = house.client.recall
    opened = await recall.expand(
        family.child,
        summary_ids=[top.id, foreign.id],
        max_depth=9,
        max_tokens=50_000,
        spawn_token=token,
    )
    assert 0 < opened.tokens <= 600
    assert opened.missing_count == 1
    assert foreign.id not in {item.origin.summary_id for item in opened.items}
    while True:
        try:
            await recall.expand(family.child, summary_ids=[top.id], spawn_token=token)
        except BudgetSpent:
            break
    # What the child hands on is its own, not its parent's.
    grandchild = family.session("grandchild")
    nested = (
        await family.prepare(grandchild, family.child, grant=t.RecallGrant(max_tokens=600))
    ).spawn_token
    theirs = await recall.expand(grandchild, summary_ids=[top.id], spawn_token=nested)
    assert (theirs.missing_count, len(theirs.items)) == (1, 0)
