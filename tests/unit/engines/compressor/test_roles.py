"""In whose role the compressor tells its summary: facts 35 and 39 of Hermes's compressor, as far as
the contract has no other (docs/compressor.md)."""

from __future__ import annotations

import pytest

from contextengine_proto.v1 import message_pb2 as pb

from .sessions import Session

USER, ASSISTANT, TOOL = pb.ROLE_USER, pb.ROLE_ASSISTANT, pb.ROLE_TOOL
BUDGET = 9_000


def begun(*roles: pb.Role) -> Session:
    """A session of these first messages behind a system message, which are the head."""
    one = Session(protect_first_n=len(roles))
    one.say(role=pb.ROLE_SYSTEM)
    for role in roles:
        if role == TOOL:
            one.call(5)
        else:
            one.say(role=role)
    return one


def goes_on(one: Session, *, user: bool) -> None:
    """The tail begins with a message of the user's, or of the model's."""
    for _ in range(60):
        one.say(70, USER if user else ASSISTANT)
    one.say()


@pytest.mark.parametrize(
    ("head", "user", "told"),
    [
        ([USER], True, ASSISTANT),
        ([USER, ASSISTANT, USER], True, ASSISTANT),
        ([USER, TOOL], True, ASSISTANT),
        ([USER, ASSISTANT], True, USER),
        ([USER, ASSISTANT], False, USER),
        ([USER, TOOL], False, USER),
        ([USER], False, USER),
    ],
)
def test_roles_take_turns_around_it(head: list[pb.Role], user: bool, told: pb.Role) -> None:
    """Where both roles repeat one, the original merges the summary into a message: here it stands
    alone, in the user's role."""
    one = begun(*head)
    goes_on(one, user=user)
    step = one.compact(BUDGET)
    one.shown(BUDGET)
    shown = list(one.roles)
    at = shown.index(0)
    assert one.roles[0] == told
    assert one.roles[shown[at - 1]] == head[-1]
    assert one.roles[shown[at + 1]] == (USER if user else ASSISTANT)
    assert step.role == ("assistant" if told == ASSISTANT else "user")
    assert one.texts[0].split("\n")[-2].endswith(" untrusted>>>"), "the end of it is marked"


@pytest.mark.parametrize("leading", [0, 1])
def test_the_user_begins_where_nothing_but_the_system_speaks_before_it(leading: int) -> None:
    one = Session(protect_first_n=0)
    for _ in range(leading):
        one.say(role=pb.ROLE_SYSTEM)
    goes_on(one, user=True)
    one.compact(BUDGET)
    one.shown(BUDGET)
    assert one.roles[0] == USER


def test_it_keeps_its_role_while_the_list_goes_on() -> None:
    """Law 10: what is behind it may grow, and other budgets may show less of it."""
    one = begun(USER)
    goes_on(one, user=True)
    one.compact(BUDGET)
    for _ in range(20):
        one.reply(10)
        one.say(10)
        for budget in (BUDGET, 2 * BUDGET):
            one.shown(budget)
            assert one.roles[0] == ASSISTANT


def test_the_next_compaction_decides_anew() -> None:
    """The head is summarized by then, so nothing of the user's stands before it."""
    one = begun(USER)
    goes_on(one, user=True)
    one.compact(BUDGET)
    goes_on(one, user=True)
    one.compact(BUDGET)
    one.shown(BUDGET)
    assert one.roles[0] == USER
