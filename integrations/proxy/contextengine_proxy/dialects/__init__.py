"""The APIs that are spoken. A dialect is one record: what to read of a request, how to write what
the service shows, how to read a reply, and how an error of ours is said."""

from . import anthropic, chat, gemini, responses
from .dialect import Dialect, Reply

DIALECTS: tuple[Dialect, ...] = (
    chat.DIALECT,
    responses.DIALECT,
    anthropic.DIALECT,
    gemini.DIALECT,
)


def dialect_of(path: str) -> Dialect | None:
    """The dialect that is spoken at this path. None: another one, or no conversation."""
    return next(filter(None, (one.at(path) for one in DIALECTS)), None)


__all__ = ["DIALECTS", "Dialect", "Reply", "dialect_of"]
