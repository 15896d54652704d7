"""What the user likes, and wants to be done at all times."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .clauses import clause, plain_lead
from .fact import FactKind, FoundFact, normal
from .prose import Sentence

_HOW = (
    r"(?:really |truly |still |usually |generally |strongly |much |now |also |always |do "
    r"|just |actually |personally |absolutely |definitely |mostly |quite )*"
)
_LIKES = re.compile(
    rf"(?i)\b(?P<said>I\s+{_HOW}(?P<verb>prefer|love|like|enjoy|hate|dislike|favou?r|can't stand"
    rf"|cannot stand"
    rf"|(?:do not|don't|don’t) (?:really |much )?(?:like|enjoy|care for|eat|drink|use)"
    rf"|(?:do not|don't|don’t) want(?! (?:to|you|it|this|that|them|any|anything)\b))"
    rf"\s+(?P<what>.+)"
    rf"|I(?:'d| would) (?:much )?(?P<rather>rather|prefer)\s+(?P<rather_what>.+)"
    rf"|I (?P<habit>always|never|only) (?:want|use|eat|drink|fly|travel|write|read|work|buy|take"
    rf"|pay|shop|sit)\b.+"
    rf"|I(?:'m| am) (?P<being>allergic to|a vegetarian|vegetarian|vegan|a vegan|lactose intolerant"
    rf"|colou?r-?blind|left-handed|intolerant to|deaf|blind)\b.*"
    rf"|my (?P<favourite>(?:favou?rite|preferred)(?: [\w-]+){{1,3}}?|preference(?: for [\w -]+?)?)"
    rf" (?:is|are|:)\s+(?P<best>.+))$"
)
_STANDING = re.compile(
    r"(?i)(?:^|[,;:] |\b(?:please|and|but|so|should|to|you must|you should|must) )"
    r"(?P<said>(?:from now on|in (?:the )?future|going forward|by default),? .+|(?:always|never)"
    r" (?P<order>[a-z]{2,} .+))$"
)
_LIKES_ZH = re.compile(
    r"(?P<said>我(?:们)?(?:个人|自己|其实|真的|还是|一直|现在|平时|一般|通常|也|都|就|很|非常|特别"
    r"|更|最|比较|挺|超)*"
    r"(?:(?:不太|不怎么|不大|不|讨厌|受不了)?(?P<verb>喜欢|偏好|偏爱|热爱|讨厌|倾向于?|习惯"
    r"|爱(?=[吃喝用看听穿玩])|受不了)|宁愿|宁可|(?:从不|从来不|总是|只)(?=[吃喝用看坐穿买]))"
    r"(?!的(?:是|话)?$)(?P<what>.+)|我最喜欢的(?P<favourite>[\u4e00-\u9fff]{1,8}?)是(?P<best>.+)"
    r"|我对.{1,12}过敏.*|我(?:是|吃)(?:素食者?|素))$"
)
_STANDING_ZH = re.compile(
    r"(?:请|你(?:要|应该|必须)?|务必|，|^)(?P<said>(?:(?:以后|今后|从现在(?:起|开始))(?:请|都|务必"
    r"|一律)?|(?:请)?(?:始终|总是|永远|一律|每次都|一直)(?:要|不要|用|使用|以|别)?)(?P<order>.{2,})"
    r")$"
)
_EMPTY = re.compile(
    r"(?i)^(?:it|that|this|them|these|those|him|her|you|so|what (?:you|i|we)|the (?:idea|sound|way"
    r"|look)s?|your|how|where you|to know|to return|to cancel|to book|to change|to ask|to get"
    r"|to see if|to make sure|not to)\b"
)
_EMPTY_ZH = re.compile(r"^(?:你|这|那|它|他|她)")
_CONTRAST = re.compile(
    r"(?i)^(?:using |use )?(?P<one>.+?) (?:over|rather than|than|instead of|to) (?P<other>[\w -]+)$"
)
_FOR = re.compile(r"(?i)^(?P<what>.+?) (?:for|when|in|as) (?P<purpose>[\w' -]+)$")
_IN_LANGUAGE = re.compile(
    r"(?i)\b(?:in|to) (?:english|french|german|spanish|chinese|japanese|korean|italian|portuguese"
    r"|russian|dutch|arabic|hindi)\b"
    r"|(?:中文|英文|英语|日文|日语|法语|德语|西班牙语|韩语|汉语)"
)
_POLARITY = re.compile(
    r"(?i)\b(?:always|never|not|don't|do not|only|please|from now on,?|in (?:the )?future,?"
    r"|by default,?|going forward,?)\b|请|始终|总是|永远|一律|不要|别|以后|今后|都"
)
_ARTICLE = re.compile(r"(?i)^(?:the|a|an|my|to|using|use)\s+")


def preferences(one: Sentence) -> Iterator[FoundFact]:
    """What a user prefers, and orders for all times."""
    for pattern in (_LIKES, _LIKES_ZH):
        found = pattern.search(one.text)
        if found is not None:
            fact = _liked(one, found)
            if fact is not None:
                yield fact
            return
    for pattern in (_STANDING, _STANDING_ZH):
        found = pattern.search(one.text)
        if found is not None:
            if plain_lead(_without_order(one.text[: found.start("said")])):
                said = clause(found["said"])
                yield FoundFact(FactKind.PREFERENCE, said, _order_subject(said), one.text)
            return


def _without_order(lead: str) -> str:
    """What stands before an order, without the words that make it one."""
    return re.sub(
        r"(?i)\b(?:please|you|should|must|to|and|but|so|want|i)\b|请|你|要|必须|应该|务必", "", lead
    ).strip(" ,;:，")


def _liked(one: Sentence, found: re.Match[str]) -> FoundFact | None:
    groups = found.groupdict()
    lead = one.text[: found.start("said")]
    what = groups.get("what") or groups.get("rather_what") or ""
    empty = _EMPTY if re.match(r"[A-Za-z]", found["said"]) else _EMPTY_ZH
    if not plain_lead(lead) or (what and empty.match(what)):
        return None
    said = clause(found["said"])
    if groups.get("favourite"):
        subject = normal(groups["favourite"]).replace("favorite", "favourite")
        return FoundFact(FactKind.PREFERENCE, said, subject, one.text)
    if not what:
        return FoundFact(FactKind.PREFERENCE, said, _order_subject(said), one.text)
    exclusive = bool(groups.get("rather")) or groups["verb"] in ("prefer", "favor", "favour")
    subject = _liking_subject(clause(what), exclusive=exclusive)
    return FoundFact(FactKind.PREFERENCE, said, subject, one.text, corrects=_no_more(one.text))


def _liking_subject(what: str, *, exclusive: bool) -> str:
    """What a liking is of: two things that are weighed, what it is for, or the thing itself."""
    what = normal(re.sub(r"(?i)\s+(?:now|anymore|any more|instead|these days|了)$", "", what))
    weighed = _CONTRAST.match(what) if exclusive else None
    if weighed is not None:
        pair = sorted(_ARTICLE.sub("", normal(weighed[name])) for name in ("one", "other"))
        return " / ".join(pair)
    purpose = _FOR.match(what) if exclusive else None
    if purpose is not None:
        return f"for {_ARTICLE.sub('', normal(purpose['purpose']))}"
    words = _ARTICLE.sub("", what).split()
    if exclusive and len(words) == 2:
        return words[-1]
    if re.fullmatch(r"[\u4e00-\u9fff]+模式", what):
        return "模式"
    return " ".join(words)


def _order_subject(said: str) -> str:
    """What an order is about, whether it asks for it or forbids it."""
    about = normal(_POLARITY.sub(" ", said))
    return normal(_IN_LANGUAGE.sub("*", about))


def _no_more(text: str) -> bool:
    return bool(re.search(r"(?i)\b(?:any ?more|no longer)\b|不再", text))
