"""Checks how a commit message is written: as the hook `commit-msg` runs it on the file of one
message, or on every commit of a range.

    scripts/commit_message.py FILE
    scripts/commit_message.py --range origin/main..HEAD
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST = 72
"""`git log` indents by four columns, and a terminal has eighty."""
SCISSORS = re.compile(r"^. -+ >8 -+$", re.MULTILINE)
"""What `git commit --verbose` writes between the message and the changes."""
UNTIL_SQUASHED = re.compile(r"^(?:fixup|squash|amend)! ")
BY_GIT = re.compile(r'^(?:Merge |Revert "|Reapply ")')
"""Subjects that git writes, as long as what they name."""


def faults(message: str) -> Iterator[str]:
    """What is wrong with a message; nothing where it is well written."""
    subject, *rest = message.split("\n")
    subject = UNTIL_SQUASHED.sub("", subject)
    if not subject.strip():
        yield "the first line is empty: it says what the commit does"
    if len(subject) > LONGEST and not BY_GIT.match(subject):
        yield f"the subject has {len(subject)} characters: {LONGEST} at most, the why in the body"
    if subject.endswith("."):
        yield "the subject ends with a full stop: it is a title"
    if rest and rest[0]:
        yield "the second line is not empty: the body comes after an empty line"
    for number, line in enumerate(rest, 2):
        # What is one word, an address say, and what is indented as a quotation cannot be wrapped.
        if len(line) > LONGEST and " " in line and not line.startswith("    "):
            yield f"line {number} has {len(line)} characters: wrap the body at {LONGEST}"


def written(text: str) -> str:
    """The message of a file as git keeps it: without comments and what is below the scissors."""
    lines = SCISSORS.split(text, maxsplit=1)[0].splitlines()
    return "\n".join(line.rstrip() for line in lines if not line.startswith("#")).strip("\n")


def commits(range_: str) -> Iterator[tuple[str, str]]:
    """Each commit of a range but merges: its short name and its message."""
    listed = subprocess.run(
        ["git", "log", "--no-merges", "-z", "--format=%h %B", range_, "--"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for entry in filter(None, listed.split("\0")):
        name, _, message = entry.partition(" ")
        yield name, message.strip("\n")


def main() -> int:
    """Exit status 1 means: a message is not well written."""
    parser = argparse.ArgumentParser(description="Check how commit messages are written.")
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("file", nargs="?", type=Path, help="the file of one message")
    choice.add_argument("--range", help="commits as git names them, origin/main..HEAD say")
    arguments = parser.parse_args()
    if arguments.range is None:
        messages = [("this message", written(arguments.file.read_text(encoding="utf-8")))]
    else:
        messages = list(commits(arguments.range))
    found = [f"{name}: {fault}" for name, message in messages for fault in faults(message)]
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
