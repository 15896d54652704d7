"""What clients do by themselves: contexts without the service, formats of providers, ids, texts."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from contextengine import types as t
from contextengine.fallback import make_up
from tests.clients.drivers import Driver, Json, read, written
from tests.clients.vectors import parsed, vectors


@pytest.mark.parametrize("case", vectors("fallback.json")["cases"], ids=lambda case: case["name"])
def test_a_context_made_by_the_client(case: Json, alone: Driver) -> None:
    request = parsed(t.AssembleRequest, case["request"])
    held = [parsed(t.Item, item) for item in case.get("held", [])]
    last = parsed(t.AssembleResponse, case["last"]) if "last" in case else None
    later = [parsed(t.Message, message) for message in case.get("later", [])]
    answer = alone.ask(
        "fallback",
        request=written(request),
        held=[written(item) for item in held],
        last=None if last is None else written(last),
        later=[written(message) for message in later],
    )
    response = read(t.AssembleResponse, answer["response"])
    assert [item.message.id for item in response.items] == case["expect"]["ids"]
    assert t.AssembleResponse.Outcome.Name(response.outcome) == case["expect"]["outcome"]
    assert response.outcome_reason == "CLIENT_FALLBACK"
    # All clients answer the same to the last byte.
    assert response == make_up(request, held, last, later)


@pytest.mark.parametrize("case", vectors("formats.json")["cases"], ids=lambda case: case["format"])
def test_formats_of_providers(case: Json, alone: Driver) -> None:
    if alone.language.removesuffix("-asyncio") not in case.get("by", [alone.language]):
        pytest.skip(f"{alone.language} has not this format")
    with_native = alone.ask("format", format=case["format"], **{"in": case["json"]})["messages"]
    messages = [read(t.Message, message) for message in with_native]
    original = json.loads(case["json"])
    back = json.loads(alone.ask("format", format=case["format"], out=with_native)["json"])
    assert back == original
    golden = [parsed(t.Message, message) for message in case["messages"]]
    for message in messages:
        assert json.loads(message.native.json)
        message.ClearField("native")
    assert messages == golden
    bare = json.loads(
        alone.ask("format", format=case["format"], out=[written(message) for message in messages])[
            "json"
        ]
    )
    assert bare == case["bare"]


@pytest.mark.parametrize(
    ("units", "refused"),
    [([0x68, 0x69], False), ([0xD83D, 0xDE00], False), ([0xD83D], True), ([0xDE00, 0xD83D], True)],
    ids=["text", "a pair", "half a pair", "a pair the wrong way round"],
)
def test_lone_surrogates_are_refused(units: list[int], refused: bool, driver: Driver) -> None:
    assert driver.ask("text", utf16=units) == {"refused": refused}


def test_ids_rise_with_time(alone: Driver) -> None:
    ids = [alone.ask("id")["id"] for _ in range(3)]
    assert ids == sorted(set(ids))
    found: Any = [uuid.UUID(one) for one in ids]
    assert {one.version for one in found} == {7}
    assert {one.variant for one in found} == {uuid.RFC_4122}
