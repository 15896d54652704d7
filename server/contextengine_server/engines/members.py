"""Whether what a factory made has all of the contract, and each member is of its kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from contextengine_server.context.plan import Declared

from .contract import Tools
from .registration import InvalidEngine, Registration

Tokens = Annotated[int, msgspec.Meta(gt=0)]


class EngineFacts(msgspec.Struct, frozen=True):
    """What an engine says of itself; see `Engine`."""

    id: str
    name: str
    version: str
    owns_compaction: bool
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)]
    declared: Declared
    defers: bool
    notices: bool
    chunk: Tokens | None
    summary_tokens: Tokens
    tools: Tools
    fingerprint: str


METHODS = ("reach", "addition", "plan", "saved", "due", "limit", "compaction", "dispose")
"""What an engine is asked."""


class WrongMember(Exception):
    """What is wrong with one member."""


def check_engine(registration: Registration, made: Any) -> None:
    """Raises InvalidEngine, listing everything that is wrong with what the factory made."""
    wrong = list(_wrong(registration, made))
    if wrong:
        raise InvalidEngine(
            f"engine {registration.id!r} of {registration.owner} is not a valid engine:"
            f" {', '.join(wrong)}"
        )


def _wrong(registration: Registration, made: Any) -> Iterator[str]:
    for field in msgspec.structs.fields(EngineFacts):
        try:
            fact = _read(made, field.name)
            _check_kind(field.name, fact, field.type)
            _check_said(field.name, fact, registration.id)
        except WrongMember as why:
            yield str(why)
    try:
        options = _read(made, "options")
        if not isinstance(options, registration.options):
            yield f"options is a {type(options).__name__}, not a {registration.options.__name__}"
    except WrongMember as why:
        yield str(why)
    for name in METHODS:
        try:
            if not callable(_read(made, name)):
                yield f"{name} cannot be called"
        except WrongMember as why:
            yield str(why)


def _read(made: Any, name: str) -> Any:
    """A member. Raises WrongMember where there is none, or where asking for it raises."""
    try:
        return getattr(made, name)
    except AttributeError:
        raise WrongMember(f"missing {name}") from None
    except Exception as error:
        raise WrongMember(f"{name} raises {type(error).__name__}") from error


def _check_kind(name: str, fact: Any, kind: Any) -> None:
    """Raises WrongMember unless a fact is of its kind, its parts included."""
    if isinstance(kind, type) and not isinstance(fact, kind) and issubclass(kind, msgspec.Struct):
        raise WrongMember(f"{name} is a {type(fact).__name__}, not a {kind.__name__}")
    try:
        msgspec.convert(msgspec.to_builtins(fact), kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise WrongMember(f"{name}: {error}") from error


def _check_said(name: str, fact: Any, engine_id: str) -> None:
    """Raises WrongMember where an engine is not the one that was registered, or says nothing."""
    if isinstance(fact, str) and not fact.strip():
        raise WrongMember(f"blank {name}")
    if name == "id" and fact != engine_id:
        raise WrongMember(f"its own id is {fact!r}")
