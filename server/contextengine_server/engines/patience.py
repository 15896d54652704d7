"""Waiting for code of others, for so long and no longer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LOAD_S = 10.0
"""How long an engine may take to be imported and made: a server that starts waits for it."""


class TookTooLong(Exception):
    """Code of others did not come back."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"did not come back within {seconds:g} s")


class WantsToExit(Exception):
    """Code of others raised what would end the process, or the thread that asks it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(type(error).__name__)


def kind_of(error: BaseException) -> str:
    """What kind of error code of others raised. Its text may quote anything, and is for
    operators."""
    return str(error) if isinstance(error, WantsToExit) else type(error).__name__


def within(seconds: float, work: Callable[[], T]) -> T:
    """What the work answers or raises. Raises WantsToExit, and TookTooLong; the work goes on by
    itself then, in a thread that keeps no process alive: Python cannot end it."""
    answers: list[T] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            answers.append(work())
        except Exception as error:  # told to whoever waits
            errors.append(error)
        except BaseException as error:
            errors.append(WantsToExit(error))

    thread = threading.Thread(target=run, daemon=True, name="plugin")
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TookTooLong(seconds)
    if errors:
        raise errors[0]
    return answers[0]
