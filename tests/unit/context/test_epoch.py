"""Epochs: strings that tell apart whatever decides how an assembly begins, and which of it."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from contextengine_proto.v1 import assemble_pb2
from contextengine_server.context.epoch import Cause, EpochParts, cause, digest, epoch

PARTS = EpochParts("s", "dag:1", "c", "m", "0", "", "50000", "0", "", "3|1-2")
NAMES = [part.name for part in fields(EpochParts)]
CAUSES = {
    "session": Cause.RESET, "engine": Cause.ENGINE, "config": Cause.CONFIG, "model": Cause.MODEL,
    "rewound": Cause.REWOUND,
    "compacted": Cause.COMPACTED, "budget": Cause.BUDGET, "late": Cause.LATE_RESULT,
    "masked": Cause.MASKED,
    "cut": Cause.CUT,
}  # fmt: skip
parts = st.builds(EpochParts, *[st.text(max_size=20) for _ in NAMES])


def test_causes_have_the_numbers_of_the_wire() -> None:
    wire = {
        name.removeprefix("EPOCH_CAUSE_"): number
        for name, number in assemble_pb2.EpochCause.items()
    }
    assert {"UNSPECIFIED" if c is Cause.SAME else c.name: int(c) for c in Cause} == wire


@pytest.mark.parametrize("name", NAMES)
def test_the_part_that_differs_is_the_cause(name: str) -> None:
    other = replace(PARTS, **{name: getattr(PARTS, name) + "'"})
    assert epoch(other) != epoch(PARTS)
    assert cause(epoch(PARTS), epoch(other)) == CAUSES[name]
    assert cause(epoch(other), epoch(PARTS)) == CAUSES[name]


@given(parts, parts)
def test_of_several_the_first_is_named(one: EpochParts, other: EpochParts) -> None:
    differing = [CAUSES[name] for name in NAMES if getattr(one, name) != getattr(other, name)]
    assert cause(epoch(one), epoch(other)) == (differing[0] if differing else Cause.SAME)
    assert epoch(one) == epoch(replace(one))


@given(
    st.text()
    | st.binary(max_size=90).map(
        lambda raw: "e1." + base64.urlsafe_b64encode(raw).decode().rstrip("=")
    )
)
def test_what_is_no_epoch_of_ours_is_unknown(known: str) -> None:
    now = epoch(PARTS)
    assert cause(known, now) in (
        set(Cause) - {Cause.SAME} if len(known) == len(now) else {Cause.UNKNOWN}
    )


@pytest.mark.parametrize(
    "known",
    [
        "",
        "e1",
        "e1.",
        "e2." + epoch(PARTS)[3:],
        epoch(PARTS)[:-1],
        epoch(PARTS) + "A",
        "e1.*&%",
        "e1.é",
        # Of another epoch, but for a letter that is none of ours: it says nothing of a part.
        f"{epoch(PARTS)[:4]}{'A' if epoch(PARTS)[4] != 'A' else 'B'}*{epoch(PARTS)[5:]}",
    ],
)
def test_a_spoiled_epoch_is_unknown(known: str) -> None:
    assert cause(known, epoch(PARTS)) == Cause.UNKNOWN


def test_an_epoch_in_other_letters_of_the_same_bytes_is_unknown() -> None:
    """Nothing differs that a cause could be named for."""
    at = next(n for n in range(99) if set("-_") & set(epoch(replace(PARTS, model=str(n)))))
    now = epoch(replace(PARTS, model=str(at)))
    assert cause(now.replace("-", "+").replace("_", "/"), now) == Cause.UNKNOWN


def test_an_epoch_is_short_and_printable() -> None:
    assert epoch(PARTS).isascii()
    assert len(epoch(PARTS)) == 3 + 80
    assert (
        epoch(PARTS)
        == "e1."
        + base64.urlsafe_b64encode(b"".join(digest([getattr(PARTS, n)]) for n in NAMES)).decode()
    )


@given(
    st.lists(st.text(st.characters(exclude_characters="\x1f"), max_size=5), max_size=4),
    st.lists(st.text(max_size=5), max_size=4),
)
def test_digests_name_sequences(one: list[str], other: list[str]) -> None:
    if one != other and all("\x1f" not in text for text in other):
        assert digest(one) != digest(other) or "\x1f".join(one) == "\x1f".join(other)
    assert len(digest(one)) == 6
