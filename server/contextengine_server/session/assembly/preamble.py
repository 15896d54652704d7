"""What stands before the user's message of one turn, so that the system prompt stays as it is and a
provider's cache with it (docs/semantics.md#the-dynamic-preamble)."""

from __future__ import annotations

import msgspec

from contextengine_server.context.summary_text import fenced


class PreambleSections(msgspec.Struct, frozen=True):
    """The categories that Comis takes out of the system prompt. Empty: none."""

    date_time: str = ""
    inbound_metadata: str = ""
    channel_context: str = ""
    retrieval_results: str = ""
    active_skills: str = ""
    sender_trust: str = ""


_TITLES = {
    "date_time": "Date and time",
    "inbound_metadata": "About this message",
    "channel_context": "Channel",
    "sender_trust": "Trust in senders",
    "active_skills": "Active skills",
    "retrieval_results": "Retrieved",
}
"""In the order in which they are shown."""
_DATA = frozenset({"inbound_metadata", "retrieval_results"})
"""What others wrote: senders name themselves, and documents are anybody's."""


def preamble_of(sections: PreambleSections) -> str:
    """The sections that there are, each under its title; what others wrote is fenced. Empty where
    there is none."""
    said = []
    for name, title in _TITLES.items():
        text = getattr(sections, name).strip()
        if text:
            said.append(f"[{title}]\n{fenced(text) if name in _DATA else text}")
    return "\n\n".join(said)
