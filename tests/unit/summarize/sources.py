"""Sources of summaries for tests: talks, and the work of an agent with tools."""

from __future__ import annotations

import json

from contextengine_server.summarize import SourceMessage, SummaryRequest, SummaryResult, extract
from contextengine_server.summarize.request import SourceCall, SourceResult
from contextengine_server.tokens import TokenCounter

COUNT = TokenCounter("o200k_base").count_text
DAY_MS = 24 * 60 * 60 * 1000


class Work:
    """The work of an agent, message by message."""

    def __init__(self) -> None:
        self.messages: list[SourceMessage] = []

    def says(self, role: str, text: str, time_ms: int | None = None, name: str = "") -> Work:
        """Somebody says something."""
        self.messages.append(SourceMessage(role, text, len(self.messages) + 1, name, time_ms))
        return self

    def does(
        self, tool: str, given: dict[str, object] | str, result: str, *, failed: bool = False
    ) -> Work:
        """The agent uses a tool, and gets its result."""
        arguments = given if isinstance(given, str) else json.dumps(given)
        number = len(self.messages) + 1
        call = SourceCall("call", tool, arguments)
        self.messages.append(SourceMessage("assistant", "", number, calls=(call,)))
        answer = SourceResult("call", tool, result, failed)
        self.messages.append(SourceMessage("tool", "", number + 1, tool, results=(answer,)))
        return self

    def summary(self, target: int) -> str:
        """Its extractive summary, which keeps to its size."""
        return made(self.messages, target).text


def made(messages: list[SourceMessage], target: int) -> SummaryResult:
    """The extractive summary of messages, which keeps to its size."""
    tokens = sum(len(message.whole) for message in messages) // 3
    request = SummaryRequest(tuple(messages), tokens, target)
    result = extract(request, COUNT)
    assert result.tokens == COUNT(result.text) <= target
    assert result == extract(request, COUNT)
    return result
