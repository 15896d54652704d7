"""How a commit message is written is checked, in a hook and over a range."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import commit_message

SCRIPT = Path(commit_message.__file__).resolve()
LONG = "x" * 73


@pytest.mark.parametrize(
    "message",
    [
        "Give all packages one version",
        "x" * 72,
        "Subject\n\nA body.\n\nAnother paragraph.",
        f"Subject\n\n{'https://example.org/' + LONG}",
        f"Subject\n\n    $ {'make test ' * 10}",
        "fixup! " + "x" * 72,
        f'Revert "{"x" * 70}"',
        f"Merge branch 'one-with-a-name-of-{LONG}'",
    ],
)
def test_well_written(message: str) -> None:
    assert list(commit_message.faults(message)) == []


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (LONG, "the subject has 73 characters"),
        (f"fixup! {LONG}", "the subject has 73 characters"),
        ("", "the first line is empty"),
        ("\n\nA body.", "the first line is empty"),
        ("Mend it.", "ends with a full stop"),
        ("Mend it\nbecause it was broken", "the second line is not empty"),
        (f"Mend it\n\nFine.\n{'word ' * 15}", "line 4 has 75 characters"),
    ],
)
def test_not_well_written(message: str, fault: str) -> None:
    (found,) = commit_message.faults(message)
    assert fault in found


def test_what_git_takes_away_is_not_looked_at() -> None:
    text = f"""Mend it

Because.
# Please enter the commit message for your changes. {LONG}
# ------------------------ >8 ------------------------
diff --git a/{LONG} b/{LONG} and further
"""
    assert commit_message.written(text) == "Mend it\n\nBecause."


def check(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("Mend it\n\n# a comment\n")
    (tmp_path / "bad").write_text(f"{LONG}\n")
    assert check("good", cwd=tmp_path).returncode == 0
    done = check("bad", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "this message: the subject has 73 characters: 72 at most, the why in the body\n"
    )


def test_a_range(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", *who, *words], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    for subject in ("First.", "Second", "Third.\n\nWith a body", "Fourth"):
        git("commit", "--quiet", "--allow-empty", "--no-verify", "--message", subject)
    third = git("log", "-1", "--format=%h", "HEAD~1")
    done = check("--range", "HEAD~3..HEAD", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"{third}: the subject ends with a full stop: it is a title\n"
    assert check("--range", "HEAD~1..HEAD", cwd=tmp_path).returncode == 0
