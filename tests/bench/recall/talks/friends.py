"""What two friends tell each other: topics with a fact in the opening and in each answer, and the
small talk around them.

A slot in braces is filled anew for each topic of a talk. Each half has words and sentences of its
own: what is fitted on one is measured on the other.
"""

from __future__ import annotations

from . import friends_fitted, friends_measured
from .topic import Topic

NAMES = (
    (("Nadia", "Tobias"), ("Priya", "Marcus"), ("Elena", "Joel"), ("Hanna", "Victor")),
    (("Sofia", "Desmond"), ("Keiko", "Brandon"), ("Amara", "Felix"), ("Ingrid", "Rafael")),
)

WHEN = (
    ("yesterday", "last Friday", "two weekends ago", "last Tuesday", "on Sunday", "last month"),
    ("the day before yesterday", "last Saturday", "a week ago", "this Monday", "last weekend"),
)

TOPICS: tuple[tuple[Topic, ...], ...] = friends_fitted.TOPICS, friends_measured.TOPICS

HELLOS = (
    (
        "Hey {other}! Long time no talk. How have you been?",
        "Hi {other}, good to see you! What's new?",
        "Hello {other}! How's everything going?",
    ),
    (
        "Hey {other}, how are you doing? It's been a while!",
        "Hi there, {other}! What have you been up to lately?",
        "Good to hear from you, {other}! Anything exciting going on?",
    ),
)

BYES = (
    (
        "Alright, take care, {other}! Talk to you soon!",
        "Bye {other}, let's catch up again next week!",
    ),
    (
        "Gotta run, {other}. Have a great one!",
        "It was lovely chatting, {other}. See you around!",
    ),
)
