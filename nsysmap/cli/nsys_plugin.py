"""`nsysmap nsys-plugin`: times by layer inside `nsys stats` and `nsys recipe`."""

from __future__ import annotations

from pathlib import Path

import click


@click.group("nsys-plugin", short_help="Times by layer inside `nsys stats` and `nsys recipe`.")
def nsys_plugin() -> None:
    """A report script and a recipe that make nsys itself show times by TensorRT layer.

    \b
    Example:
      nsysmap nsys-plugin install
    """


@nsys_plugin.command("install", short_help="Write the report script and the recipe into a folder.")
@click.argument("folder", default="nsys-reports", type=click.Path(file_okay=False, path_type=Path))
def install(*, folder: Path) -> None:
    """Write a report script for `nsys stats` and a recipe for `nsys recipe` into FOLDER.

    FOLDER is nsys-reports if not given.  How to use both is printed.

    \b
    Example:
      nsysmap nsys-plugin install ~/nsys-reports
    """
    import json
    import shlex

    recipe = folder / _RECIPE
    recipe.mkdir(parents=True, exist_ok=True)
    _write(folder / "nsysmap_layers.py", _script("stats_report.py"))
    _write(recipe / f"{_RECIPE}.py", _script("recipe.py"))
    metadata = {
        "module_name": _RECIPE,
        "display_name": "TensorRT Layer Summary (nsysmap)",
        "description": "Kernel time of each TensorRT layer, in each report and over all of them.",
        "type": "stats",
    }
    _write(recipe / "metadata.json", json.dumps(metadata, indent=2) + "\n")
    where = shlex.quote(str(folder))
    click.echo(
        f"A report script and a recipe are in {folder}; use them with:\n"
        f"  nsys stats --report-dir {where}"
        " -r nsysmap_layers:engine=engine.json report.nsys-rep\n"
        f"  NSYS_RECIPE_PATH={where} nsys recipe {_RECIPE} --input REPORTS --engine engine.json"
    )


def _script(name: str) -> str:
    """A script for nsys that starts the running nsysmap."""
    import sys
    from importlib.resources import files

    text = (files("nsysmap.output") / name).read_text(encoding="utf-8")
    command = [sys.executable, "-m", "nsysmap"]
    return text.replace('COMMAND = ["nsysmap"]', f"COMMAND = {command!r}", 1)


def _write(path: Path, text: str) -> None:
    from nsysmap.core.output_file import replacing

    with replacing(path) as fresh:
        fresh.write_text(text, encoding="utf-8")


_RECIPE = "nsysmap_layer_sum"  # not nsysmap: nsys imports the folder by name, as Python's packages
