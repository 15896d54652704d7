"""Talks made of seeded facts, and the questions that ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from ..memories import Question
from . import advice, friends, small
from .topic import Topic

HALVES = (0, 1)
"""What is fitted on the first is reported on the second."""
START_MS = 1_683_500_000_000
"""A day in May 2023."""
DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said."""

    role: str
    """`user` or `assistant`."""
    name: str
    text: str
    time_ms: int | None


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a talk."""

    question: Question
    turn: int
    """Index of the turn that answers it."""


@dataclass(slots=True)
class Talk:
    """A talk and what is asked about it."""

    name: str
    kind: str
    """`friends` or `assistant`."""
    turns: list[Turn] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    def say(self, role: str, name: str, text: str, time_ms: int | None) -> int:
        """Adds a turn; its index."""
        self.turns.append(Turn(role, name, text, time_ms))
        return len(self.turns) - 1


def made(half: int) -> list[Talk]:
    """The talks of a half: two of two friends, two with an assistant."""
    return [
        *(friends_talk(half, seed) for seed in range(2)),
        *(assistant_talk(half, seed) for seed in range(2)),
    ]


def friends_talk(half: int, seed: int) -> Talk:
    """Two friends over a year, 40 days with a talk each. In every other talk the second writes in
    the role of an assistant, as some hosts have it."""
    random = Random(f"friends {half} {seed}")
    talk = Talk(f"friends-{half}-{seed}", "friends")
    names = friends.NAMES[half][seed]
    topics = _shuffled(random, friends.TOPICS[half])
    told: set[tuple[str, str]] = set()
    time = START_MS
    for _ in range(40):
        time += random.randrange(3, 12) * DAY_MS
        first = random.randrange(2)
        roles = ("user", "assistant" if seed % 2 else "user")

        def say(who: int, *texts: str, time: int = time, roles: tuple[str, str] = roles) -> int:
            text = " ".join(filter(None, texts))
            return talk.say(roles[who], names[who], text, time)

        say(first, random.choice(friends.HELLOS[half]).format(other=names[1 - first]))
        for who in (1 - first, first):
            topic = next(topics)
            slots = _fresh(random, topic.slots, told) | {"when": random.choice(friends.WHEN[half])}
            about = topic.about
            musing = small.musing(random, half)
            turn = say(who, _maybe(random, musing), _put(topic.opening, slots))
            question = _put(topic.asked, slots | {"who": names[who]})
            talk.asked.append(Asked(Question(question, (slots_of(topic.answer, slots),)), turn))
            for ask, reply, question, answer in topic.more:
                say(1 - who, small.cheer(random, half, names[who], about), _put(ask, slots))
                musing = small.musing(random, half)
                turn = say(who, _put(reply, slots), _maybe(random, musing))
                question = _put(question, slots | {"who": names[who]})
                talk.asked.append(Asked(Question(question, (slots_of(answer, slots),)), turn))
            say(
                1 - who,
                small.cheer(random, half, names[who], about),
                small.musing(random, half),
            )
            say(who, small.cheer(random, half, names[1 - who], about))
        say(first, random.choice(friends.BYES[half]).format(other=names[1 - first]))
    return talk


def assistant_talk(half: int, seed: int) -> Talk:
    """A user who comes back to some matters for long; the assistant answers at length."""
    random = Random(f"assistant {half} {seed}")
    talk = Talk(f"assistant-{half}-{seed}", "assistant")
    time = START_MS
    told: set[tuple[str, str]] = set()
    for round_ in range(6):
        for matter in random.sample(advice.MATTERS[half], len(advice.MATTERS[half])):
            time += random.randrange(1, 9) * DAY_MS
            slots = _fresh(random, matter.slots, told)
            for place, (said, question, answer) in enumerate(matter.asks):
                turn = talk.say("user", "", _put(said, slots), time)
                if round_ == 0 or len(slots_of(answer, slots)) > 3:
                    asked = Question(_put(question, slots), (slots_of(answer, slots),))
                    talk.asked.append(Asked(asked, turn))
                tip = _put(matter.told[0], slots) if place == 1 else ""
                turn = talk.say("assistant", "", _answer(random, half, matter, tip), time)
                if tip:
                    answer = slots_of(matter.told[2], slots)
                    asked = Question(_put(matter.told[1], slots), (answer,))
                    talk.asked.append(Asked(asked, turn))
                for _ in range(random.randrange(3)):
                    chatter = random.choice(advice.CHATTER[half])
                    noun = random.choice(matter.nouns)
                    talk.say("user", "", chatter.format(noun=noun), time)
                    talk.say("assistant", "", _answer(random, half, matter, ""), time)
    return talk


def slots_of(text: str, slots: dict[str, str]) -> str:
    """A text with its slots filled, as it is."""
    return text.format(**slots)


def _answer(random: Random, half: int, matter: advice.Matter, tip: str) -> str:
    nouns = random.sample(matter.nouns, len(matter.nouns))
    rows = [random.choice(advice.LEADS[half]).format(noun=nouns[0]), ""]
    for number in range(1, random.randrange(5, 10)):
        rows.append(small.tip(random, number, nouns[number % len(nouns)]))
    if tip:
        rows.insert(random.randrange(2, len(rows)), tip)
    if "query" in matter.nouns:
        code = advice.CODE.replace("{noun}", nouns[1]).replace("{Noun}", nouns[1].capitalize())
        rows.append(code.replace("{k}", str(random.randrange(5, 100))))
    rows += ["", random.choice(advice.CLOSINGS[half]).format(noun=nouns[0])]
    return "\n".join(rows)


def _put(text: str, slots: dict[str, str]) -> str:
    """A text with its slots filled, as a sentence."""
    return _capital(text.format(**slots))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _maybe(random: Random, text: str) -> str:
    return text if random.random() < 0.5 else ""


def _fresh(
    random: Random, slots: dict[str, tuple[str, ...]], told: set[tuple[str, str]]
) -> dict[str, str]:
    """Values of slots, such that no fact is told twice as long as there are others."""
    found = {}
    for name, values in slots.items():
        left = [value for value in values if (name, value) not in told] or list(values)
        found[name] = random.choice(left)
        told.add((name, found[name]))
    return found


def _shuffled(random: Random, topics: tuple[Topic, ...]) -> Iterator[Topic]:
    """Topics for ever, each once before any comes again."""
    while True:
        yield from random.sample(topics, len(topics))
