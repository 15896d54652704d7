"""Tokens: counting text, estimating what is not text, what is known of models, and learning from
bills."""

from .calibration import Bill, Calibration, calibrate, from_difference
from .counter import TokenCounter
from .encodings import DEFAULT_ENCODING, ENCODINGS, CorruptRanks, UnknownEncoding
from .media import MESSAGE_TOKENS, NAME_TOKENS, REPLY_TOKENS, file_tokens, image_tokens
from .models import ModelProfile, plain_name, profile

__all__ = [
    "DEFAULT_ENCODING",
    "ENCODINGS",
    "MESSAGE_TOKENS",
    "NAME_TOKENS",
    "REPLY_TOKENS",
    "Bill",
    "Calibration",
    "CorruptRanks",
    "ModelProfile",
    "TokenCounter",
    "UnknownEncoding",
    "calibrate",
    "file_tokens",
    "from_difference",
    "image_tokens",
    "plain_name",
    "profile",
]
