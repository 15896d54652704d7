"""How the messages of a summary are told of, as the engine says: a summarizer reads them, their
facts are stated word for word, or they are passed over.

Facts are taken from messages, never from what an earlier summary says of them: of two that
contradict each other the later one holds, and says what it took the place of. Only of what is too
far back to be read again the earlier summary's lines stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import structlog
from msgspec.structs import replace

from contextengine_server.context.work import Work
from contextengine_server.engines.contract import Engine, Said
from contextengine_server.engines.teller import Retelling, Teller, teller_of
from contextengine_server.memory.extraction.days import day_of_ms
from contextengine_server.summarize.request import SourceMessage, SummaryResult

log = structlog.get_logger("contextengine.compact")

HEADING = "Facts:"
"""How the lines of facts begin; an empty line ends them."""
NAME = "facts"
"""Who wrote a summary that holds nothing else."""
PASSED_OVER = "Nothing to tell of these messages: greetings, thanks, confirmations."


def said_in(source: SourceMessage) -> Said:
    """What a message says, as an engine reads it."""
    silent = sum(not (result.text.strip() or result.failed) for result in source.results)
    return Said(
        source.role,
        source.text,
        len(source.calls),
        len(source.results),
        silent,
        said_on=day_of_ms(source.time_ms),
    )


class Retold(msgspec.Struct, frozen=True):
    """Messages, parted by how they are told of."""

    read: tuple[SourceMessage, ...]
    """What a summarizer reads."""
    lines: tuple[str, ...]
    """The facts, a line each."""
    passed_over: frozenset[int]
    """The sequences of what it does not read."""


def retold(engine: Engine, sources: Iterable[SourceMessage]) -> Work[Retold]:
    """The messages, parted; some tenths of a millisecond each. A summary below another is read."""
    teller = teller_of(engine)
    if teller is None:
        return Retold(tuple(sources), (), frozenset())
    read: list[SourceMessage] = []
    passed: list[int] = []
    facts = LiveFacts()
    for source in sources:
        if source.role == "summary":
            lines, rest = parted(source.text)
            for kind, value in lines:
                facts.take(kind, value, value)
            read.append(replace(source, text=rest))
            continue
        how = _told(teller, source)
        for fact in how.facts:
            facts.take(
                str(fact.kind), fact.value, fact.subject, fact.replaces, corrects=fact.corrects
            )
        if how.read:
            read.append(source)
        else:
            passed.append(source.sequence)
        yield
    return Retold(tuple(read), tuple(facts.lines()), frozenset(passed))


def _told(teller: Teller, source: SourceMessage) -> Retelling:
    """Of what an engine cannot say how it is told of nothing must get lost."""
    try:
        return teller.told(said_in(source))
    except Exception as error:  # whatever an engine raises
        log.warning("an engine cannot tell of a message", error=type(error).__name__)
        return Retelling()


class LiveFacts:
    """Facts in the order in which they were last said. Of those that contradict each other the
    later one holds, and names what it took the place of."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], tuple[str, str]] = {}
        """The value and what it took the place of, by kind and subject."""

    def take(
        self, kind: str, value: str, subject: str, replaces: str = "", *, corrects: bool = False
    ) -> None:
        """One more fact."""
        value = " ".join(value.split())
        place = self._contradicted(kind, subject, replaces, corrects=corrects)
        before, earlier = self._held.pop(place, (value, "")) if place else (value, "")
        self._held[kind, subject] = value, earlier if before == value else before

    def _contradicted(
        self, kind: str, subject: str, replaces: str, *, corrects: bool
    ) -> tuple[str, str] | None:
        """The fact that another takes the place of: of its subject, or of a kind of that; one that
        holds what it says is no more so; for one that takes something back without saying what,
        the newest."""
        if (kind, subject) in self._held:
            return kind, subject
        for place in reversed(self._held):
            if place[0] != kind:
                continue
            alike = _ends_alike(place[1], subject)
            named = replaces and replaces in self._held[place][0].casefold()
            if alike or named or (corrects and not replaces):
                return place
        return None

    def lines(self) -> Iterator[str]:
        """A line each."""
        for (kind, _), (value, before) in self._held.items():
            yield f"{kind}: {value}" + (f" (superseded: {before})" if before else "")


def _ends_alike(one: str, other: str) -> bool:
    """True where one subject is a kind of the other: dark mode, and mode."""
    return min(len(one), len(other)) > 1 and (one.endswith(other) or other.endswith(one))


def parted(text: str) -> tuple[list[tuple[str, str]], str]:
    """The facts that a summary begins with, and the rest of it."""
    if not text.startswith(f"{HEADING}\n"):
        return [], text
    block, _, rest = text.partition("\n\n")
    lines = [line.partition(": ") for line in block.splitlines()[1:]]
    return [(kind, value) for kind, colon, value in lines if colon], rest


def fitted(lines: Sequence[str], room: int, count: Callable[[str], int]) -> str:
    """The lines as a summary begins with them; the newest, where there is no room for all."""
    kept = list(lines)
    while kept and count(_block(kept)) > room:
        kept = kept[max(1, len(kept) // 8) :]
    return _block(kept) if kept else ""


def _block(lines: Sequence[str]) -> str:
    return "\n".join((HEADING, *lines))


def shared(engine: Engine, target: int) -> tuple[int, int]:
    """How much of a summary's tokens facts may take, and how much a summarizer: each as much of
    them as its layers may have of all."""
    teller = teller_of(engine)
    if teller is None:
        return 0, target
    whole = teller.facts_tokens + engine.summary_tokens
    return target * teller.facts_tokens // whole, target * engine.summary_tokens // whole


def joined(facts: str, told: SummaryResult | None, count: Callable[[str], int]) -> SummaryResult:
    """Both as one summary; `told` is None where there was nothing for a summarizer to read."""
    if told is None:
        text = facts or PASSED_OVER
        return SummaryResult(text, count(text), NAME)
    if not facts:
        return told
    text = f"{facts}\n\n{told.text}"
    return replace(told, text=text, tokens=count(text))
