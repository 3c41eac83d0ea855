"""`nsysmap doctor`: what is installed, and what it enables."""

from __future__ import annotations

import click

from nsysmap.cli.console import width


@click.command("doctor", short_help="Which tools are installed, and what that allows.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array, one object per item.")
def doctor_command(*, as_json: bool) -> None:
    """Show whether nsys, TensorRT, the optional packages, chromium and the GPU's counters are
    available, and what that allows.

    nsysmap needs none of them to read a report and an engine file.

    \b
    Example:
      nsysmap doctor
    """
    from nsysmap.output.doctor import doctor, doctor_json, doctor_text

    found = doctor()
    if as_json:
        import json

        click.echo(json.dumps(doctor_json(found), indent=1))
    else:
        click.echo(doctor_text(found, width=width() or 100), nl=False)
