"""The commands that stand between a host and the service, each of a package of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from contextengine_server.cli.output import CommandFailed

hosts_app = typer.Typer()


@hosts_app.command(
    "mcp",
    epilog="Example: contextengine mcp -- --agent codex",
    context_settings={"ignore_unknown_options": True},
)
def serve_mcp(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="As for `contextengine-mcp`: `contextengine mcp -- --help`."),
    ] = None,
) -> None:
    """Offer the recall tools to a host that speaks MCP, on standard input and output.

    The same as `contextengine-mcp`, of the package of that name.
    """
    try:
        from contextengine_mcp.command import main
    except ImportError as error:
        raise CommandFailed(
            "`contextengine mcp` needs the package contextengine-mcp: pip install contextengine-mcp"
        ) from error
    raise typer.Exit(main(words or []))


@hosts_app.command(
    "proxy",
    epilog="Example: contextengine proxy -- --window 'qwen*=32768'",
    context_settings={"ignore_unknown_options": True},
)
def serve_proxy(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="As for `contextengine-proxy`: `contextengine proxy -- --help`."),
    ] = None,
) -> None:
    """Stand before a provider's API, so that an agent needs only another base URL.

    The same as `contextengine-proxy`, of the package of that name.
    """
    try:
        from contextengine_proxy.command import main
    except ImportError as error:
        raise CommandFailed(
            "`contextengine proxy` needs the package contextengine-proxy: pip install"
            " contextengine-proxy"
        ) from error
    raise typer.Exit(main(words or []))
