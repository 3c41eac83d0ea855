"""`nsysmap open`: a Perfetto trace in the Perfetto UI."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("open", short_help="Show a .perfetto-trace in the Perfetto UI.")
@click.argument("file", metavar="FILE")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@click.option(
    "--wait",
    "limit_s",
    metavar="SECONDS",
    type=click.FloatRange(0.1, 86400),
    default=300.0,
    show_default=True,
    help="End if no browser has fetched the file by then.",
)
def open_command(*, file: str, no_browser: bool, limit_s: float) -> int:
    """Show a trace, such as `nsysmap analyze -o report.perfetto-trace` writes, in the Perfetto UI.

    The browser loads the UI from ui.perfetto.dev and the trace from this machine: the file is
    served once, on 127.0.0.1, and is not uploaded.

    \b
    Example:
      nsysmap open report.perfetto-trace
    """
    from nsysmap.core.errors import NsysmapError
    from nsysmap.output.perfetto.local_server import TraceServer
    from nsysmap.output.perfetto.write import SUFFIXES

    path = Path(file)
    if path.suffix.lower() not in SUFFIXES:
        raise NsysmapError(
            file,
            f"is not called {' or '.join(SUFFIXES)}",
            "write one with nsysmap analyze REPORT -o report.perfetto-trace",
        )
    with TraceServer(path) as server:
        click.echo(server.link)
        if not no_browser:
            click.launch(server.link)
        if server.serve(limit_s):
            return 0
    click.echo(f"nsysmap: no browser fetched {path.name} within {limit_s:g} s", err=True)
    return 1
