"""Reading a provider's refusal for length: which limit does the text name?

Wordings as the vendors' APIs have them: OpenAI «This model's maximum context length is 128000
tokens. However, your messages resulted in 130000 tokens», Anthropic «prompt is too long: 208310
tokens > 200000 maximum», Google «The input token count (1052880) exceeds the maximum number of
tokens allowed (1048576)», and servers that speak OpenAI's form.
"""

from __future__ import annotations

import re

_NUMBER = r"(\d[\d,_.]*\d|\d)"
_WORDINGS = (
    re.compile(rf"maximum context length (?:is|of) {_NUMBER}", re.IGNORECASE),
    re.compile(rf"> {_NUMBER} maximum", re.IGNORECASE),
    re.compile(rf"maximum number of tokens allowed \(?{_NUMBER}", re.IGNORECASE),
    re.compile(rf"context (?:window|size|length|limit) (?:is |of |\()+{_NUMBER}", re.IGNORECASE),
    re.compile(rf"limit (?:is|of) {_NUMBER} tokens", re.IGNORECASE),
)
MAX_TEXT = 8_192


def limit_in(text: str) -> int:
    """The limit in tokens that the text names; 0: none."""
    for wording in _WORDINGS:
        found = wording.search(text[:MAX_TEXT])
        if found:
            digits = re.sub(r"\D", "", found[1])
            return int(digits) if digits and len(digits) < 10 else 0
    return 0
