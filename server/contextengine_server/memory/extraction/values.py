"""Facts that have a form: addresses of mail, days, places, numbers and codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from .clauses import clause, plain_lead
from .days import SOON, SOON_ZH, dated
from .fact import FactKind, FoundFact, normal
from .prose import Sentence

_EMAIL = re.compile(
    r"(?<![A-Za-z0-9_.+%/@-])(?<!:/)[A-Za-z0-9_%+-]+(?:\.[A-Za-z0-9_%+-]+)*"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,5}"
    r"[A-Za-z]{2,24}(?![A-Za-z0-9_@/:-])"
)
_MACHINE = re.compile(r"(?i)^(?:git|root|noreply|no-reply|admin|user|ubuntu|hg|svn)@")
_OTHERS = re.compile(
    r"(?i)\b(?:not|don't|do not|never|no longer|old|was|wrong|instead of)\b|不|别|旧|以前"
)

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = (
    rf"(?:\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}"
    rf"|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,?\s+\d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+\d{{4}})?)"
)
_DAY_ZH = (
    r"(?:(?:\d{2,4}|[一二三四五六七八九零〇]{4})年)?(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
    r"月(?:\d{1,2}|[一二三四五六七八九十]{1,3})[日号]|\d{4}-\d{1,2}-\d{1,2}"
    r"|\d{4}/\d{1,2}/\d{1,2}"
)
_ENDS = r"(?=\s*(?:$|[,.;:)]|(?:at|in|on|with|for|and|so|because|since|but)\b))"
"""What may stand behind a day that is named from today: else it is part of something longer."""
_DATED = re.compile(
    rf"(?i)\b(?P<whose>the|my|our)\s+(?P<label>[a-z][\w'-]*(?:\s+[a-z][\w'-]*){{0,2}}?)\s*"
    rf"(?:is|are|will be|falls|has been|:)\s*(?:now\s+|currently\s+)?"
    rf"(?:on|due|due on|due by|by|scheduled for|planned for|set for|set to|moved to|at)?\s*"
    rf"(?:(?P<day>{_DAY})|(?P<soon>{SOON}){_ENDS})"
)
_DOES = re.compile(
    rf"(?i)\b(?:I|we)\s+(?P<label>was born|were born|(?:will\s+|are going to\s+)?(?:launch|ship"
    rf"|release|go live"
    rf"|start|move|leave|arrive|fly|travel|get married|graduate))\s+(?:on|by)\s+(?P<day>{_DAY})"
)
_DATED_ZH = re.compile(
    rf"(?P<label>[\u4e00-\u9fff]{{2,8}}?)(?:定在|定于|安排在|改到|推迟到|是在?|为|：|:)"
    rf"\s*(?:(?P<day>{_DAY_ZH})|(?P<soon>{SOON_ZH})(?=$|[，,、 ]))"
)
_GOING = (
    r"(?:launch|ship|releas|go live|start|mov|leav|arriv|fly|travell?|get(?:ting)? married"
    r"|graduat|return)"
)
_SOON = re.compile(
    rf"(?i)\b(?:I|we)(?:'m|'re|'ll| am| are| will)?(?: going to)?\s+"
    rf"(?P<label>{_GOING}(?:e|ing)?(?: (?:to|from|for|in) [\w' -]{{2,30}}?)?)"
    rf"\s+(?:on\s+|by\s+)?(?P<soon>{SOON}){_ENDS}"
)
_EVENT = (
    r"(?:appointment|meeting|interview|exam|flight|call|deadline|demo|presentation|party|wedding"
    r"|surgery|class|lesson|dinner|lunch|reservation|booking|check-?up|trip|train|concert"
    r"|conference|hearing|delivery|rehearsal|webinar|workshop)"
)
_HAS = re.compile(
    rf"(?i)\b(?:I|we)(?:'ve got| have(?: got)?)\s+(?:a|an|my|our|the)\s+"
    rf"(?P<label>(?:[a-z][\w'-]*\s+){{0,3}}?{_EVENT})(?: (?:with|in|at|to) [\w' .-]{{2,30}}?)?"
    rf"\s+(?:on\s+|by\s+|due\s+)?(?:(?P<day>{_DAY})|(?P<soon>{SOON}){_ENDS})"
)
_SOON_ZH = re.compile(
    rf"我们?(?:在)?(?P<soon>{SOON_ZH})(?:要|得|会|将|有一?个?|需要)"
    r"(?P<label>[\u4e00-\u9fff]{2,8})(?=$|[，,、 ])"
)
_NO_LABEL = frozenset(
    [
        "date",
        "day",
        "today",
        "tomorrow",
        "yesterday",
        "time",
        "log",
        "file",
        "line",
        "version",
        "output",
        "result",
        "timestamp",
        "entry",
    ]
)
_NO_LABEL_ZH = ("今天", "明天", "昨天", "日期", "时间", "现在")

_SECRET = re.compile(
    r"(?i)pass(?:word|code|phrase)|\bpin\b|secret|token|\bkey\b|cvv|cvc|\bssn\b|social security"
    r"|\bcard\b"
    r"|security code|verification|\botp\b|2fa|密码|口令|验证码|卡号|身份证|密钥|令牌"
)
_PASSING = re.compile(
    r"(?i)\b(?:exit|error|status|line|page|return|http|response|pid|process|item|row)\b|错误|行号"
    r"|页码"
)
_LABEL = (
    r"(?:numbers?|no\.|id|ids|code|reference|ref|pnr|username|user name|handle|sku|serial|account"
    r"|ticket"
    r"|phone|mobile|cell|extension|zip|postcode|url|repo|repository|server|host|endpoint|database"
    r"|website"
    r"|homepage|branch|version)"
)
_TOKEN = r"#?(?=[^\s,;]*[\d_/])[A-Za-z0-9+](?:[\w.:/@?=&%+#-]*[\w/])?(?:[ -]\d{2,12}){0,5}(?!\d)"
_NUMBERED = re.compile(
    rf"(?i)\b(?:my|our|the|its)\s+(?P<label>(?:[a-z][\w'-]*\s+){{0,2}}?{_LABEL}(?:\s+{_LABEL})?)\s*"
    rf"(?:is|are|:|=|#)\s*(?:now\s+)?(?:at\s+|on\s+)?(?P<value>{_TOKEN})"
)
_NUMBERED_ZH = re.compile(
    r"(?:我的?|我们的?|这个|该)?(?P<label>[\u4e00-\u9fff]{0,4}(?:号码|编号|单号|账号|帐号|手机号"
    r"|电话|工号|学号|会员号|用户名|版本|网址|链接|(?<![几多])号)|(?:[\u4e00-\u9fff]{1,4})?(?:ID"
    r"|id))"
    r"(?:是|为|：|:)\s*(?P<value>[A-Za-z#+]?[\w.:/@+#-]*\d[\w.:/@+#-]*)"
)

_CHANGES = re.compile(
    r"(?i)phone|mobile|cell|user ?name|user id|handle|zip|postcode|url|server|host|endpoint"
    r"|database|branch|version"
    r"|手机|电话|用户名|版本|网址"
)
"""Of what there is one at a time; of orders and tickets there are many."""

_PLACE = r"[A-Z][\w'.-]*(?:(?:,\s*|\s+)(?:[A-Z][\w'.-]*|of|de|la|am|upon))*"
_STREET = r"\d{1,6}[A-Za-z]?(?:,?\s+[\w'.#-]+)*(?:,\s*[\w'.# -]+){0,5}"
_LIVES = re.compile(
    rf"\b(?:[Ii]|[Ww]e)(?:'m| am|'re| are|'ve| have)?\s+(?:now\s+|currently\s+|just\s+)*"
    rf"(?:live|living|reside|residing|based|located|moved)\s+(?:at|in|on|to)\s+(?P<place>{_STREET}"
    rf"|{_PLACE})"
)
_ADDRESSED = re.compile(
    rf"\b(?:[Mm]y|[Oo]ur)\s+(?P<label>(?:new |home |current |shipping |billing |mailing |delivery "
    rf"|office |postal |work |full )*)"
    rf"address\s*(?:is|:|has changed to)\s*(?:now\s+)?(?P<place>{_STREET}|{_PLACE})"
)
_SENT = re.compile(
    r"\b(?:[Ss]hip|[Ss]end|[Dd]eliver|[Mm]ail)\s+(?:(?:it|them|this|that|everything|the \w+|my \w+)"
    r"\s+)?to\s+"
    r"(?P<place>\d{1,6}\s+[A-Z][\w'.-]*(?:\s+[\w'.#-]+)*(?:,\s*[\w'.# -]+){0,5})"
)
_LIVES_ZH = re.compile(
    r"我(?:们)?(?:家)?(?:现在|目前|一直)?(?:就)?(?:住在|居住在|家在|搬到了?|搬去了?)"
    r"(?P<place>[\u4e00-\u9fff\w-]{2,40})"
)
_ADDRESSED_ZH = re.compile(
    r"(?P<label>收货|家庭|公司|邮寄|办公|寄送|我的|我家|新)?(?:的)?地址(?:是|为|改成|改为|：|:)"
    r"\s*(?P<place>[\u4e00-\u9fff\w-]{3,60})"
)


def emails(one: Sentence) -> Iterator[FoundFact]:
    """Addresses of mail."""
    for found in _EMAIL.finditer(one.text):
        if _MACHINE.match(found[0]) or _OTHERS.search(one.text[: found.start()]):
            continue
        value = found[0]
        mine = re.search(r"(?i)\bmy\b|\bme\b|\bI\b|我", one.text[: found.start()])
        yield FoundFact(FactKind.EMAIL, value, "mine" if mine else normal(value), one.text)


def dates(one: Sentence, said_on: date | None) -> Iterator[FoundFact]:
    """Days, with what is on them. One that is named from where the speaker stands is its date, and
    how it was named."""
    for pattern in (_DATED, _DOES, _SOON, _HAS):
        for found in pattern.finditer(one.text):
            label, day = normal(found["label"]), _day(found, said_on)
            if label.split()[-1] in _NO_LABEL or not plain_lead(one.text[: found.start()]):
                continue
            label = "born" if label.endswith("born") else label
            if day:
                yield FoundFact(FactKind.DATE, f"{label}: {day}", label, one.text)
    for pattern in (_DATED_ZH, _SOON_ZH):
        for found in pattern.finditer(one.text):
            label = re.sub(r"^(?:我们?的?|这个|那个|项目的)", "", found["label"])
            day = _day(found, said_on)
            if not label or label in _NO_LABEL_ZH or not plain_lead(one.text[: found.start()]):
                continue
            if day:
                yield FoundFact(FactKind.DATE, f"{label}: {day}", label, one.text)


def _day(found: re.Match[str], said_on: date | None) -> str:
    """The day that was found; empty: it is not known which."""
    groups = found.groupdict()
    if groups.get("day"):
        return found["day"].rstrip(".")
    return dated(found["soon"].rstrip(".,"), said_on) if said_on is not None else ""


def addresses(one: Sentence) -> Iterator[FoundFact]:
    """Places where the user lives or gets mail."""
    for pattern in (_LIVES, _ADDRESSED, _SENT, _LIVES_ZH, _ADDRESSED_ZH):
        for found in pattern.finditer(one.text):
            if not plain_lead(one.text[: found.start()]):
                continue
            place = clause(found["place"])
            named = found.groupdict().get("label") or "home"
            label = normal(named).removeprefix("new").strip()
            if len(place) >= 2:
                yield FoundFact(FactKind.ADDRESS, place, label or "home", one.text)


def identifiers(one: Sentence) -> Iterator[FoundFact]:
    """Numbers and codes, with what they are of."""
    for pattern in (_NUMBERED, _NUMBERED_ZH):
        for found in pattern.finditer(one.text):
            label, value = normal(found["label"]), found["value"].rstrip(".,;:")
            if _SECRET.search(label) or _PASSING.search(label) or is_card(value):
                continue
            if plain_lead(one.text[: found.start()]) and not re.fullmatch(rf"(?i){_DAY}", value):
                said = f"{label}: {value}"
                subject = label if _CHANGES.search(label) else normal(said)
                yield FoundFact(FactKind.IDENTIFIER, said, subject, one.text)


def is_card(value: str) -> bool:
    """True for the number of a payment card: 13 to 19 digits with Luhn's check digit (ISO/IEC
    7812)."""
    digits = [int(one) for one in re.sub(r"[ -]", "", value) if one.isdigit()]
    if not 13 <= len(digits) <= 19 or re.search(r"[^\d -]", value):
        return False
    doubled = (sum(divmod(2 * one, 10)) for one in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
