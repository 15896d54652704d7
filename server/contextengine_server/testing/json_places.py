"""Values in JSON by their places, for suites that damage what was rendered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

JsonPlace = tuple[str | int, ...]
"""Where a value stands: keys, and indexes in lists."""


def texts(value: Any, place: JsonPlace = ()) -> Iterator[tuple[JsonPlace, str]]:
    """Every text in a JSON value, in order, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from texts(inner, (*place, index))


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from objects(inner)


def keys_of(place: JsonPlace) -> tuple[str, ...]:
    """A place without the indexes in it: the same for every entry of a list."""
    return tuple(key for key in place if isinstance(key, str))


def with_value(body: Any, place: JsonPlace, value: Any) -> Any:
    """A copy of the body with another value at a place."""
    copied = json.loads(json.dumps(body))
    at = copied
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return copied


def without_entry(body: Any, place: JsonPlace) -> Any:
    """A copy of the body without the entry of a list."""
    copied = json.loads(json.dumps(body))
    at = copied
    for key in place[:-1]:
        at = at[key]
    del at[place[-1]]
    return copied


def turned_round(body: Any, place: JsonPlace) -> Any:
    """A copy of the body whose outermost list on the way to a place is turned round."""
    outer = place[: next(at for at, key in enumerate(place) if isinstance(key, int))]
    at = body
    for key in outer:
        at = at[key]
    return with_value(body, outer, at[::-1]) if outer else at[::-1]
