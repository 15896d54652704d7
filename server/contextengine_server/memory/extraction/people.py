"""What the user is called, and who others are to the user."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .clauses import plain_lead
from .fact import FactKind, FoundFact, normal
from .prose import Sentence

_PROPER = r"[A-Z][\w'’-]*(?:\s+(?:de|del|della|van|von|der|da|di|bin|al|la)?\s?[A-Z][\w'’.-]*){0,3}"
_NAMED = re.compile(
    rf"\b(?:[Mm]y (?:full |first |last |real |own )?name(?: is|'s|:)|I(?:'m| am) called|[Cc]all me"
    rf"|I go by|[Nn]ame's)\s+(?P<name>{_PROPER})"
)
_GREETED = re.compile(
    rf"(?i:^(?:hi|hello|hey|good (?:morning|afternoon|evening))(?: there)?[,!. ]+)(?:I'm|I am"
    rf"|[Tt]his is)\s+"
    rf"(?P<name>{_PROPER})(?=$|[,.]| and | from | here)"
)
_IS = re.compile(r"\b(?:I'm|I am)\s+(?P<name>[A-Z][\w'’-]+ [A-Z][\w'’-]+)(?=$|[,.]| and | from )")
_HAN_NAME = r"[\u4e00-\u9fff]{2,4}?(?:·[\u4e00-\u9fff]{1,6})?"
_NAMED_ZH = re.compile(
    rf"(?:我的?(?:中文)?名字(?:是|叫)|我(?:就)?(?:名)?叫|叫我)(?P<name>{_HAN_NAME}"
    rf"|[A-Z][a-z]+(?: [A-Z][a-z]+)?)(?=$|[，,、 ]|就行|就好|吧)"
)
_NO_NAME = re.compile(r"^[了他她它你您不过这那什车外人来去]|什么|一下|时候")

_ROLES = (
    r"(?:line |project |product |account |general |team |tech |engineering )?(?:manager|boss"
    r"|supervisor|wife|husband"
    r"|spouse|partner|fianc[ée]e?|girlfriend|boyfriend|son|daughter|mother|mom|mum|father|dad"
    r"|brother|sister"
    r"|uncle|aunt|cousin|friend|best friend|colleague|co-?worker|teammate|dog|cat|company|employer"
    r"|team|project"
    r"|product|startup|client|customer|doctor|dentist|therapist|lawyer|accountant|assistant|teacher"
    r"|landlord"
    r"|roommate|neighbou?r|CTO|CEO|CFO|COO|lead|tech lead|team lead|designer|contact|supplier"
    r"|vendor|bank|airline"
    r"|university|school)"
)
_MANY = re.compile(
    r"son|daughter|brother|sister|uncle|aunt|cousin|friend|worker|colleague|mate|dog|cat|project"
    r"|product|client"
    r"|customer|neighbo|contact|supplier|vendor|儿子|女儿|哥哥|弟弟|姐姐|妹妹|朋友|同事|客户|室友"
    r"|项目|产品|狗|猫"
)
"""Of whom one may have several."""
_RELATED = re.compile(
    rf"\b(?:[Mm]y|[Oo]ur)\s+(?P<role>(?:new )?{_ROLES})(?:'s name)?\s*(?:,\s*|\s+(?:is|was named"
    rf"|is called|is named)(?: now)?\s+|:\s*)(?P<who>{_PROPER})"
)
_IS_ROLE = re.compile(
    rf"^(?P<who>{_PROPER}) is (?:now )?(?:my|our)\s+(?P<role>(?:new )?{_ROLES})\b"
)
_WORKS = re.compile(
    rf"\bI(?:'m| am)?\s+(?:now |currently )?(?:work(?:ing)?|(?:a|an|the) [a-z][\w -]{{2,40}}?)"
    rf"\s+(?:at|for)\s+(?P<who>{_PROPER})"
)
_ROLES_ZH = (
    r"(?:项目)?(?:经理|老板|上司|领导|主管|妻子|老婆|太太|丈夫|老公|儿子|女儿|妈妈|母亲|爸爸"
    r"|父亲|哥哥|弟弟|姐姐|妹妹|朋友|同事|客户|医生|律师|老师|导师|房东|室友|公司|项目|产品"
    r"|团队|学校|狗|猫)"
)
_RELATED_ZH = re.compile(
    rf"我(?:们)?(?:家)?的?(?P<role>{_ROLES_ZH})(?:的名字)?(?:是|叫做?|名叫)(?P<who>{_HAN_NAME}"
    rf"|[A-Z][\w-]*(?: [A-Z][\w-]*)?)(?=$|[，,、 ])"
)
_WORKS_ZH = re.compile(
    r"我(?:现在|目前)?在(?P<who>[\u4e00-\u9fffA-Za-z]{2,16}?)(?:公司|集团|大学|医院|银行|学校)?"
    r"(?:工作|上班|任职)"
)
_NOT_WHO_ZH = re.compile(r"^(?:一|个|很|非常|不|最|好|家里|这|那|哪|他|她)|的$")


def names(one: Sentence) -> Iterator[FoundFact]:
    """What the user is called."""
    for pattern in (_NAMED, _GREETED, _IS, _NAMED_ZH):
        found = pattern.search(one.text)
        if found is None or not plain_lead(one.text[: found.start()]):
            continue
        if not _NO_NAME.search(found["name"]):
            yield FoundFact(FactKind.NAME, found["name"].rstrip("."), "user", one.text)
            return


def entities(one: Sentence) -> Iterator[FoundFact]:
    """Persons and organizations, with what they are to the user."""
    for pattern in (_RELATED, _IS_ROLE, _RELATED_ZH):
        for found in pattern.finditer(one.text):
            who, role = found["who"].rstrip("."), normal(found["role"]).removeprefix("new ")
            if plain_lead(one.text[: found.start()]) and not _NOT_WHO_ZH.search(who):
                said = f"{role}: {who}"
                subject = normal(said) if _MANY.search(role) else role
                yield FoundFact(FactKind.ENTITY, said, subject, one.text)
    for pattern, role in ((_WORKS, "employer"), (_WORKS_ZH, "公司")):
        for found in pattern.finditer(one.text):
            who = one.text[found.start("who") : found.end()] if role != "employer" else found["who"]
            who = re.sub(r"(?:工作|上班|任职)$", "", who).rstrip(".")
            if plain_lead(one.text[: found.start()]) and not _NOT_WHO_ZH.search(who):
                yield FoundFact(FactKind.ENTITY, f"{role}: {who}", "employer", one.text)
