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


def within(seconds: float, work: Callable[[], T]) -> T:
    """What the work answers or raises. Raises TookTooLong; the work goes on by itself then, in a
    thread that keeps no process alive: Python cannot end it."""
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # told to whoever waits
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name="plugin")
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TookTooLong(seconds)
    if errors:
        raise errors[0]
    return answers[0]
