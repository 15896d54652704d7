"""What was decided."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .clauses import clause, plain_lead
from .fact import FactKind, FoundFact, normal
from .prose import Sentence

_WHO = (
    r"(?:we|we've|we have|I|I've|I have|you've|you have|the team|our team|the team has"
    r"|everyone|the board|the group)"
)
_SINCE = (
    r"(?:(?:all|both|finally|just|now|have|has|already|also|then|jointly|together|today"
    r"|unanimously) )*"
)
_DECIDED = re.compile(
    rf"(?i)\b{_WHO} {_SINCE}(?P<said>(?:decided|agreed|opted|resolved|chosen?|settled|concluded"
    rf"|confirmed)"
    rf"(?: (?:to|on|that|upon|against|for|not to|we|the|a|an))?\b .+)$"
)
_PASSIVE = re.compile(
    r"(?i)(?:\bit (?:was|has been|is) (?P<said>(?:decided|agreed|confirmed|settled) (?:to|that|on)"
    r" .+)|^(?:final )?decision: ?(?P<noted>.+))$"
)
_CHOOSING = (
    r"(?:use|using|go with|going with|keep|adopt|switch(?:ing)? to|switch from|migrate to|move to"
    r"|stick (?:with|to)|standardi[sz]e on|choose"
    r"|replace|drop|target|support|deploy (?:to|on|with)|host|store|write|build|ship)"
)
_WILL = re.compile(
    rf"(?i)\b(?P<who>we|I)(?:'ll| (?P<will>will|shall)|'re going to| are going to| am going to"
    rf"|'m going to) (?:now |instead |then |just )*"
    rf"(?P<said>(?:not |never |no longer )?{_CHOOSING}\b .+)$"
    rf"|\b(?:we|I) won['’]t (?P<wont>{_CHOOSING}\b .+)$"
)
_LETS = re.compile(
    rf"(?i)\b(?:let's|let us|lets) (?:just |then |now |all )*(?P<said>(?:{_CHOOSING}|take"
    rf"|do it with) .+)$"
)
_ORDERED = re.compile(rf"(?i)(?P<lead>.*?)(?P<said>\b(?:{_CHOOSING}) .+)$")
_CORRECTS = re.compile(
    r"(?i)\b(?:actually|on second thoughts?|change of plans?|scratch that|correction|instead"
    r"|no longer|after all|rather)\b"
    r"|其实|改用|改成|换成|换回|还是|不再|算了|改为"
)
_REPLACED = (
    re.compile(r"(?i)\binstead of (?:using )?(?P<old>[\w .+#-]+?)(?= for |$|,)"),
    re.compile(
        r"(?i)\b(?:switch(?:ing)?|migrat\w+|mov\w+) from (?P<old>[\w .+#-]+?)"
        r" to (?P<new>[\w .+#-]+)"
    ),
    re.compile(r"(?i)\breplace (?P<old>[\w .+#-]+?) (?:with|by) (?P<new>[\w .+#-]+)"),
    re.compile(r"\b(?:[Rr]ather than|and not|not) (?P<old>[A-Z][\w.+#-]*)\b"),
    re.compile(
        r"(?i)\b(?:not to use|(?:not|never|won['’]t) use|against(?: using)?|drop|no longer use)"
        r" (?P<old>[\w.+#-]+)"
    ),
    re.compile(
        r"(?:不用|不再(?:使?用)|放弃)(?P<old>[\w.+#-]+|[\u4e00-\u9fff]{1,8}?)(?=了|，|,|改|换|$)"
    ),
    re.compile(
        r"(?:从|把|将)(?P<old>[\w.+#-]+|[\u4e00-\u9fff]{1,8}?)(?:换成|改成|改为|迁移到|替换为)"
    ),
)
_PURPOSE = re.compile(
    r"(?i) (?:for|as)(?: (?:the|our|my|all|this|its|a|an))? (?P<purpose>[\w' -]{2,40}?)$"
)
_DETAIL = re.compile(r"(?i) (?:for|because|since|so that|due to|in order to|as) .*$")
_DECIDED_ZH = re.compile(
    r"(?:我们|我|团队|大家|双方|公司)(?:已经|最终|最后|现在|都|一致|刚刚|刚|今天|昨天|也|已|讨论后"
    r"|商量后|开会)*"
    r"(?P<said>(?:决定|确定|商定|选择|选定|选|同意|敲定|定下"
    r"|(?<=[们队家方司终后已都])确认)(?!权|性|论|书|不了|题|一?下)(?:了|要)?"
    r".{2,})$"
)
_CHOSEN_ZH = re.compile(
    r"(?:^|，|,|那|那就|我们|好的?)(?:我们)?(?:就|还是|那就|最终|以后|都)(?P<said>(?:使?用|选择?"
    r"|采用|按|改用).{1,}?)(?:吧|了|好了)$"
)
_CHANGED_ZH = re.compile(r"(?P<said>(?:改用|换成|改成|改为|换回|迁移到)(?!什么).{1,}?)(?:吧|了)?$")
_PURPOSE_ZH = re.compile(r"(?:作为|作|做|当)(?P<purpose>[\u4e00-\u9fff]{2,8})$")
_NO_PURPOSE_ZH = re.compile(
    r"我|们|大家|团队|公司|双方|^(?:最后|最终|然后|后来|现在|今天|昨天|所以|因为|那么|好的)"
)
_ABOUT_ZH = re.compile(r"(?P<purpose>[\u4e00-\u9fff]{2,6}?)(?:就|还是|都|我们|决定|改)*$")


def decisions(one: Sentence, *, user: bool) -> Iterator[FoundFact]:
    """What was decided. An assistant's plans are none: of what it says only what names a decision
    counts."""
    for pattern in (_DECIDED, _PASSIVE, _DECIDED_ZH):
        found = pattern.search(one.text)
        if found is not None:
            name = "noted" if found.groupdict().get("noted") else "said"
            if plain_lead(one.text[: found.start()]):
                yield _decision(one, found[name])
            return
    if not user:
        return
    for pattern in (_WILL, _LETS, _CHOSEN_ZH, _CHANGED_ZH):
        found = pattern.search(one.text)
        if found is None:
            continue
        lead = one.text[: found.start("said") if pattern is _CHANGED_ZH else found.start()]
        wont = found.groupdict().get("wont")
        said = f"not {wont}" if wont else found["said"]
        if not _firm(_CORRECTS.sub("", lead)) or re.search(r"(?i)\bwhen\b|\bunless\b", said):
            return
        will = "will " if pattern is _WILL else ""
        yield _decision(one, will + said)
        return
    ordered = _ORDERED.match(one.text) if _CORRECTS.search(one.text) else None
    if ordered is not None and not re.search(
        r"[A-Za-z]", _CORRECTS.sub("", ordered["lead"]).replace("no", "")
    ):
        yield _decision(one, ordered["said"])


def _firm(lead: str) -> bool:
    bare = re.sub(r"[，,].*$", "", lead) if re.search(r"[\u4e00-\u9fff]", lead) else lead
    return plain_lead(lead) or (
        bool(re.search(r"[\u4e00-\u9fff]", lead)) and plain_lead(f"{bare}，")
    )


def _decision(one: Sentence, said: str) -> FoundFact:
    whole = clause(said)
    value = _short(whole)
    replaces = next((found["old"].strip() for p in _REPLACED if (found := p.search(one.text))), "")
    return FoundFact(
        FactKind.DECISION,
        value,
        _subject(one.text, whole, value),
        one.text,
        replaces=normal(replaces),
        corrects=bool(_CORRECTS.search(one.text)),
    )


def _short(said: str) -> str:
    """A decision without what it is for or because of, where something is left that was decided: a
    verb and what it is done to."""
    cut = _DETAIL.search(said)
    while cut is not None:
        head = re.sub(
            r"(?i)^(?:decided|agreed|opted|resolved|confirmed) (?:to|that|on)\s+|^will ",
            "",
            said[: cut.start()],
        )
        if len(head.split()) >= 2:
            return said[: cut.start()]
        cut = _DETAIL.search(said, cut.start() + 1)
    return said


def _subject(text: str, whole: str, value: str) -> str:
    """What a decision is about: what it is for, where it says so; else itself."""
    purpose = _PURPOSE.search(whole) or _PURPOSE_ZH.search(whole)
    if (purpose is not None and whole != value) or (
        purpose is not None and _PURPOSE_ZH.search(whole)
    ):
        assert purpose is not None
        return f"for {normal(purpose['purpose'])}"
    before = _ABOUT_ZH.match(text[: max(0, text.find(value))]) if value in text else None
    if before is not None and not _NO_PURPOSE_ZH.search(before["purpose"]):
        return f"for {before['purpose']}"
    return normal(
        re.sub(r"(?i)^(?:decided|agreed|opted|will|决定|确定)(?: to| that)?\s*", "", value)
    )
