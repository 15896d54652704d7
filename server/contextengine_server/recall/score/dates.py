"""Dates that a query names: what was said then counts a little more.

A talk is remembered by its days: "what did she say on 8 May 2023". A date is a hint and no filter,
since what happened on a day is often told on another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from contextengine_server.store.search import Match

DATED = 0.1
"""What the date of a message adds to its score, of that score. Modest: it only orders what matches
about as well."""

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_NAME = "|".join(f"{month}|{month[:3]}" for month in _MONTHS) + "|sept"
_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d?)(?:-(?P<day>\d\d?))?\b")
_SPOKEN = re.compile(
    rf"\b(?:(?P<day>\d\d?)(?:st|nd|rd|th)?(?: of)? )?(?P<name>{_NAME})\b\.?"
    r"(?: (?P<behind>\d\d?)(?:st|nd|rd|th)?\b(?!:))?(?:,? (?P<year>(?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\bin (?P<year>(?:19|20)\d\d)\b", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MODAL = frozenset(("may", "mar", "march"))
"""Words of their own: months only beside a day, a year or `in`."""


class Date(msgspec.Struct, frozen=True):
    """A date, or the part of one that is named; 0: it is not."""

    year: int = 0
    month: int = 0
    day: int = 0

    def holds(self, time_ms: int) -> bool:
        """True for a moment on it, in UTC."""
        try:
            at = _EPOCH + timedelta(milliseconds=time_ms)
        except OverflowError:  # a harness may give any time
            return False
        named = ((self.year, at.year), (self.month, at.month), (self.day, at.day))
        return all(wanted in (0, there) for wanted, there in named)


def dates_in(text: str) -> list[Date]:
    """The dates that a query names, each once."""
    found = [
        Date(int(match["year"]), int(match["month"]), int(match["day"] or 0))
        for match in _ISO.finditer(text)
    ]
    for match in _SPOKEN.finditer(text):
        name, year = match["name"].lower(), int(match["year"] or 0)
        day = int(match["day"] or match["behind"] or 0)
        led = text[: match.start()].lower().endswith(("in ", "since ", "during "))
        if year or day or led or name not in _MODAL:
            month = next(at for at, one in enumerate(_MONTHS, 1) if one.startswith(name))
            found.append(Date(year, month, day))
    found += [Date(int(match["year"])) for match in _YEAR.finditer(text)]
    return list(dict.fromkeys(found))


def dated(
    scored: Sequence[tuple[float, Match]], dates: Sequence[Date]
) -> list[tuple[float, Match]]:
    """The scores with what the dates of the messages add."""
    if not dates:
        return list(scored)
    return [
        (
            score * (1 + DATED)
            if match.time_ms is not None and any(date.holds(match.time_ms) for date in dates)
            else score,
            match,
        )
        for score, match in scored
    ]
