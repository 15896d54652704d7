"""Conversions from and to the formats of providers and harnesses, and reading files of
conversations."""

from .ai_sdk import from_ai_sdk
from .anthropic import from_anthropic
from .gemini import from_gemini
from .langchain import from_langchain
from .node import FormatError
from .openai import from_openai, to_openai
from .pi import from_pi
from .pydantic_ai import from_pydantic_ai
from .responses import from_responses
from .session_files import EarlierName, HostSummary, ModelUpdate, Transcript
from .to_ai_sdk import to_ai_sdk
from .to_anthropic import to_anthropic
from .to_gemini import to_gemini
from .to_langchain import to_langchain
from .to_pi import to_pi, to_pi_entries
from .to_pydantic_ai import to_pydantic_ai
from .to_responses import to_responses
from .transcript import TranscriptError, read_transcript

__all__ = [
    "EarlierName",
    "FormatError",
    "HostSummary",
    "ModelUpdate",
    "Transcript",
    "TranscriptError",
    "from_ai_sdk",
    "from_anthropic",
    "from_gemini",
    "from_langchain",
    "from_openai",
    "from_pi",
    "from_pydantic_ai",
    "from_responses",
    "read_transcript",
    "to_ai_sdk",
    "to_anthropic",
    "to_gemini",
    "to_langchain",
    "to_openai",
    "to_pi",
    "to_pi_entries",
    "to_pydantic_ai",
    "to_responses",
]
