"""What several commands read in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nsysmap.engine.onnx_model import OnnxModel


report_and_engines = click.argument("files", metavar="REPORT [ENGINE]...", nargs=-1, required=True)
"""The report and engine files of a command, in whichever order; given_files tells them apart."""

report_and_engine = click.argument("files", metavar="REPORT ENGINE", nargs=-1, required=True)
engine_and_report = click.argument("files", metavar="ENGINE [REPORT]", nargs=-1, required=True)
"""The same of commands about one engine; one_engine tells them apart."""

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print errors only.")

reader_option = click.option(
    "--reader",
    type=click.Choice(["auto", "nsys", "own"]),
    default="auto",
    help="Who reads a .nsys-rep: nsys (by an export), nsysmap itself (own), or nsys where one is installed that is new enough (auto).",
)


def onnx_model(path: str | None) -> OnnxModel | None:
    """The ONNX model, where one is given."""
    if path is None:
        return None
    from nsysmap.engine.onnx_model import read_model

    return read_model(path)
