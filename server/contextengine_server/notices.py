"""What a harness writes into a user's message: context of its own, which no user said.

Agents that speak to a model by themselves put their notices where a provider has no place for them,
between tags in a message of the user's. Beside a prompt of ten words they may be thousands. Pure;
linear.
"""

from __future__ import annotations

import re

_TAGS = (
    # Claude Code, and those made after it.
    "system-reminder",
    "local-command-caveat",
    "local-command-stdout",
    # Codex 0.169; INSTRUCTIONS holds the text of AGENTS.md.
    "environment_context",
    "user_instructions",
    "INSTRUCTIONS",
    "permissions instructions",
    "collaboration_mode",
    "skill",
    "turn_aborted",
    "user_shell_command",
    "subagent_notification",
    # Gemini CLI.
    "session_context",
    # Cline and Roo Code.
    "environment_details",
)
_OPEN = re.compile(
    rf"(?:(?<![^\n])|(?<=>))[ \t]{{0,9}}(?:# AGENTS\.md [^\n]{{0,400}}\s{{1,9}})?"
    rf"<({'|'.join(_TAGS)})>"
)
"""At the beginning of a line, or behind another tag: within a line a user may speak of one."""


def parted(text: str) -> tuple[str, str]:
    """What the user says in a message, and what the harness does. A tag that nothing closes is the
    user's."""
    said: list[str] = []
    told: list[str] = []
    unclosed: set[str] = set()
    begin = at = 0
    while (opened := _OPEN.search(text, at)) is not None:
        tag = opened[1]
        end = -1 if tag in unclosed else text.find(f"</{tag}>", opened.end())
        if end < 0:
            unclosed.add(tag)
            at = opened.end()
            continue
        said.append(text[begin : opened.start()])
        told.append(text[opened.end() : end].strip())
        begin = at = end + len(tag) + len("</>")
    said.append(text[begin:])
    return ("\n".join(filter(str.strip, said)) if told else text), "\n".join(told)
