"""What stands before and behind a statement, and whether it is still a statement then."""

from __future__ import annotations

import re

_CUT = re.compile(
    r"(?i)\s*(?:,\s+(?:but|because|since|so|and|which|thanks|please|though|although|if|as)\b"
    r"|[,;]\s+(?:thanks|thank you|please)\b|\s(?:because|but|although|though|however)\b|\s[-–—]\s"
    r"|[，；、]\s*(?:但|因为|所以|谢谢|请|而且|不过|想|并且|然后|麻烦)|[，；]).*$"
)
_TAIL = " .,;:!?。，；：！？、~…\"'"
_UNSURE = re.compile(
    r"(?i)\b(?:not|n't|never|no one|nobody|think|thought|believe|maybe|perhaps|probably|possibly"
    r"|might"
    r"|may|could|would|should|hope|said|says|say|told|tells|heard|claims?|claimed|wrote|asked|until"
    r"|before|once|when|they|he|she|had|(?<![@.])example(?!\.)|pretend|doubt|sure)\b|n't\b|n’t\b"
    r"|没|未|不|可能|也许|或许|大概|听说|据说|他|她|曾经|以前|差点|觉得|认为|说"
)


def clause(text: str) -> str:
    """A statement up to where another one begins, without marks at its end."""
    return _CUT.sub("", text).strip(_TAIL)


def plain_lead(lead: str) -> bool:
    """True where what stands before a statement lets it stand as one: nothing, or an introduction
    that says of it neither that it is not so, nor that others say so, nor that it may be so."""
    return not _UNSURE.search(lead) and (not lead.strip() or _introduces(lead))


def _introduces(lead: str) -> bool:
    said = lead.rstrip()
    return said[-1] in ",:;，：；、-–—…" or bool(_LEAD.search(said))


_LEAD = re.compile(
    r"(?i)(?:^|[\s,])(?:and|but|so|also|ok|okay|well|yes|yeah|hi|hello|hey|then|now|actually"
    r"|finally"
    r"|remember(?: that)?|note(?: that)?|fyi|btw|by the way|for the record|that|today|yesterday"
    r"|please|because|since|as|just|plus|instead)$|(?:那|那么|好的?|嗯|另外|对了|所以|因为|而且"
    r"|其实|现在|今天|昨天|记住|注意|最后|最终|请|以后|你好|您好)$"
)
