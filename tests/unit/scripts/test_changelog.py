"""The changelog is in its form, and becomes a release's."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys

import pytest

from scripts import changelog, version

TEXT = (version.ROOT / changelog.NAME).read_text(encoding="utf-8")
DAY = datetime.date(2031, 2, 3)
FIRST = """# Changelog

Words.

## [Unreleased]

### Added

- A thing.

[Unreleased]: https://github.com/contextengine/contextengine/commits/main
"""


def test_ours_is_in_its_form() -> None:
    """https://keepachangelog.com/en/1.1.0"""
    headings = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    for heading in headings[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading), heading
    kinds = set(re.findall(r"^### (.+)$", TEXT, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    links = re.findall(r"^\[(.+)\]: ", TEXT, re.MULTILINE)
    assert links == re.findall(r"^## \[(.+?)\]", TEXT, re.MULTILINE)


def test_a_first_release() -> None:
    assert (
        changelog.released(FIRST, "9.8.7", DAY)
        == """# Changelog

Words.

## [Unreleased]

## [9.8.7] - 2031-02-03

### Added

- A thing.

[Unreleased]: https://github.com/contextengine/contextengine/compare/v9.8.7...HEAD
[9.8.7]: https://github.com/contextengine/contextengine/releases/tag/v9.8.7
"""
    )


def test_a_later_release() -> None:
    first = changelog.released(FIRST, "9.8.7", DAY)
    more = first.replace("## [Unreleased]\n", "## [Unreleased]\n\n### Fixed\n\n- A fault.\n")
    second = changelog.released(more, "9.8.8", DAY)
    assert changelog.section(second, "9.8.8") == "### Fixed\n\n- A fault."
    assert changelog.section(second, "9.8.7") == "### Added\n\n- A thing."
    assert re.findall(r"^\[.*$", second, re.MULTILINE) == [
        f"[Unreleased]: {changelog.REPOSITORY}/compare/v9.8.8...HEAD",
        f"[9.8.8]: {changelog.REPOSITORY}/compare/v9.8.7...v9.8.8",
        f"[9.8.7]: {changelog.REPOSITORY}/releases/tag/v9.8.7",
    ]


def test_a_release_of_nothing_is_none() -> None:
    first = changelog.released(FIRST, "9.8.7", DAY)
    with pytest.raises(LookupError, match="nothing of Unreleased"):
        changelog.released(first, "9.8.8", DAY)
    more = first.replace("## [Unreleased]\n", "## [Unreleased]\n\n- A fault.\n")
    with pytest.raises(ValueError, match=r"has 9\.8\.7 already"):
        changelog.released(more, "9.8.7", DAY)


def test_what_a_version_says_is_printed() -> None:
    script = changelog.__file__
    done = subprocess.run(
        [sys.executable, script, "7.8.9"], capture_output=True, text=True, timeout=150, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "CHANGELOG.md says nothing of 7.8.9\n"
