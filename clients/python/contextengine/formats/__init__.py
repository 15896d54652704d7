"""Conversions from and to the formats of providers and harnesses, and reading files of
conversations."""

from .anthropic import from_anthropic
from .gemini import from_gemini
from .node import FormatError
from .openai import from_openai, to_openai
from .pi import from_pi
from .responses import from_responses
from .session_files import HostSummary, ModelUpdate, Transcript
from .to_anthropic import to_anthropic
from .to_gemini import to_gemini
from .to_responses import to_responses
from .transcript import TranscriptError, read_transcript

__all__ = [
    "FormatError",
    "HostSummary",
    "ModelUpdate",
    "Transcript",
    "TranscriptError",
    "from_anthropic",
    "from_gemini",
    "from_openai",
    "from_pi",
    "from_responses",
    "read_transcript",
    "to_anthropic",
    "to_gemini",
    "to_openai",
    "to_responses",
]
