r"""Takes secrets out of text before it leaves the process.

What a secret looks like (keys with a known prefix, private keys, tokens of JWT form), where it
stands (credentials in addresses, headers of requests, options of commands), or what it is called
(`api_key`, `DB_PASSWORD=`). A mark stands in its place. In doubt it is taken for a secret: a
summary does without, and a leak cannot be undone.

All patterns are matched by RE2, whose time is linear in the text whatever the text is. No pattern
looks further for its end than a text may repeat its beginning: then many beginnings without an end
would cost the square.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

MARK = "[redacted]"
"""What stands in a secret's place."""

_NAMES = (
    r"pass(?:word|wd|phrase|code)|pwd|secret|token|jwt|credentials?|(?:ssh|gpg|pgp)[_-]?key"
    r"|(?:api|app|access|secret|private|signing|encryption|master|account|shared|storage|auth|licen[cs]e|deploy|service"
    r"|session[_-]?secret|hmac|webhook|subscription|client)[ _-]?key(?:[_-]?id)?|api[_-]?secret"
    r"|auth[_-]?code|_auth"
    r"|密码|密碼|口令|密钥|金鑰|令牌|パスワード|비밀번호|пароль"
    r"|passwort|kennwort|contraseña|mot de passe|senha"
    r"|wachtwoord"
)
_SUFFIX = r"(?:[_-]?(?:value|base64|b64|raw|\d{1,4}))?"
_SEP = r"(?:[ \t]*(?:===?|!==?|:=|=>|=|:|：)[ \t]*)"

# A value, in this order: in quotes that are themselves escaped (JSON inside JSON), in quotes, bare.
# A quote that is never closed ends with its line.
_QUOTED = (
    r"\\+\"(?:[^\"\\\n]|\\{2,}\"|\\+[^\"\\\n])*(?:\\+\")?"
    r"|\"(?:[^\"\\\n]|\\.)*\"?"
    r"|'(?:[^'\\\n]|\\.)*'?"
    r"|`[^`\n]*`?"
)
_BARE = r"[^\s\"'`<>]+"

_NOISE = r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x{ad}\x{200b}\x{2060}\x{feff}]"
"""What says nothing and could part a secret: colours of terminals, controls, and characters of no
width but for the two that scripts are written with."""

# The body may hold single dashes and not two in a row. So the search for the end of a block that
# has none stops at the next line of dashes, and takes time in proportion to the text.
_PEM = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:[^-]|-[^-])*-?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\\+[rn]|\s)*(?:[A-Za-z-]+: [^\n\\]*|[A-Za-z0-9+/=]{24,}))*(?:(?:\\+[rn]"
    r"|\s)*[A-Za-z0-9+/]+=+)?)"
    r"|(?:[A-Za-z0-9+/=]{40,}(?:\\+[rn]|\s)+)+[A-Za-z0-9+/=]*(?:\\+[rn]|\s)*-----END [A-Z0-9 "
    r"]*PRIVATE KEY(?: BLOCK)?-----"
)

_PREFIXED = "|".join(
    (
        # OpenAI, Anthropic, Stripe and kin
        r"\b(?:sk|pk|rk|ak)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}[A-Za-z0-9_-]*",
        r"\bgh[opsur]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{20,}|\bgl(?:pat|dt|rt|cbt|ptt|soat)-[\w-]{16,}",
        r"\bxox[a-z]-[\w-]{8,}|\bxapp-[\w-]{8,}|hooks\.slack\.com/services/[\w/]+|/api/webhooks/\d+/[\w-]+",
        r"\b(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA|ANVA)[A-Z0-9]{12,}|\bABSK[A-Za-z0-9+/=]{40,}",
        r"\bAIza[\w-]{30,}|\bya29\.[\w-]{10,}|\bGOCSPX-[\w-]{16,}|\b1//0[\w-]{20,}",
        r"\bnpm_[A-Za-z0-9]{20,}|\bpypi-[\w-]{20,}|\brubygems_\w{20,}|\bdckr_(?:pat|oat)_[\w-]{16,}",
        r"\bhf_[A-Za-z0-9]{16,}|\bgsk_[A-Za-z0-9]{16,}|\bxai-[A-Za-z0-9]{16,}|\br8_[A-Za-z0-9]{16,}|\bpplx-[A-Za-z0-9]{16,}",
        r"\btvly-[\w-]{16,}|\bntn_[A-Za-z0-9]{16,}|\blin_(?:api|oauth)_[A-Za-z0-9]{16,}|\bfig[dou]_[\w-]{16,}",
        r"\bSG\.[\w-]{16,}\.[\w-]{16,}|\bkey-[0-9a-f]{32}\b|\b(?:SK|AC)[0-9a-f]{32}\b|\bsq0[a-z]{3}-[\w-]{16,}",
        r"\bdo[opr]_v1_[0-9a-f]{16,}|\bdapi[0-9a-f]{32}|\bdp\.[a-z]{2,5}\.[\w.-]{16,}|\bhv[bsr]\.[\w-]{16,}|\bshp(?:at|ca|pa|ss)_\w{16,}",
        r"\bwhsec_[\w+/=]{16,}|\bAGE-SECRET-KEY-1[A-Z0-9]{20,}|\bglsa_\w{16,}|\bPMAK-[\w-]{16,}|\bEAA[A-Za-z0-9]{60,}",
        # bots of Telegram and Discord
        r"\b\d{8,10}:AA[\w-]{30,}|\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}",
        r"\beyJ[\w-]{8,}\.(?:eyJ)?[\w-]{8,}(?:\.[\w-]*)*",
    )
)

_Rule = tuple[str, Callable[[Any], str]]


def redact(text: str) -> str:
    """`text` without its secrets. Pure; linear; no text makes it fail. What UTF-8 cannot carry is
    replaced too."""
    text = _carried(text)
    if not text or _any().search(text) is None:
        return text  # nearly every text: one pass over it where the rules take twenty
    for pattern, replacement in _compiled():
        text = pattern.sub(replacement, text)
    return text


def redact_all(texts: Sequence[str]) -> list[str]:
    """Each of these without its secrets, as `redact` has it. Where none holds any, which is the
    rule, they are looked through as one: RE2 gives up the interpreter for each look, and beside
    busy threads to get it back took ten times what the look took."""
    whole = [*map(_carried, texts)]
    # What begins or ends a text is no part of a word, as a line break is none, and no rule says
    # more of where it stands: what a text holds is found in all of them joined.
    if _any().search("\n".join(whole)) is None:
        return whole
    return [*map(redact, whole)]


def _carried(text: str) -> str:
    """The text without what UTF-8 cannot carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


@cache
def _any() -> Any:
    """Where any of the rules begins to find something."""
    import re2  # late: of the processes that import this room, few redact

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = 64 << 20
    return re2.compile("|".join(f"(?:{pattern})" for pattern, _ in _RULES), options)


@cache
def _compiled() -> tuple[tuple[Any, Callable[[Any], str]], ...]:
    import re2

    options = re2.Options()
    options.log_errors = False
    return tuple((re2.compile(pattern, options), replacement) for pattern, replacement in _RULES)


def _whole(match: Any) -> str:
    return MARK


def _nothing(match: Any) -> str:
    return ""


def _behind(match: Any) -> str:
    """Keeps the first group."""
    return str(match[1]) + MARK


def _behind_if_random(match: Any) -> str:
    return _behind(match) if _looks_random(match[2]) else str(match[0])


def _between(match: Any) -> str:
    """Keeps the first and the last group."""
    return str(match[1]) + MARK + str(match[match.re.groups])


def _named(match: Any) -> str:
    """A value that follows a telling name."""
    name, sep, value = match[1], match[2], match[3]
    if _harmless(value, name.lower().endswith("token")) or _is_a_word(name, sep, value):
        return str(match[0])
    return f"{name}{sep}{MARK}"


def _is_a_word(name: str, sep: str, value: str) -> bool:
    """True for a word of prose or of code behind a name: `no credentials: every caller`, `const
    apiKey = await …`.

    Passwords and secrets may be words, and what is set in an environment is none; keys and tokens
    hardly are.
    """
    if (
        name.isupper()
        or value[0] in "\\\"'`"
        or not sep.endswith((" ", "\t"))
        or _WORDS.search(name.lower())
    ):
        return False
    letters = value.rstrip(",;")
    for mark in "._()[]":
        letters = letters.replace(mark, "")
    return letters.isalpha() and len(letters) <= (
        _WORD if len(letters) > len(value) - 2 else 2 * _WORD
    )


def _spoken(match: Any) -> str:
    """`the password is …`: only what no word is."""
    value = match[2]
    if value[0] not in "\"'`" and not (len(value) >= 6 and _mixed(value)):
        return str(match[0])
    return str(match[0]) if _harmless(value, False) else _behind(match)


def _user_info(match: Any) -> str:
    """`user:password@` in an address; or one long word, which is a token."""
    user, colon, _ = match[2].partition(":")
    if colon:
        return f"{match[1]}{user}:{MARK}@"
    return f"{match[1]}{MARK}@" if len(user) >= 16 or user == MARK else str(match[0])


def _mixed(value: str) -> bool:
    return any(char.isalpha() for char in value) and not value.isalpha() and not value.endswith("%")


def _looks_random(value: str) -> bool:
    return (
        len(value) >= 12
        and any(char.isdigit() for char in value)
        and any(char.isalpha() for char in value)
    )


_WORD = 14
"""Letters of a longish word."""

_WORDS = re.compile("pass|pwd|secret|phrase|密|口令|senha|wort|contrase|パス|비밀|парол")
"""Names whose values may be words."""

_PUBLIC = ("PRIMARY_", "FOREIGN_", "PUBLIC_", "PARTITION_", "SORT_", "CACHE_", "UNIQUE_")
"""Beginnings of names whose keys open nothing."""

_HARMLESS = frozenset(
    """
    true false null none nil undefined void str string text int integer number float bool boolean
    bytes any object optional required yes no on off missing invalid expired empty unset default
    wrong correct incorrect
    """.split()  # noqa: SIM905 (a list of forty quoted words reads worse)
)
_REFERENCES = (
    "os.environ",
    "os.getenv",
    "process.env",
    "getenv(",
    "import.meta.env",
    "system.getenv",
    "env[",
)


def _harmless(value: str, token: bool) -> bool:
    """True for a value that is none: a placeholder, a reference to where the secret is, a type, a
    count of tokens."""
    bare = value.strip("\\\"'`").rstrip(",;.)]}|")
    folded = bare.casefold()
    if not bare or bare == MARK[:-1] or folded in _HARMLESS or folded.startswith(_REFERENCES):
        return True
    if (
        token
        and len(bare) <= 9
        and bare.replace(",", "").replace("_", "").replace(".", "").isdigit()
    ):
        return True
    if bare[0] == "$":
        # A password may begin with a dollar as well: only what a shell's variable looks like.
        name = bare[1:].strip("{}()")
        return bare[1:2] in ("{", "(") or (name == name.upper() and name.replace("_", "").isalpha())
    return (
        not bare.strip("*•.xX-_#…") or (bare[0] == "<" and bare[-1] == ">") or bare.startswith("{{")
    )


_RULES: tuple[_Rule, ...] = (
    (_NOISE, _nothing),
    (_PEM, _whole),
    (_PREFIXED, _whole),
    # In JSON a letter of an escape may stand before it, and looks like one of the key's own.
    (r"(\\[bfnrt])(?:" + _PREFIXED.replace(r"\b", "") + ")", _behind),
    # Addresses. The password of a database's may hold slashes; in others a slash ends what can be
    # one.
    (
        r"(?i)\b((?:postgres(?:ql)?|mysql|mariadb|mssql|sqlserver|oracle|mongodb|rediss?|amqps?|kafka|nats|ldaps?|s?ftp|smtps?"
        r"|clickhouse|cockroachdb|neo4j|bolt|jdbc:[a-z:]+)(?:\+[a-z0-9+]+)?://)([^\s\"'`<>]*)@",
        _user_info,
    ),
    (r"(?i)\b([a-z][a-z0-9+.-]*://)([^\s\"'`<>/?#]+)@", _user_info),
    # Headers of requests.
    (
        r"(?i)((?:proxy-)?authorization\\*[\"']?[ \t]*[:=][ \t]*\\*[\"']?)((?:[A-Za-z-]+[ "
        r"\t]+)?[^\s\"'\\,;\[]+)",
        _behind,
    ),
    (r"(?i)(\b(?:set-)?cookie2?\\*[\"']?[ \t]*:[ \t]*\\*[\"']?)([^\s\"'\\\[][^\n\"'\\]*)", _behind),
    (
        r"(?i)(\b(?:bearer|basic|token|digest|negotiate|apikey)[ \t]+)([A-Za-z0-9._~+/=-]{12,})",
        _behind_if_random,
    ),
    # Options of commands.
    (
        rf"(?i)(-[\w-]*(?:{_NAMES})[ \t]+)((?:[^\s\"'`<>-]|{_QUOTED})[^\s\"'`<>]*)",
        lambda match: str(match[0]) if _harmless(match[2], False) else _behind(match),
    ),
    (r"(\s(?:-u|--user)[ \t=]+\\*[\"']?[^\s\"':]+:)([^\s\"']+)", _behind),
    (r"(?i)(\bsshpass[ \t]+-p[ \t]*)(\S+)", _behind),
    # Names. Upper-case ones are variables of an environment, whose values go on to the next white
    # space.
    (
        rf"([A-Z0-9_]*_(?:KEY|PASS|PW|PAT|AUTH|SALT|PEPPER|DSN)(?:_?\d+)?\\*[\"']?)({_SEP})({_QUOTED}|\S+)",
        lambda match: str(match[0]) if match[1].startswith(_PUBLIC) else _named(match),
    ),
    (
        r"([A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY)(?:_?\d+)?)(=)"
        rf"({_QUOTED}|[^\s\"'`]\S*)",
        _named,
    ),
    (
        rf"(?i)((?:{_NAMES}){_SUFFIX}\\*[\"'`]?[\])]?)({_SEP}|[\"']\s*:\s*|\\+\"\s*:\s*)({_QUOTED}|{_BARE})",
        _named,
    ),
    (
        rf"(?i)(\b(?:{_NAMES}|pin(?: code)?)(?:[ \t]+(?:is|was|will be|now|changed to|set to)|是"
        rf"|为)[ \t:：]+)({_QUOTED}|{_BARE})",
        _spoken,
    ),
    (rf"(?i)(<[\w:.-]*(?:{_NAMES})(?:\s[^<>]*)?>)([^<>\s][^<>]*)(</)", _between),
    (
        rf"(?i)((?:key|name)\s*=\s*[\"'][\w:.-]*(?:{_NAMES})[\"']\s+value\s*=\s*[\"'])([^\"'\n]+)([\"'])",
        _between,
    ),
    (
        r"(?i)([?&;](?:key|code|auth|sig|signature|sas|x-amz-(?:signature|credential|security-token)|x-goog-signature)=)"
        r"([^&\s\"'`<>#;]+)",
        _behind_if_random,
    ),
    (
        r"((?:\b[a-z0-9_]*_key|[a-z0-9]Key)\\*[\"']?[ \t]*[:=][ "
        r"\t]*\\*[\"']?)([A-Za-z0-9+/=_.~-]{16,})",
        _behind_if_random,
    ),
)
