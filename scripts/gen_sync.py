"""Generates the blocking Python client from the asyncio one, or with --check says whether what is
there is current.

unasync takes `async` and `await` away and knows Python's own names; ours and the few sentences
that hold for one of both clients alone are listed here. How a model is lent differs in more than
that, since threads and tasks are stopped in other ways: `runtime.py` is written by hand, and so are
`probe.py` and `later.py`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import unasync

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("clients/python/contextengine")
MODULES = {
    "aio": "client",
    "aio_conversation": "conversation",
    "aio_feed": "feed",
    "aio_later": "later",
    "aio_mirror": "mirror",
    "aio_probe": "probe",
    "aio_runtime": "runtime",
    "aio_session": "session",
    "aio_transport": "transport",
}
"""A module of the asyncio client and the one that blocks in its place."""
BY_HAND = {"aio_later", "aio_probe", "aio_runtime"}
CLASSES = {
    "AsyncClient": "Client",
    "AsyncConnection": "BlockingConnection",
    "AsyncConversation": "Conversation",
    "AsyncConversations": "Conversations",
    "AsyncEngines": "Engines",
    "AsyncFeed": "Feed",
    "AsyncLater": "Later",
    "AsyncMirror": "Mirror",
    "AsyncProbe": "Probe",
    "AsyncProjection": "Projection",
    "AsyncRecall": "Recall",
    "AsyncRuntime": "Runtime",
    "AsyncSession": "Session",
    "AsyncSessions": "Sessions",
    "AsyncStream": "Stream",
}
BUILT_INS = {"aiter": "iter", "anext": "next", "asyncio": "time"}
"""What unasync leaves alone: of asyncio only `sleep` is used."""
PHRASES = {
    "import grpc.aio\n": "",
    "grpc.aio": "grpc",
    "from .answers import Replies, answer_of\n": "",
    "Replies(invoke(aiter(requests), **how))": "invoke(aiter(requests), **how)",
    "await answer_of(invoke(chain(first, rest), **how))": "invoke(chain(first, rest), **how)",
    "The asyncio client. `client` is the same for threads, generated from this module.": (
        "The blocking client. `aio` is the same for asyncio."
    ),
    "Calls for asyncio: sends": "Calls that block: sends",
    "\n`transport` is the same for threads, generated from this module.\n": (
        "\n`aio_transport` is the same for asyncio.\n"
    ),
    "for asyncio. `session` is the same for threads, generated from this\nmodule.": (
        "blocking. `aio_session` is the same for asyncio."
    ),
    "of messages is, for asyncio. `feed` is the same\nfor threads, generated from this module.": (
        "of messages is, blocking. `aio_feed` is the\nsame for asyncio."
    ),
    "for asyncio. `conversation`\nis the same for threads, generated from this module.": (
        "blocking.\n`aio_conversation` is the same for asyncio."
    ),
    "messages is, for asyncio. `mirror` is the same\nfor threads, generated from this module.": (
        "messages is, blocking. `aio_mirror` is the\nsame for asyncio."
    ),
    "Close it, or use it in `async with`.": "Close it, or use it in `with`.",
    "As an async context manager": "As a context manager",
    "It belongs to the event loop of its first call.": "Safe to share between threads.",
    "A connection whose calls are awaited.": "A connection whose calls wait for their replies.",
    "Ends the call. Whoever waits for a reply gets asyncio.CancelledError.": (
        "Ends the call, from any thread.\n\n"
        "        Whoever waits for a reply gets a ContextEngineError of code CANCELLED.\n        "
    ),
}
"""What is said or imported in one of both clients alone. Each is found in the asyncio client."""
HEADER = "# Generated from {source}.py by `make sync`. Change that module instead.\n"


def blocking(sources: dict[str, str]) -> dict[str, str]:
    """The texts of the blocking modules by name, from those of the asyncio modules by name. Raises
    LookupError for a phrase that no source has, or a class of theirs that has no name here."""
    written = "".join(sources.values())
    stale = [phrase for phrase in PHRASES if phrase not in written]
    stale += [name for name in CLASSES if not re.search(rf"\b{name}\b", written)]
    unknown = set(re.findall(r"^class (Async\w+)", written, re.MULTILINE)) - CLASSES.keys()
    if stale or unknown:
        raise LookupError(f"mend {Path(__file__).name}: {[*stale, *sorted(unknown)]}")
    with tempfile.TemporaryDirectory() as scratch:
        before, after = Path(scratch) / "before", Path(scratch) / "after"
        before.mkdir()
        for name, text in sources.items():
            (before / f"{MODULES[name]}.py").write_text(_renamed(text), encoding="utf-8")
        paths = [str(path) for path in before.iterdir()]
        unasync.unasync_files(paths, [unasync.Rule(str(before), str(after), BUILT_INS)])
        return {
            MODULES[name]: _formatted(
                HEADER.format(source=name) + (after / f"{MODULES[name]}.py").read_text("utf-8"),
                PACKAGE / f"{MODULES[name]}.py",
            )
            for name in sources
        }


def _renamed(text: str) -> str:
    """With the phrases, classes and modules of the blocking client, in code and in docstrings."""
    for phrase, other in PHRASES.items():
        text = text.replace(phrase, other)
    for name, other in CLASSES.items():
        text = re.sub(rf"\b{name}\b", other, text)
    for name, other in MODULES.items():
        text = re.sub(rf"^( *from \.){name} import", rf"\g<1>{other} import", text, flags=re.M)
    return text


def _formatted(text: str, path: Path) -> str:
    """As ruff would have it, imports sorted and named once."""
    ruff = [sys.executable, "-m", "ruff"]
    name = ["--stdin-filename", str(path), "-"]
    for command in (
        [*ruff, "check", "--fix-only", "--quiet", "--select", "I", *name],
        [*ruff, "format", "--quiet", *name],
    ):
        text = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
    return text


def main() -> int:
    """Exit status 1 means: the committed code is not current."""
    parser = argparse.ArgumentParser(description="Generate the blocking Python client.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail when anything is not current"
    )
    check = parser.parse_args().check
    sources = {
        name: (ROOT / PACKAGE / f"{name}.py").read_text(encoding="utf-8")
        for name in MODULES.keys() - BY_HAND
    }
    stale = []
    for name, text in sorted(blocking(sources).items()):
        path = ROOT / PACKAGE / f"{name}.py"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(PACKAGE / path.name)
            if not check:
                path.write_text(text, encoding="utf-8")
    for stale_path in stale:
        print(f"not current: {stale_path}" if check else stale_path, file=sys.stderr)
    if stale and check:
        print("run `make sync` and commit the result", file=sys.stderr)
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
