"""What models answer, read so that only a whole summary is taken for one."""

from __future__ import annotations

import re
from collections.abc import Callable

from contextengine_server.summarize.guards.spend import MOST
from contextengine_server.summarize.models.prompts import SummaryPrompt
from contextengine_server.summarize.request import SummarizerFailed, TooLong, Unacceptable

MAX_ANSWER_CHARS = 100_000
"""No summary is longer: a model that goes on beyond this is not listened to."""

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,127}")
_THOUGHTS = re.compile(r"\s*<(think|thinking|thought|reasoning)>")


class ModelAnswer:
    """What a service answered, in one piece or in many."""

    def __init__(self) -> None:
        self.began = False
        self._text: list[str] = []
        self._chars = 0
        self._chosen = False
        self._refused = False
        self.finish: object = None
        self.model = ""
        self.id = ""
        self._usage: object = None

    def add(self, data: object) -> None:
        """Takes a completion, or a chunk of one, as JSON values. Raises Unacceptable where it goes
        on for ever."""
        self.began = True
        if not isinstance(data, dict):
            raise ValueError("not an object")
        self._usage = data.get("usage") or self._usage
        self.model, self.id = (
            name_in(data.get("model")) or self.model,
            name_in(data.get("id")) or self.id,
        )
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        self._chosen = True
        self.finish = choice.get("finish_reason") or self.finish
        said = choice.get("delta") or choice.get("message")
        if isinstance(said, dict):
            self._refused |= bool(said.get("refusal"))
            content = said.get("content")
            if isinstance(content, str):
                self._text.append(content)
                self._chars += len(content)
        if self._chars > MAX_ANSWER_CHARS:
            raise Unacceptable(f"longer than {MAX_ANSWER_CHARS:,} characters")

    def summary(self) -> str:
        """The text of a complete answer. Raises SummarizerFailed for any other."""
        if not self.began:
            raise SummarizerFailed(
                "no stream was answered; for a service that has none, set stream to false"
            )
        if not self._chosen:
            raise Unacceptable("no choices")
        if self._refused:
            raise Unacceptable("refusal")
        match self.finish:
            case "stop":
                return without_thoughts("".join(self._text))
            case "length":
                raise TooLong("cut off at the limit on its length", kind="truncated")
            case "content_filter":
                raise SummarizerFailed("stopped by the service's content filter")
            case None:
                raise SummarizerFailed("the answer ended without its end", kind="connection")
        raise Unacceptable(f"finish reason {code_in(self.finish) or 'unknown'}")

    def spent(self, prompt: SummaryPrompt, count: Callable[[str], int]) -> int:
        """Tokens of prompt and answer, as the service reports them, else as they are counted
        here."""
        return self._used("total_tokens") or sum(self.tokens(prompt, count))

    def tokens(self, prompt: SummaryPrompt, count: Callable[[str], int]) -> tuple[int, int]:
        """Tokens of the prompt, and of the answer, in the same way."""
        return (
            self._used("prompt_tokens") or prompt.tokens,
            self._used("completion_tokens") or count("".join(self._text)[:MAX_ANSWER_CHARS]),
        )

    def _used(self, name: str) -> int:
        """What the service says it used; 0 where it does not say, or nothing sensible."""
        said = self._usage.get(name) if isinstance(self._usage, dict) else None
        return said if type(said) is int and 0 < said <= MOST else 0


def without_thoughts(text: str) -> str:
    """Without the thoughts that open models write before their answer; nothing where they never
    come to one."""
    while match := _THOUGHTS.match(text):
        _, closed, text = text.partition(f"</{match[1]}>")
        if not closed:
            return ""
    return text


def code_in(value: object) -> str:
    """A word by which a service names an error or an end; empty where it is none, and may be text
    of anybody."""
    return value if isinstance(value, str) and _CODE.fullmatch(value) else ""


def name_in(value: object) -> str:
    """The name of a model or an answer; empty where it is none."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else ""
