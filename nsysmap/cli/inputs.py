"""What several commands read in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nsysmap.engine.onnx_model import OnnxModel


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
