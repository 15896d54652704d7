"""What is known of an engine that failed."""

from __future__ import annotations

from contextengine_server.context.laws.case import Violation
from contextengine_server.errors import DomainError

from .patience import kind_of


class EngineBroken(Exception):
    """An engine threw, answered something that is no answer, or its plan broke a law. The text can
    be shown to anybody; what the engine threw is the cause."""

    def __init__(self, engine_id: str, how: str, law: int = 0) -> None:
        super().__init__(how)
        self.engine_id = engine_id
        self.how = how
        self.law = law
        """The number of the law that broke; 0: it was none."""


def threw(engine_id: str, error: BaseException) -> EngineBroken:
    """What an engine's exception says: its type, and no more. Its text may quote what it choked on,
    and is for operators."""
    broken = EngineBroken(engine_id, kind_of(error))
    broken.__cause__ = error  # also where it is kept and not raised
    return broken


def lawless(engine_id: str, violation: Violation) -> EngineBroken:
    """What a plan that broke a law says."""
    return EngineBroken(engine_id, str(violation), violation.law)


def blamed(engine_id: str, error: Exception) -> EngineBroken:
    """What an exception says of the engine that was asked. Raises it again where it is about the
    request."""
    if isinstance(error, DomainError):
        raise error
    return error if isinstance(error, EngineBroken) else threw(engine_id, error)
