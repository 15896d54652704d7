"""How much room users' words need, from what the core knows of messages."""

from __future__ import annotations

from contextengine_server.context.message import Entry, Role, Traits
from contextengine_server.context.user_words import LINE_TOKENS, MAX_USER_TOKENS, user_tokens


def entry(traits: Traits, tokens: int) -> Entry:
    return Entry(1, "", traits, tokens, b"", b"", 1)


def test_users_words_alone_count_each_up_to_the_bound() -> None:
    entries = [
        entry(Traits(Role.USER, 1), 20),
        entry(Traits(Role.USER, 1), 50_000),
        entry(Traits(Role.ASSISTANT, 1), 700),
        entry(Traits(Role.TOOL, 1, results=((0, "c"),)), 9_000),
        # Results that come in a message of the user's role are not the user's words.
        entry(Traits(Role.USER, 1, results=((0, "c"),)), 9_000),
        # What is pinned is shown, and never summarized.
        entry(Traits(Role.USER, 1, pinned=True), 100),
    ]
    assert user_tokens(entries) == 20 + MAX_USER_TOKENS + 2 * LINE_TOKENS
    assert user_tokens([]) == 0
