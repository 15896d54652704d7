"""The command line: `contextengine-proxy` serves until it is stopped."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from .application import HEALTH, Proxy, Settings
from .upgrades import NoWebSockets
from .windows import Windows

EXAMPLES = f"""\
What it does: a client sends its whole conversation with each request, as always. The proxy stores
what is new of it, asks the service for what fits the model's window, and sends that upstream with
the client's own key and every other field untouched. What fits already goes upstream byte for
byte, and so does every reply to the client. While the service is away, requests go through as they
are.

Which conversation a request belongs to is said by the header X-ContextEngine-Session, and else by
how the conversation begins, up to the model's first reply, and by the key that is sent.

examples:
  contextengine-proxy
  OPENAI_BASE_URL=http://127.0.0.1:8787/v1 your-agent
  ANTHROPIC_BASE_URL=http://127.0.0.1:8787 your-agent
  GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8787 your-agent
  contextengine-proxy --openai http://127.0.0.1:11434 --window 'qwen*=32768'
  curl http://127.0.0.1:8787{HEALTH}
"""


def main(words: Sequence[str] | None = None) -> int:
    """Serves; the exit status."""
    parser = _parser()
    given = parser.parse_args(words)
    try:
        windows = Windows.of(given.window)
    except ValueError as error:
        parser.error(f"--window {error}")
    for name in ("openai", "anthropic", "gemini"):
        if not getattr(given, name).startswith(("http://", "https://")):
            parser.error(f"--{name} {getattr(given, name)!r}: an http or https address is needed")
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    proxy = Proxy(
        Settings(
            address=given.address,
            # From the environment alone: a command line is read by others.
            token=os.environ.get("CONTEXTENGINE_TOKEN", ""),
            tls=given.tls,
            agent=given.agent,
            openai=given.openai,
            anthropic=given.anthropic,
            gemini=given.gemini,
            windows=windows,
            patience=given.patience,
            timeout=given.timeout,
            max_bytes=given.max_body * 1024 * 1024,
            state=Path(given.state) if given.state else None,
        )
    )
    config = uvicorn.Config(
        proxy.application,
        host=given.host,
        port=given.port,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=30,
        ws=NoWebSockets,
    )
    uvicorn.Server(config).run()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="contextengine-proxy",
        description="Puts contextengine behind a base URL, for agents in any language.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="where to listen (default: this machine alone)")
    add("--port", type=int, default=8787, help="the port; 0: any that is free (default 8787)")
    add("--openai", default=Settings.openai, metavar="URL", help="upstream (%(default)s)")
    add(
        "--anthropic",
        default=Settings.anthropic,
        metavar="URL",
        help="upstream of Anthropic's requests (%(default)s)",
    )
    add(
        "--gemini",
        default=Settings.gemini,
        metavar="URL",
        help="upstream of Gemini's requests (%(default)s)",
    )
    add(
        "--window",
        action="append",
        default=[],
        metavar="MODEL=TOKENS",
        help="a model's window; may be given again, the first that fits counts, * stands for any"
        " letters, TOKENS alone for every model (default: what the service knows)",
    )
    add(
        "--address",
        default=os.environ.get("CONTEXTENGINE_ADDRESS", Settings.address),
        help="the service (CONTEXTENGINE_ADDRESS; default 127.0.0.1:50051); its token is taken"
        " from CONTEXTENGINE_TOKEN",
    )
    add("--tls", action="store_true", help="speak TLS with the service")
    add(
        "--agent",
        default=os.environ.get("CONTEXTENGINE_AGENT", Settings.agent),
        help="the agent whose sessions these are (CONTEXTENGINE_AGENT; default proxy)",
    )
    add(
        "--patience",
        type=float,
        default=Settings.patience,
        metavar="SECONDS",
        help="how long a request waits for the service (%(default)s)",
    )
    add(
        "--timeout",
        type=float,
        default=Settings.timeout,
        metavar="SECONDS",
        help="how long upstream may be silent (%(default)s)",
    )
    add(
        "--state",
        default=os.path.join(
            os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "contextengine"
        ),
        metavar="FOLDER",
        help="where conversations are kept that the service has not got yet, for its user alone;"
        " '': in memory (%(default)s)",
    )
    add("--max-body", type=int, default=64, metavar="MIB", help="the longest request (%(default)s)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
