"""`tokens.encoding` changed between two lives of a server: sessions keep what they began with."""

from __future__ import annotations

from contextengine import types as t
from contextengine.messages import assistant, user
from contextengine_server.tokens import MESSAGE_TOKENS, TokenCounter
from tests.integration.harness import House, ref

OLD, NEW = "o200k_base", "cl100k_base"
TEXT = "Привет, мир: contexte engagé 你好世界 " * 8
"""A text that the two encodings count differently."""


def tokens(encoding: str) -> int:
    return MESSAGE_TOKENS + TokenCounter(encoding).count_text(TEXT)


async def test_a_session_keeps_its_encoding_over_a_restart(house: House) -> None:
    assert tokens(OLD) != tokens(NEW)
    await house.client.ingest(ref("old"), user(TEXT))
    await house.restart(**{"tokens.encoding": NEW})
    prompt = [t.Part(text=t.TextPart(text=TEXT))]
    for session, encoding in (("old", OLD), ("new", NEW)):
        made = await house.client.assemble(ref(session), ingest=[assistant(TEXT)])
        assert {item.tokens for item in made.items} == {tokens(encoding)}, session
        assert made.budget.estimate_method == f"tiktoken:{encoding}"
        asked = await house.client.assemble(ref(session), prompt=prompt)
        assert asked.budget.prompt == tokens(encoding)
    status = await house.client.get_status(ref("old"))
    assert status.view_tokens == 2 * tokens(OLD)
