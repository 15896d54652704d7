"""One interface for every agent, so that one table of scenarios holds for all."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

from contextengine import AsyncClient
from contextengine.types import SessionRef

from .brain import Brain

SYSTEM = "You are a careful assistant."
WINDOW = 18_000
"""Tokens, so that some turns do not fit."""


def renamed(text: str) -> str:
    """With other ids of calls: those that the model gave are `call_1_0` or `toolu_1_0`."""
    return re.sub(r"\b(call|toolu|c)_(\d+)_(\d+)\b", r"\1x\2x\3", text)


class Host(ABC):
    """An agent in one conversation, whose framework runs as it does for a user."""

    name: ClassVar[str]
    takes_back: ClassVar[bool] = True
    """Whether a user can take a turn back."""
    forks: ClassVar[bool] = True
    """Whether a conversation can go on in two."""
    forgets_failed: ClassVar[bool] = False
    """Whether what the user said before the model failed is no part of the conversation."""
    keeps_list: ClassVar[bool] = True
    """Whether the conversation is the framework's own, and not the service's."""
    assembles: ClassVar[bool] = True
    """Whether the service decides what the model sees. Else it records, and the model asks."""
    here: ClassVar[bool] = True
    """Whether it runs within this process, where its calls to the service are counted."""
    tries_again: ClassVar[bool] = True
    """Whether a turn whose request is too long is answered all the same. Else it fails, and the
    next one is."""

    def __init__(self, address: str, brain: Brain) -> None:
        """address: of the service."""
        self.address, self.brain = address, brain

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Host]:
        """The agent, as long as it runs."""
        await self.start()
        try:
            yield self
        finally:
            await self.end()

    def client(self) -> AsyncClient:
        """A client as the documents say that it is made."""
        return AsyncClient(self.address, breaker=True)

    @abstractmethod
    async def start(self) -> None:
        """Begins to run, from what was kept of the conversation."""

    @abstractmethod
    async def stop(self) -> None:
        """Ends. What a user would find again afterwards is kept."""

    async def end(self) -> None:
        """Ends for good."""
        await self.stop()

    @abstractmethod
    async def say(self, words: str) -> None:
        """A turn. Raises whatever the framework raises where the model fails."""

    @abstractmethod
    async def transcript(self) -> list[str]:
        """The texts of the conversation as the host has it, in order."""

    @property
    @abstractmethod
    def ref(self) -> SessionRef:
        """The session in the service."""

    def own(self, text: str) -> bool:
        """Whether the host says this for itself: it is no part of what was said."""
        return False

    async def compact(self) -> None:
        """Has the host compact the conversation by itself, as its user asks for it."""
        raise NotImplementedError

    async def undo(self) -> None:
        """Takes the last turn back."""
        raise NotImplementedError

    async def rewrite(self) -> None:
        """Names the calls of the conversation anew and drops what hosts keep for themselves beside
        a message, as hosts do that mend their list for another provider."""
        raise NotImplementedError

    async def fork(self) -> None:
        """Goes on in a copy of the conversation; what is said now is said there."""
        raise NotImplementedError
