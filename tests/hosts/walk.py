"""The commands that docs/hosts.md gives a new user, host by host."""

from __future__ import annotations

import re

from tests.acceptance.shell import ROOT

PAGE = ROOT / "docs" / "hosts.md"


def commands() -> dict[str, list[str]]:
    """The lines of the first block of each part, by its title; before all parts, those of `all`."""
    parts = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = dict(zip(["all", *parts[1::2]], parts[0::2], strict=True))
    return {title: _first_block(text) for title, text in named.items()}


def _first_block(text: str) -> list[str]:
    found = re.search(r"(?:^    .+\n)+", text, flags=re.MULTILINE)
    return [line.strip() for line in found[0].splitlines()] if found else []
