"""The commands: their options and their help, a module for each kind. What they do stands in the
modules that they call."""

from __future__ import annotations

import typer

from contextengine_server.cli.application.content import content_app
from contextengine_server.cli.application.engines import engines_app
from contextengine_server.cli.application.hosts import hosts_app
from contextengine_server.cli.application.migrate import migrate_app
from contextengine_server.cli.application.operations import operations_app
from contextengine_server.cli.application.quotas import quotas_app
from contextengine_server.cli.application.sessions import erasure_app, sessions_app
from contextengine_server.cli.application.settings import config_app, token_app
from contextengine_server.cli.application.store import store_app
from contextengine_server.cli.plugins.application import plugins_app

__all__ = ["app"]

app = typer.Typer(
    help=(
        "contextengine decides what a language model sees: lossless history, budgeted context,"
        " compaction."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# Without a name, a Typer's commands stand among ours.
for commands in (operations_app, content_app, hosts_app, erasure_app):
    app.add_typer(commands)
app.add_typer(sessions_app, name="sessions")
app.add_typer(engines_app, name="engines")
app.add_typer(quotas_app, name="quotas")
app.add_typer(migrate_app, name="migrate")
app.add_typer(plugins_app, name="plugins")
app.add_typer(store_app, name="store")
app.add_typer(config_app, name="config")
app.add_typer(token_app, name="token")
