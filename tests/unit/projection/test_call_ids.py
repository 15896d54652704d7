"""Ids of tool calls: what a provider takes stays as it is, all else is replaced by what fits."""

from __future__ import annotations

import re

import pytest

from contextengine_server.projection import openai_chat
from contextengine_server.projection.call_ids import PLAIN, CallIdFormat, CallIds
from contextengine_server.projection.model import Item, ItemCache, Loss
from contextengine_server.projection.provider import ProviderTask
from tests.unit.projection.histories import listed
from tests.unit.projection.making import assistant, call, numbered, result, tool, user

NINE = CallIdFormat(re.compile(r"[a-zA-Z0-9]{9}"), prefix="", digits=9)
"""What Mistral takes."""


def ids(items: list[Item], format: CallIdFormat) -> tuple[list[str], list[str]]:
    """The ids of calls, and those of results, in a Chat form with ids of this format."""
    made = listed(openai_chat.render(ProviderTask(items=items, call_ids=format)))
    calls = [one["id"] for message in made for one in message.get("tool_calls", ())]
    return calls, [message["tool_call_id"] for message in made if message["role"] == "tool"]


@pytest.mark.parametrize(
    ("format", "name", "fits"),
    [
        (PLAIN, "c" * 64, True),
        (PLAIN, "c" * 65, False),
        (PLAIN, "toolu_01-A", True),
        (PLAIN, "", False),
        (PLAIN, "a b", False),
        (PLAIN, "c1\n", False),
        (NINE, "abcDEF123", True),
        (NINE, "abcDEF12", False),
        (NINE, "abc_EF123", False),
    ],
)
def test_an_id_fits_where_the_whole_of_it_matches(format, name, fits):
    assert format.fits(name) is fits


def test_a_replacement_has_to_fit_the_pattern_itself():
    with pytest.raises(ValueError, match="does not fit the pattern"):
        CallIdFormat(re.compile(r"[a-z]+"))
    with pytest.raises(ValueError, match="fewer than 8"):
        CallIdFormat(re.compile(r".*"), digits=4)


def test_each_form_has_ids_of_its_own_format_though_what_is_read_of_a_message_is_shared():
    items = [
        Item(item.role, item.parts, sequence=item.sequence, cache=ItemCache())
        for item in numbered(
            [
                user("x"),
                assistant("", call("call_1"), call("abcDEF123")),
                tool(result("call_1"), result("abcDEF123")),
                *[user(f"turn {at}") for at in range(12)],
            ]
        )
    ]
    for _ in range(2):  # the second time from what is kept of the first
        plain, nine = ids(items, PLAIN), ids(items, NINE)
        assert plain == (["call_1", "abcDEF123"], ["call_1", "abcDEF123"])
        assert nine[0] == nine[1]
        assert nine[0][1] == "abcDEF123"
        assert NINE.fits(nine[0][0])
        assert nine[0][0] != "call_1"


def test_an_id_that_is_used_again_is_replaced_on_both_sides():
    items = numbered(
        [
            user("x"),
            assistant("", call("abcDEF123")),
            tool(result("abcDEF123")),
            assistant("", call("abcDEF123"), call("abcDEF123")),
            tool(result("abcDEF123"), result("abcDEF123")),
        ]
    )
    calls, results = ids(items, NINE)
    assert calls == results
    assert len(set(calls)) == 3
    assert all(map(NINE.fits, calls))


def test_a_replacement_that_another_call_has_is_replaced_as_well():
    losses: list[Loss] = []
    names = CallIds(NINE, losses)
    taken = NINE.replacement("bad id|4:0")
    assert names.claim([taken])
    name = names.name("bad id", "4:0", 3)
    assert name != taken
    assert NINE.fits(name)
    assert losses == [Loss(3, f"call id 'bad id' is {name} here", "call ids")]


def test_a_fork_knows_what_was_used_and_tells_its_own_losses():
    losses: list[Loss] = []
    names = CallIds(PLAIN, losses)
    assert names.claim(["c1"])
    other: list[Loss] = []
    twin = names.fork(other)
    assert not twin.claim(["c0", "c1"])
    assert twin.claim(["c0", "c2"])
    assert names.claim(["c2"]), "the fork's ids are not the first's"
    assert twin.name("c2", "1:0", 1) != "c2"
    assert (len(losses), len(other)) == (0, 1)
