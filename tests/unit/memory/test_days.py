"""Days that are named from where the speaker stands: their dates, by the day on which it was
said."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.memory.extraction.days import dated, day_of_ms
from contextengine_server.memory.extraction.extract import facts_in

WEDNESDAY = date(2026, 3, 4)


def found(text: str, said_on: date | None = WEDNESDAY) -> list[str]:
    return [fact.line for fact in facts_in("user", text, said_on=said_on)]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("The deadline is next Tuesday.", "deadline: 2026-03-10 (next Tuesday)"),
        ("My dentist appointment is tomorrow at 3 pm.",
         "dentist appointment: 2026-03-05 (tomorrow at 3 pm)"),
        ("We launch tomorrow.", "launch: 2026-03-05 (tomorrow)"),
        ("I'm flying to Berlin next Friday.", "flying to berlin: 2026-03-13 (next Friday)"),
        ("I'm getting married next Sunday.", "getting married: 2026-03-15 (next Sunday)"),
        ("I have a meeting with Ann on Thursday.", "meeting: 2026-03-05 (Thursday)"),
        ("We have a call tomorrow morning", "call: 2026-03-05 (tomorrow morning)"),
        ("Our demo is in two weeks.", "demo: 2026-03-18 (in two weeks)"),
        ("The release is set for the day after tomorrow, please plan for it.",
         "release: 2026-03-06 (the day after tomorrow)"),
        ("My flight is this Saturday at 9:30 am",
         "flight: 2026-03-07 (this Saturday at 9:30 am)"),
        ("We will go live on Monday next week.", "go live: 2026-03-09 (Monday next week)"),
        ("会议定在下周二。", "会议: 2026-03-10 (下周二)"),
        ("截止日期是后天", "截止日期: 2026-03-06 (后天)"),
        ("我明天要去北京", "去北京: 2026-03-05 (明天)"),
        ("我下周五有一个面试", "面试: 2026-03-13 (下周五)"),
        ("交付时间改到3天后", "交付时间: 2026-03-07 (3天后)"),
        ("截止日期是两周后", "截止日期: 2026-03-18 (两周后)"),
    ],
)  # fmt: skip
def test_a_day_has_its_date_by_when_it_was_said(text: str, fact: str) -> None:
    assert found(text) == [f"date: {fact}"]
    assert found(text, None) == [], "of a message without a time nothing is known"


@pytest.mark.parametrize(
    "text",
    [
        "The interview is on Wednesday.",  # said on one: which?
        "The store is closed tomorrow.",
        "Remind me tomorrow to call Bob.",
        "I have a question today.",
        "Could we move it to tomorrow?",
        "If the demo is tomorrow, we lose.",
        "Tom said the deadline is tomorrow.",
        "The plan is tomorrow to go.",
        "I want to change my flight to tomorrow.",
    ],
)
def test_in_doubt_no_day_is_found(text: str) -> None:
    assert [line for line in found(text) if line.startswith("date:")] == []


@pytest.mark.parametrize(
    ("said", "on", "day"),
    [
        ("next Tuesday", date(2026, 3, 2), "2026-03-10"),
        ("next Tuesday", date(2026, 3, 3), "2026-03-10"),
        ("this Tuesday", date(2026, 3, 3), "2026-03-03"),
        ("the coming Tuesday", date(2026, 3, 3), "2026-03-10"),
        ("Tuesday", date(2026, 3, 4), "2026-03-10"),
        ("tomorrow", date(2026, 12, 31), "2027-01-01"),
        ("tomorrow", date(2028, 2, 28), "2028-02-29"),
        ("下下周日", date(2026, 3, 2), "2026-03-22"),
        ("这周一", date(2026, 3, 4), "2026-03-02"),
        ("周五", date(2026, 3, 4), "2026-03-06"),
    ],
)
def test_a_week_begins_on_monday(said: str, on: date, day: str) -> None:
    assert dated(said, on) == f"{day} ({said})"


def test_a_time_that_no_calendar_has_is_no_day() -> None:
    assert day_of_ms(1_772_582_400_000) == date(2026, 3, 4)
    assert day_of_ms(1_772_582_399_999) == date(2026, 3, 3)
    assert [day_of_ms(each) for each in (None, 10**18, -(10**18))] == [None] * 3
    assert dated("tomorrow", date.max) == ""


@given(st.text(max_size=80), st.dates())
def test_no_text_breaks_it(text: str, on: date) -> None:
    found(f"The demo is {text}", on)
    dated(text, on)
