"""`nsysmap mcp`: the answers for coding agents, over the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("mcp", short_help="Answer a coding agent (Model Context Protocol).")
@click.argument(
    "folders",
    metavar="FOLDER...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
def mcp_command(*, folders: tuple[Path, ...]) -> None:
    """Serve the answers of reports in these folders over standard input and output.

    A program that speaks the Model Context Protocol starts this command.  It can read reports and
    engine files in the folders and nothing else, and it writes no file there.  docs/agents.md says
    how to register it.

    \b
    Example:
      nsysmap mcp .
    """
    import gc

    from nsysmap.agents.server import server

    gc.enable()  # it serves for as long as it is asked

    server(tuple(folder.resolve() for folder in folders)).run()
