"""The language that somebody writes in, as far as the script alone tells it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_CHARS = 20_000
"""How much is looked at."""

_SHARE = 5
"""A script counts from a fifth of the letters on: the rest is code, names and logs."""

_LETTERS = re.compile(r"[^\W\d_]")
_HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SCRIPTS = {
    tag: re.compile(f"[{letters}]")
    for tag, letters in {
        "ko": r"\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
        "zh": _HAN,
        "th": r"\u0e00-\u0e7f",
        "el": r"\u0370-\u03ff",
        "he": r"\u0590-\u05ff",
        "hy": r"\u0530-\u058f",
        "ka": r"\u10a0-\u10ff",
    }.items()
}
"""Scripts that one language has to itself. Latin, Cyrillic, Arabic and Devanagari serve many: a
model tells these apart."""

_KANA = re.compile(r"[\u3041-\u30ff]")
_KANA_SHARE = 10
"""Han with one kana in ten is Japanese: Chinese has none but in quotations."""


def language_of(texts: Iterable[str]) -> str:
    """The BCP 47 tag of the texts' language; empty where their script does not tell it."""
    text = _beginning(texts)
    if text.isascii():
        return ""
    letters = len(_LETTERS.findall(text))
    for tag, script in _SCRIPTS.items():
        found = len(script.findall(text))
        kana = len(_KANA.findall(text)) if tag == "zh" else 0
        if found + kana and (found + kana) * _SHARE >= letters:
            return "ja" if kana * _KANA_SHARE >= found + kana else tag
    return ""


def written_in(text: str, tag: str) -> bool:
    """False where not one letter of a text is of the language's script. True for a language whose
    script tells nothing."""
    script = _SCRIPTS.get("zh" if tag == "ja" else tag)
    if script is None:
        return True
    return bool(script.search(text) or (tag == "ja" and _KANA.search(text)))


def _beginning(texts: Iterable[str]) -> str:
    taken: list[str] = []
    left = MAX_CHARS
    for text in texts:
        if left <= 0:
            break
        taken.append(text[:left])
        left -= len(text)
    return "\n".join(taken)
