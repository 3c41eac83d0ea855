"""`nsysmap nsys-plugin`: a report of nsysmap inside `nsys stats`."""

from __future__ import annotations

from pathlib import Path

import click


@click.group("nsys-plugin", short_help="Times by layer inside `nsys stats`.")
def nsys_plugin() -> None:
    """A report script that makes `nsys stats` show times by TensorRT layer.

    \b
    Example:
      nsysmap nsys-plugin install
    """


@nsys_plugin.command("install", short_help="Write the report script into a folder.")
@click.argument("folder", default="nsys-reports", type=click.Path(file_okay=False, path_type=Path))
def install(*, folder: Path) -> None:
    """Write nsysmap_layers.py into FOLDER (nsys-reports if not given) and show how to use it.

    \b
    Example:
      nsysmap nsys-plugin install ~/nsys-reports
    """
    import shlex
    import sys
    from importlib.resources import files

    from nsysmap.core.output_file import replacing

    text = (files("nsysmap.output") / "stats_report.py").read_text(encoding="utf-8")
    command = [sys.executable, "-m", "nsysmap"]
    text = text.replace('COMMAND = ["nsysmap"]', f"COMMAND = {command!r}", 1)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "nsysmap_layers.py") as fresh:
        fresh.write_text(text, encoding="utf-8")
    click.echo(
        f"{folder / 'nsysmap_layers.py'} is written; use it with:\n"
        f"  nsys stats --report-dir {shlex.quote(str(folder))}"
        " -r nsysmap_layers:engine=engine.json report.nsys-rep"
    )
