"""What the model of every agent does, whatever framework asks it: told by the words of the user."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import JSONResponse, Response

from tests.hosts.providers import Answer

FAILS = "[the model fails]"
"""Words of the user upon which the model answers with an error."""
BRIEFLY = "[briefly]"
"""Words of the user upon which the model says little: without the service what may be shown is
bounded by its bytes, not counted."""
NOTHING = "nothing"
"""What the tool cannot look up."""


LENGTH = "prompt is too long|exceeds the maximum number of tokens"
"""How providers say that a request is too long, as an expression: Anthropic, Google."""


class ModelFailed(Exception):
    """The model answered with an error."""

    code = "server_error"


class TooLong(ModelFailed):
    """The model does not take as much. As Anthropic says it where it names no number."""

    code = "context_length_exceeded"

    def __init__(self) -> None:
        super().__init__("prompt is too long")


def calling(*wanted: str) -> str:
    """Words of the user upon which the model calls the tool for each of these, all at once."""
    return f"[look up {', '.join(wanted)}]"


def searching(wanted: str) -> str:
    """Words of the user upon which the model searches for what it no longer sees."""
    return f"[search for {wanted}]"


def found(of: str) -> str:
    """What the tool says."""
    return f"found {of}: " + "word " * 150


@dataclass
class Brain:
    """The model. It remembers the texts of each request, in order."""

    seen: list[list[str]] = field(default_factory=list)
    most: float = math.inf
    """Characters that a request may have."""

    def answer(self, texts: list[str], asked: bool) -> Answer:
        """The answer to a request of these texts. asked: whether the user spoke last. Raises
        ModelFailed."""
        self.seen.append(texts)
        if sum(map(len, texts)) > self.most:
            raise TooLong
        last = texts[-1] if texts else ""
        if asked and FAILS in last:
            raise ModelFailed("the model is down")
        wanted = re.search(r"\[look up (.*?)\]", last) if asked else None
        if wanted:
            calls = [{"of": one} for one in wanted[1].split(", ")]
            return Answer(calls=calls, thought="Hm.")
        wanted = re.search(r"\[search for (.*?)\]", last) if asked else None
        if wanted:
            return Answer(calls=[{"query": wanted[1]}])
        little = any(BRIEFLY in text for text in texts[-4:])
        return Answer(f"Answer {len(self.seen)}: " + "well " * (3 if little else 400))

    def chat(self, number: int, given: Any) -> Answer | Response:
        """The answer to a request of Chat Completions or Responses."""
        rows = given.get("messages") or given["input"]
        texts = [text for row in rows for text in texts_of(row)]
        try:
            return self.answer(texts, rows[-1].get("role") == "user")
        except ModelFailed as error:
            told = {"message": str(error), "type": "invalid_request_error", "code": error.code}
            return JSONResponse({"error": told}, 400)

    def gemini(self, number: int, given: Any) -> Answer | Response:
        """The answer to a request of Gemini's."""
        parts = [part for row in given["contents"] for part in row.get("parts", ())]
        texts = [text for part in parts for text in texts_of_part(part)]
        last = given["contents"][-1]
        try:
            return self.answer(texts, any("text" in part for part in last["parts"]))
        except TooLong:
            told = "The input token count exceeds the maximum number of tokens allowed."
            status = "INVALID_ARGUMENT"
        except ModelFailed as error:
            told, status = str(error), "FAILED_PRECONDITION"
        return JSONResponse({"error": {"code": 400, "message": told, "status": status}}, 400)


def texts_of_part(part: Any) -> list[str]:
    """The texts of a part of Gemini's."""
    if "functionResponse" in part:
        return [str(one) for one in part["functionResponse"]["response"].values()]
    return [part["text"]] if part.get("text") and not part.get("thought") else []


def texts_of(row: Any) -> list[str]:
    """The texts of an element of a request; instructions are not looked at."""
    if row.get("role") in ("system", "developer"):
        return []
    content = row.get("content", row.get("output"))
    if isinstance(content, str):
        return [content] if content else []
    pieces = content if isinstance(content, list) else []
    # A result of Anthropic's is a piece of what the user says.
    said = [piece.get("text") or piece.get("content") for piece in pieces]
    # And one of an MCP server has pieces of its own.
    flat = [one for text in said for one in (text if isinstance(text, list) else [{"text": text}])]
    return [one["text"] for one in flat if isinstance(one.get("text"), str) and one["text"]]
