"""The words by which sentences are told apart, a module a language. All of them are tried on every
sentence: people mix languages."""

from .chinese import CHINESE
from .english import ENGLISH
from .language import Language

__all__ = ["CHINESE", "ENGLISH", "LANGUAGES", "Language"]

LANGUAGES = (ENGLISH, CHINESE)
