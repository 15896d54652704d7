"""What is made once calls are answered, so that neither a start waits for it nor the first call
that needs it: expressions which take a tenth of a second to compile, and which most calls never
need."""

from __future__ import annotations

from importlib import import_module

from contextengine_server.engines.layered.words import LANGUAGES


def warm_up() -> None:
    """Compiles them; in a thread, which gives way to the event loop every few milliseconds."""
    import_module("contextengine_server.memory.extraction.stated")
    for language in LANGUAGES:
        language.compile()
