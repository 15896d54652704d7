"""Options and arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SessionId = Annotated[str, typer.Argument(help="The session's id.")]
Agent = Annotated[str, typer.Option(help="The agent whose session it is.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        help=(
            "The settings file. Default: CONTEXTENGINE_CONFIG, else ./contextengine.yaml if there"
            " is one."
        ),
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Any setting by its path, such as engine.default=legacy. Can be given again.",
        show_default=False,
    ),
]
