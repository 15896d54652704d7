"""Where an answer ended, in a token that says it all. Whoever sends it back with another question
is told so."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec
import orjson

from contextengine_server.errors import InvalidField

_NUMBER = 2**62


def digest_of(*asked: Any) -> str:
    """Names a question, so that a token is known to belong to it."""
    return blake2b(orjson.dumps(asked), digest_size=6).hexdigest()


def token_of(digest: str, numbers: Sequence[int]) -> str:
    """The token for numbers."""
    return token_with(digest, *numbers)


def token_with(digest: str, *content: Any) -> str:
    """The token for anything that JSON holds, and structs that are arrays."""
    raw = msgspec.json.encode([digest, *content])
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def numbers_in(token: str, digest: str, count: int, field: str = "page_token") -> list[int]:
    """The numbers of a token. Raises InvalidField."""
    numbers = content_of(token, digest, field)
    given = [number for number in numbers if type(number) is int and 0 <= number < _NUMBER]
    if len(given) != len(numbers) or len(given) != count:
        raise foreign_page(field)
    return given


def content_of(token: str, digest: str, field: str = "page_token") -> list[Any]:
    """What a token holds. Raises InvalidField."""
    try:
        known, *content = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, TypeError, binascii.Error) as error:
        raise foreign_page(field) from error
    if not isinstance(known, str):
        raise foreign_page(field)
    if known != digest:
        raise InvalidField(
            field,
            "belongs to another request: send it with the request that it came from, unchanged",
        )
    return list(content)


def foreign_page(field: str = "page_token") -> InvalidField:
    """The error for a token that this service did not give out."""
    return InvalidField(field, "is not one of this service's: give next_page_token as it was")
