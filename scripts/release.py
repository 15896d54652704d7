"""Releases a version: `make release VERSION=0.2.0`.

Checks that the tree is clean, on main, and that the version is a new one; sets it in every package,
gives it its section of CHANGELOG.md, runs what CI runs, takes the protos as they are for the
contract that `buf breaking` compares with, commits and tags. Where a check fails, everything is as
it was. Nothing is pushed: the command for that is printed.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
from pathlib import Path

# Run as a file this script finds its siblings beside itself; from the tests they are a package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts import changelog
from scripts import version as versions

BRANCH = "main"
CHECKS = (["bash", ".ci/run"], ["make", "proto-image"])
"""What must succeed with the new version before it is committed."""


class Refused(Exception):
    """There is a reason not to release; the message says what to do."""


class Repository:
    """A clone of this repository."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *words: str) -> str:
        """What a git command answers. Raises CalledProcessError where it fails."""
        return subprocess.run(
            ["git", *words], cwd=self.root, stdout=subprocess.PIPE, text=True, check=True
        ).stdout.strip()

    def refuse(self, version: str) -> None:
        """Raises Refused where this version cannot be released from here."""
        branch = self.git("rev-parse", "--abbrev-ref", "HEAD")
        if branch != BRANCH:
            raise Refused(f"this is the branch {branch}: releases are made on {BRANCH}")
        changed = self.git("status", "--porcelain")
        if changed:
            raise Refused(f"the tree is not clean, commit or stash first:\n{changed}")
        taken = self.git("tag", "--list", *tags(version))
        if taken:
            raise Refused(f"there is a tag already: {', '.join(taken.split())}")
        present = versions.current(self.root)
        if _order(version) < _order(present):
            raise Refused(f"{version} is older than the present version, {present}")

    def write(self, version: str, day: datetime.date) -> list[str]:
        """Sets the version everywhere; answers the paths that changed."""
        path = self.root / changelog.NAME
        text = changelog.released(path.read_text(encoding="utf-8"), version, day)
        changed = versions.put(version, self.root)
        path.write_text(text, encoding="utf-8")
        return [*changed, changelog.NAME]

    def check(self) -> None:
        """Runs the checks. Raises Refused where one fails."""
        for command in CHECKS:
            if subprocess.run(command, cwd=self.root, check=False).returncode:
                raise Refused(f"`{' '.join(command)}` failed: nothing is released")

    def keep(self, version: str) -> None:
        """Commits what is written, and tags it."""
        self.git("commit", "--quiet", "--all", "--message", f"Release {version}")
        said = changelog.section((self.root / changelog.NAME).read_text(encoding="utf-8"), version)
        for tag in tags(version):
            # Headings of the changelog begin with #, which git would take for comments.
            self.git(
                "tag", "--annotate", "--cleanup=verbatim", "--message", f"{tag}\n\n{said}", tag
            )

    def restore(self) -> None:
        """Takes back what is written and not committed."""
        self.git("checkout", "--quiet", "HEAD", "--", ".")


def tags(version: str) -> tuple[str, str]:
    """The tags of a release. Go finds a module below the root by a tag with its directory."""
    return f"v{version}", f"clients/go/v{version}"


def release(root: Path, version: str, day: datetime.date, dry_run: bool) -> None:
    """Releases a version, or with `dry_run` says what would be done and changes nothing. Raises
    Refused, LookupError where the changelog says nothing new, ValueError for no version."""
    repository = Repository(root)
    repository.refuse(versions.checked(version))
    try:
        for path in repository.write(version, day):
            print(f"{path} is of {version}")
        if not dry_run:
            repository.check()
            repository.keep(version)
    finally:
        # After the commit there is nothing to take back.
        repository.restore()
    names = " ".join(tags(version))
    if dry_run:
        for command in (*map(" ".join, CHECKS), "git commit", f"git tag {names}"):
            print(f"then: {command}")
        print("nothing is changed: this was a dry run")
    else:
        print(f"{version} is committed and tagged. Publish it by:")
        print(f"  git push --atomic origin {BRANCH} {names}")


def _order(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def main() -> int:
    """Exit status 1 means: nothing is released."""
    parser = argparse.ArgumentParser(description="Release a version: commit and tag, no push.")
    parser.add_argument("version", help="X.Y.Z")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")
    arguments = parser.parse_args()
    today = datetime.datetime.now(datetime.UTC).date()
    try:
        release(versions.ROOT, arguments.version, today, arguments.dry_run)
    except (Refused, LookupError, ValueError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
