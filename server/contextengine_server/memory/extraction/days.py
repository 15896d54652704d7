"""Days that are named from where one stands, `tomorrow` or `next Tuesday`: their dates, by the day
on which it was said.

A week begins on Monday. `Next Tuesday` is that of the week after, `this Tuesday` and `Tuesday` the
one that comes; what was meant is kept beside the date. The day is that of UTC: in which zone
somebody spoke is not known.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = ("a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WEEKDAY = f"(?:{'|'.join(_WEEKDAYS)})"
_NUMBER = rf"(?:\d{{1,3}}|{'|'.join(_NUMBERS)})"
_CLOCK = r"(?: (?:at )?\d{1,2}(?::\d\d)?(?: ?[ap]\.?m\b\.?)?| at noon)"
SOON = (
    r"(?:(?:(?:the day after tomorrow|today|tonight|tomorrow)"
    rf"|(?:this|next|the coming|this coming) {_WEEKDAY}|{_WEEKDAY}(?: next week| this week)?"
    rf"|in {_NUMBER} (?:days?|weeks?)|{_NUMBER} (?:days?|weeks?) from (?:now|today))"
    rf"(?: (?:morning|afternoon|evening|night))?{_CLOCK}?)"
)
"""A day in English, and the hour where it is said."""

_DIGITS_ZH = "零一二三四五六七八九十"
_WEEK_ZH = r"(?:周|星期|礼拜)"
_COUNT_ZH = rf"(?:\d{{1,3}}|[{_DIGITS_ZH}两])"
SOON_ZH = (
    rf"(?:(?:大后天|后天|明天|明晚|今天|今晚|(?:下下?|这|本)?个?{_WEEK_ZH}[一二三四五六日天]"
    rf"|{_COUNT_ZH}(?:天|周|个?(?:星期|礼拜))(?:之|以)?后)"
    r"(?:早上|上午|中午|下午|晚上)?(?:\d{1,2}(?:点半?|:\d\d))?)"
)
"""The same in Chinese."""

_NEAR = {
    "today": 0, "tonight": 0, "tomorrow": 1, "the day after tomorrow": 2,
    "今天": 0, "今晚": 0, "明天": 1, "明晚": 1, "后天": 2, "大后天": 3,
}  # fmt: skip
_BY_NAME = re.compile(r"|".join(sorted(_NEAR, key=len, reverse=True)))
_IN = re.compile(rf"(?:in )?(?P<count>{_NUMBER}) (?P<unit>day|week)")
_ON = re.compile(
    rf"(?P<which>this coming|the coming|this|next)? ?(?P<day>{_WEEKDAY})"
    r"(?: (?P<week>next|this) week)?"
)
_IN_ZH = re.compile(rf"(?P<count>{_COUNT_ZH})(?P<unit>天|周|个?(?:星期|礼拜))(?:之|以)?后")
_ON_ZH = re.compile(rf"(?P<which>下下|下|这|本)?个?{_WEEK_ZH}(?P<day>[一二三四五六日天])")


def day_of_ms(time_ms: int | None) -> date | None:
    """The day of a moment; None: it is not known, or no calendar has it."""
    try:
        return None if time_ms is None else datetime.fromtimestamp(time_ms / 1_000, UTC).date()
    except (OverflowError, OSError, ValueError):  # a caller's timestamp may say anything
        return None


def dated(said: str, on: date) -> str:
    """A day as it was said on another day, with its date before it; empty: it is not clear which
    day is meant."""
    ahead = _ahead(" ".join(said.casefold().split()), on.weekday())
    try:
        return "" if ahead is None else f"{on + timedelta(days=ahead)} ({said})"
    except OverflowError:
        return ""


def _ahead(said: str, today: int) -> int | None:
    """In how many days it is; None: that is not clear."""
    if found := _BY_NAME.match(said):
        return _NEAR[found[0]]
    if found := _IN.match(said):
        count = found["count"]
        number = int(count) if count.isdigit() else max(1, _NUMBERS.index(count))
        return number * (7 if found["unit"] == "week" else 1)
    if found := _IN_ZH.match(said):
        count = found["count"]
        number = int(count) if count.isdigit() else _DIGITS_ZH.find(count)
        return (2 if count == "两" else number) * (1 if found["unit"] == "天" else 7)
    if found := _ON.match(said):
        which = "next week" if found["week"] == "next" else found["week"] or found["which"] or ""
        return _on_weekday(_WEEKDAYS.index(found["day"]), today, which)
    if found := _ON_ZH.match(said):
        day = 6 if found["day"] in "日天" else "一二三四五六".index(found["day"])
        weeks = {"下": 1, "下下": 2, "这": 0, "本": 0}.get(found["which"] or "")
        return _on_weekday(day, today, "") if weeks is None else day - today + 7 * weeks
    return None


def _on_weekday(day: int, today: int, which: str) -> int | None:
    """By how it is named: which Tuesday a Tuesday's `Tuesday` is, is not clear."""
    if which in ("next", "next week"):
        return day - today + 7
    ahead = (day - today) % 7
    if which in ("the coming", "this coming"):
        return ahead or 7
    return ahead if ahead or which else None
