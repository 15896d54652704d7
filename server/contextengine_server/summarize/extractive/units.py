"""Passages cut into units, the pieces that an extractive summary chooses from, and what each holds
that matters.

Pure and deterministic: no set is ever walked, so the hash seed of a process changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import msgspec

from contextengine_server.summarize.extractive.notes import clauses, english, note
from contextengine_server.summarize.extractive.passages import SourcePassage
from contextengine_server.summarize.extractive.words import COMMON, WORN

PIECE_CHARS = 200
"""About so long are the pieces of a long text."""
_LONG = 1.4
"""A text that is longer than so many pieces is cut into them."""


class Unit(msgspec.Struct, frozen=True):
    """A sentence or a line of a passage."""

    passage: int
    """Index of its passage."""
    position: int
    """Its place in the passage; neighbours differ by one."""
    text: str
    said: str
    """The same without any word left out."""
    line: bool
    """True for a line of code or output, or of a list; False for a sentence of prose."""
    weight: float
    """How much what it holds matters, by who said it, where, and in which words."""
    own: float
    """What it is worth whatever it holds: a request, a question, a decision, an error."""
    crowd: float
    """How much each unit shown of its passage lowers the worth of its others."""
    holds: tuple[tuple[str, float], ...]
    """What it holds that is worth having once, with its worth: names, numbers, paths, words."""


_SENTENCE = re.compile(
    r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b[DMS][rst]\.)(?<!\bMrs\.)(?<!\be\.g\.)(?<!\bi\.e\.)"
    r"[\"')\]]*\s+(?=[\"'(\[A-Z0-9`*])|(?<=[。！？；…])\s*"
)
"""Where a sentence ends; not behind an initial or a title, such as Dr."""
_CUT = re.compile(r"[,;，、:}\]]\s*|\s+")
_FENCE = re.compile(r"\s*(```|~~~)")
_LIST = re.compile(r"\s*([-*+•]|\d+[.)、]|#{1,6})\s")

_DECISION = re.compile(
    r"\b(decid\w+|decision|agreed?|conclu\w+|chos\w+|choose|instead of|rather than|confirm\w*"
    r"|approv\w+|must( not)?|never"
    r"|always|do not|don['’]t|prefer\w*|require\w*|resolved?|fixed|root cause|because|turns? out"
    r"|the plan|we will|we['’]ll"
    r"|let['’]?s|going to|rename\w*|deadline|remember|favou?rite|allerg\w+|important)\b"
    r"|决定|同意|确认|必须|不要|不能|总是|从不|选择|采用|改为|改成|方案|偏好|喜欢|更喜欢|计划|需要|结论|已修复|因为|记住|截止|约定",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"[?？]|\b(todo|fixme|open question|pending|blocked|next steps?|remaining|not yet|unclear|to "
    r"be decided|waiting for)\b"
    r"|待办|未解决|下一步|尚未|还没|待定|阻塞|吗\b|请问",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\bplease\b|\b(can|could|would|will) you\b|(^|[,;:.] |\b(and|but|so) )(i|we)( (need|want"
    r"|would like|have to|should)|['’]d like)\b|\blet['’]?s\b|\bmake sure\b"
    r"|请|帮我|帮忙|麻烦|我想|我要|给我|ください|お願い|해\s?주세요",
    re.IGNORECASE,
)
"""Acts of asking. An imperative alone is none: "Keep it up!" asks for nothing."""
_ERROR = re.compile(
    r"\b\w*(error|exception)\b|\b(fail(ed|ure|s|ing)?|traceback|panic(ked)?|fatal|denied|refused"
    r"|not found|timed? ?out|invalid"
    r"|cannot|unable|aborted|segfault|errno)\b|\bexit(ed)?( with)?( code| status)?[ :=]+\d+"
    r"|\bexit_?code\W+\d+"
    r"|错误|失败|异常|报错|超时|拒绝|无法",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"\s*(export |public |private |async |static |pub )*(def|class|function|func|fn|interface|type"
    r"|struct|enum|const|import|from"
    r"|package|module|create table|select|insert|update|alter)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"[{}\[\]<>;=\\|\"]")
_COMMAND = re.compile(
    r"\s*([$>#%] |sudo |git |npm |npx |pnpm |yarn |pip |python3? |pytest |make |docker |kubectl "
    r"|curl |cargo |go |uv |ssh |cd |rm )"
)
_PLEASANTRY = re.compile(
    r"\W*((ok(ay)?|sure|thanks?|thank you|great|got it|you['’]re welcome|hello|hi|hey|perfect"
    r"|awesome|alright|of course|certainly"
    r"|absolutely|no problem|(that )?sounds (good|great|fun|lovely|amazing)"
    r"|(that )?makes (a lot of )?sense|glad|happy to)\b[^.!?。]{0,60}"
    r"|(好的|谢谢|你好|嗯|是的|不客气|没问题|当然)[^。！？]{0,12})[.!?。！]*\s*",
    re.IGNORECASE,
)

_NARRATION = re.compile(
    r"\W*(?:(?:now|ok(?:ay)?|good|great|perfect|wait|hmm|and|so|first|next|then)\b[,.!:]? ?){0,3}"
    r"(?:let me|let['’]?s|i['’]?ll|i will|i need to|i should|i can see|looking at|checking)\b"
    r"[^\n]{0,200}|[^\n]{0,200}[:：]",
    re.IGNORECASE,
)
"""What an agent says that it is about to do: what it did says more."""

_NOISE = re.compile(
    r"\W*((checked|changed|successfully|done|wrote|written|updated|applied|replaced|compiled|built"
    r"|found 0|formatted|finished|up to date|already up|no fixes|added \d|audited|ok\b|pass(ed)?\b"
    r"|duration|start at|exit code:? 0|process exited with code 0)[^\n]{0,160}|true|null)\W*",
    re.IGNORECASE,
)
"""A line that says of itself only that something went well."""

_ABOUT_YOU = 0.7
"""What a remark about the other counts between people, and a question: the fact is in what is
answered."""
_TO_YOU = re.compile(r"\byou(r|rs|rself|['’](re|ve|ll|d))?\b", re.IGNORECASE)
_OF_ME = re.compile(
    r"\b(I|my|me|mine|we|our|us|I['’](m|ve|ll|d)|we['’](re|ve|ll|d))\b", re.IGNORECASE
)
_ASKED = 0.7
"""What a request is worth by itself: to an agent it says what all the rest is for. Between people
it is one remark among others."""
_FIRST = 4.0
"""How much more users' sentences count where they come first and not all of them fit: an
assistant's answers can be asked for again, what a user told is nowhere else."""
_CHEER = 0.1
"""What courtesies count, and exclamations without a name or a number."""
_CODED = {"written": (1.0, 0.05), "named": (1.0, 0.05), "read": (0.4, 0.03)}
"""The weight of code that was written, and still stands, and what each character of it is worth by
itself: it is what is read and edited next, to the letter, as is what users named; and of a file
that was read and changed, where it still is as it was: it weighs no more than the output of other
tools."""
_OUTPUT = 0.4
"""What code and the output of tools count beside what an assistant says."""

_WORTH = {
    "url": 2.0,
    "mail": 2.5,
    "path": 1.6,
    "file": 1.6,
    "code": 1.2,
    "date": 1.8,
    "hash": 1.6,
    "number": 1.2,
    "constant": 1.4,
    "symbol": 1.0,
    "title": 1.0,
    "name": 0.9,
    "acronym": 0.7,
    "han": 0.12,
}
_WORD = 0.3
"""What any other word is worth: facts of a life are told in plain words."""
_WORN_WORD = 0.1
"""The same of a word that is in talk about anything."""
_OUTPUT_WORD = 0.1
"""What a word is worth in code and the output of tools, where words are many."""
_HOLDS = re.compile(
    r"""
    (?P<url>\b[a-z][a-z0-9+.-]{1,10}://[^\s<>"'`)\]}，。]+)
  | (?P<mail>[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64})
  | (?P<code>`[^`\n]{1,80}`)
  | (?P<path>(?<![\w/])(?:~|\.{1,2})?/?(?:[\w.@-]{1,80}/){1,24}[\w.@*-]{1,80})
  | (?P<file>\b[\w-]{1,60}\.(?:py|pyi|tsx?|jsx?|mjs|md|rst|json5?|ya?ml|toml|lock
       |sql|sh|rs|go|java|kt|rb|php|cs?|h|cpp|hpp
      |txt|csv|log|proto|html|css|xml|ini|cfg|env|db|pdf|png|jpg)\b)
  | (?P<date>\b\d{4}-\d{2}-\d{2}(?:[T\ ]\d{2}:\d{2}(?::\d{2})?)?
       |\d{1,4}年(?:\d{1,2}月)?(?:\d{1,2}日)?
      |\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?
       \ \d{1,2}(?:st|nd|rd|th)?\b(?:,?\ \d{4})?)
  | (?P<hash>\b(?=[a-f]*\d)[0-9a-f]{7,40}(?:-[0-9a-f]{4,12}){0,4}\b)
  | (?P<number>[$€£¥#]?(?<![\w.])\d[\d,.:%/x-]{0,20}\w{0,12})
  | (?P<constant>\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b(?=\w*\d)(?=\w*[A-Z])[A-Z0-9]{4,16}\b)
  | (?P<symbol>\b[a-z]+(?:_[a-z0-9]+)+\b|\b[a-z]+[a-z0-9]*(?:[A-Z][a-z0-9]+)+\b
       |\b(?:[A-Z][a-z0-9]+){2,}\b)
  | (?P<title>[“"][A-Z][^“”"\n]{2,40}[”"]|(?<!\w)[‘'][A-Z][^‘’'\n]{2,40}[’'](?!\w))
  | (?P<name>(?<=[a-z,;:]\ )[A-Z][\w’'-]{1,30}(?:\ [A-Z][\w’'-]{1,30}){0,4})
  | (?P<acronym>\b[A-Z]{2,8}\b)
  | (?P<han>[\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]{2,})
  | (?P<word>[^\W\d_]{4,40})
    """,
    re.VERBOSE,
)


def units_of(
    passages: Sequence[SourcePassage],
    shown: Collection[int],
    *,
    talk: bool,
    users_first: bool = False,
    piece_chars: int = PIECE_CHARS,
) -> list[Unit]:
    """All units of the passages, in order; of a text that repeats, the first. `shown`: the indexes
    of passages that are shown whole already; in a `talk` everybody who speaks weighs
    the same, and is quoted in as few words as can be: all of it matters; `users_first`: what users
    say comes before all else; `piece_chars`: how long the pieces of long texts are."""
    units: list[Unit] = []
    seen: set[str] = set()
    said = {passages[index].text.strip().casefold() for index in shown}
    users = [index for index, passage in enumerate(passages) if passage.role == "user"]
    for index, passage in enumerate(passages):
        if index in shown or (said and passage.text.strip().casefold() in said):
            continue
        edge = bool(users) and index in (users[0], users[-1])
        for position, piece in enumerate(_pieces(passage, talk, piece_chars)):
            folded = piece.text.casefold()
            if folded in seen or not re.search(r"\w", piece.text):
                continue
            seen.add(folded)
            output = passage.kind == "output"
            if output and not passage.failed and _NOISE.fullmatch(piece.said):
                continue
            facts = holds(piece.said, _WORD if passage.kind == "said" else _OUTPUT_WORD)
            if passage.kind in _CODED:
                weight, each = _CODED[passage.kind]
                own = each * len(piece.text)
            elif piece.said.endswith(("!", "！")) and all(worth <= _WORD for _, worth in facts):
                weight, own = _CHEER, 0.0
            else:
                weight, own = _matters(passage, piece, position == 0, edge, talk)
            if users_first and passage.role == "user":
                weight *= _FIRST
            crowd = 0.25 if output else 0.0
            units.append(
                Unit(index, position, piece.text, piece.said, piece.line, weight, own, crowd, facts)
            )
    return units


def holds(text: str, word: float = _WORD) -> tuple[tuple[str, float], ...]:
    """What a text holds that matters, each once, with its worth; `word`: that of a word that is
    nothing but one."""
    found: dict[str, float] = {}
    for match in _HOLDS.finditer(text):
        kind = match.lastgroup or "word"
        piece = match[0].strip(".,:;-'’`‘“”\"").casefold()
        if kind == "han":
            # Chinese has no spaces: two characters at a time are the nearest thing to a word.
            for at in range(len(piece) - 1):
                found.setdefault(piece[at : at + 2], _WORTH["han"])
        elif piece and piece not in COMMON:
            worth = min(word, _WORN_WORD) if piece in WORN else word
            found.setdefault(piece, worth if kind == "word" else _WORTH[kind])
    return tuple(found.items())


class _Piece(msgspec.Struct, frozen=True):
    """A clause or a line."""

    said: str
    """As it was said."""
    text: str
    """As it is shown."""
    line: bool
    asked: bool = False
    """True where it asks for something."""


def _matters(
    passage: SourcePassage, piece: _Piece, first: bool, edge: bool, talk: bool
) -> tuple[float, float]:
    """The weight and the own worth of a unit."""
    text, role = piece.said, passage.role
    if _PLEASANTRY.fullmatch(text):
        return _CHEER, 0.0
    output = passage.kind == "output"
    if role == "assistant" and not talk and _NARRATION.fullmatch(text):
        return 0.2, 0.0
    code = role != "user" and len(_CODE.findall(text)) > len(text) * 0.06
    said = not (code or output) or role == "user"
    person = role == "user" or (talk and said)
    weight = 2.5 if person else _OUTPUT if code or output else 1.2 if role == "summary" else 1.0
    signs, own = 1.0, 0.0
    if _ERROR.search(text):
        signs, own = signs + 0.6, own + 0.8
    if said and _DECISION.search(text):
        signs, own = signs + 0.6, own + 0.2
    if said and _OPEN.search(text):
        signs, own = signs + 0.3, own + 0.2
    if not said and _DEFINITION.match(text):
        signs += 0.3
    if _COMMAND.match(text):
        signs += 0.4
    # The first words say what the rest is about: a user's request, a command, the head of an
    # output.
    begin = (1.0 if edge else 0.5) if first else 0.0
    if person:
        # Every sentence of a user's tells a fact or asks for something: how it is put makes it no
        # more of a fact.
        if talk and text.endswith(("?", "？")):
            weight *= _ABOUT_YOU
        if talk and _TO_YOU.search(text) and not _OF_ME.search(text):
            weight *= _ABOUT_YOU
        return weight * (1.0 + begin / 2), 0.4 * own + (_ASKED if piece.asked and not talk else 0.0)
    return weight * (signs + begin), own


def _pieces(passage: SourcePassage, terse: bool, chars: int) -> Iterator[_Piece]:
    """A passage in pieces: lines as they are, prose in sentences, as notes. What a user asks for
    stays as it was asked."""
    fenced = False
    user, text = passage.role == "user", passage.text
    plain = english(text)
    for row in text.splitlines():
        if _FENCE.match(row):
            fenced = not fenced
            continue
        if fenced or passage.kind != "said" or _LIST.match(row):
            asked = user and bool(_REQUEST.search(row))
            whole_row = " ".join(row.split()) if passage.kind == "output" else row.strip()
            for piece in _short(whole_row, chars):
                yield _Piece(piece, piece, True, asked)
            continue
        for sentence in _SENTENCE.split(row):
            asked = bool(_REQUEST.search(sentence))
            whole = user and (asked or bool(_OPEN.search(sentence)))
            for clause in [sentence] if whole else clauses(sentence):
                for piece in _short(clause.strip(), chars):
                    thin = note(piece, terse=terse) if plain and not whole else piece
                    yield _Piece(piece, thin, False, asked)


def _short(text: str, chars: int) -> Iterator[str]:
    """A long text in pieces, cut where a clause, a field or at least a word ends."""
    start, long = 0, round(_LONG * chars)
    while len(text) - start > long:
        end = start + long
        for match in _CUT.finditer(text, start + chars, start + long):
            end = match.end()
            break
        yield text[start:end].strip()
        start = end
    if text[start:].strip():
        yield text[start:].strip()
