"""The encodings that text is counted in, made from rank files inside the package: nothing is
downloaded."""

from __future__ import annotations

import hashlib
import threading
from importlib import resources

import msgspec
import tiktoken

DEFAULT_ENCODING = "o200k_base"
"""The reference encoding where none is configured: that of OpenAI's models since GPT-4o."""


class UnknownEncoding(ValueError):
    """An encoding that the package has no ranks for was asked for; the text lists those it has."""


class CorruptRanks(RuntimeError):
    """A rank file is not the published one: the installation is damaged and should be repeated."""


class _Definition(msgspec.Struct, frozen=True):
    """What makes an encoding: the sha256 of the published ranks as `scripts/pack_ranks.py` packs
    them, and how text is cut into pieces before merging."""

    sha256: str
    pattern: str


_ENCODINGS = {
    # Ranks and patterns are those of tiktoken (tiktoken_ext/openai_public.py, version 0.14), which
    # a test compares with what is published.
    "o200k_base": _Definition(
        sha256="21be86ee43e53a592c4dc0621c2eca9af6bc4c29df3c9a2161e452e4ecccab5d",
        pattern="|".join(
            [
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ]
        ),
    ),
    "cl100k_base": _Definition(
        sha256="ed0816e2b705c3b6474af6314071f4fdeebd9b5862af1ff3d3f9136711a8a00c",
        pattern="|".join(
            [
                r"'(?i:[sdmt]|ll|ve|re)",
                r"[^\r\n\p{L}\p{N}]?+\p{L}++",
                r"\p{N}{1,3}+",
                r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
                r"\s++$",
                r"\s*[\r\n]",
                r"\s+(?!\S)",
                r"\s",
            ]
        ),
    ),
}

ENCODINGS = tuple(_ENCODINGS)
"""The encodings that can be asked for."""

_loaded: dict[str, tiktoken.Encoding] = {}
_loading = threading.Lock()


def require_known(name: str) -> str:
    """Answers `name`, or raises UnknownEncoding."""
    if name not in _ENCODINGS:
        raise UnknownEncoding(f"no encoding {name!r}: known are {', '.join(ENCODINGS)}")
    return name


def load(name: str) -> tiktoken.Encoding:
    """The encoding `name`, made once a process: about a sixth of a second, mostly in
    tiktoken's own making of it.

    It knows no special tokens, so that their text counts as the plain text that it is here: a
    message that quotes `<|endoftext|>` controls nothing. Safe to call from any thread. Raises
    UnknownEncoding and CorruptRanks.
    """
    require_known(name)
    with _loading:
        encoding = _loaded.get(name)
        if encoding is None:
            encoding = _loaded[name] = _make(name, _ENCODINGS[name])
        return encoding


def _make(name: str, definition: _Definition) -> tiktoken.Encoding:
    content = resources.files(__package__).joinpath("ranks", f"{name}.msgpack").read_bytes()
    if hashlib.sha256(content).hexdigest() != definition.sha256:
        raise CorruptRanks(f"the ranks of {name} are damaged: install contextengine-server again")
    tokens = msgspec.msgpack.decode(content, type=list[bytes])
    ranks = {token: rank for rank, token in enumerate(tokens)}
    return tiktoken.Encoding(
        name, pat_str=definition.pattern, mergeable_ranks=ranks, special_tokens={}
    )
