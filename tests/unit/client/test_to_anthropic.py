"""What is written for Anthropic's API is what it takes."""

from __future__ import annotations

import pytest

from contextengine.formats import from_anthropic, to_anthropic


@pytest.mark.parametrize(
    ("roles", "written"),
    [
        (["user", "system", "assistant", "user"], ["user", "system", "assistant", "user"]),
        (["user", "system"], ["user", "system"]),
        (["system", "assistant"], ["user", "assistant"]),
        (["assistant", "system", "user"], ["assistant", "user", "user"]),
        (["user", "system", "user"], ["user", "user", "user"]),
        (["user", "system", "system", "assistant"], ["user", "user", "system", "assistant"]),
    ],
)
def test_an_anthropic_system_message_stands_where_the_api_takes_it(
    roles: list[str], written: list[str]
) -> None:
    """What stood beside it may be left out."""
    given = [{"role": role, "content": role} for role in roles]
    made = to_anthropic(from_anthropic(given))
    assert [one["role"] for one in made["messages"]] == written
    assert [one["content"] for one in made["messages"]] == roles
