"""Writes the picture of an engine: SVG, PNG, DOT or a page of HTML, as the file's suffix says."""

from __future__ import annotations

from pathlib import Path

from nsysmap.core.errors import NsysmapError
from nsysmap.core.output_file import replacing
from nsysmap.output.picture.model import Picture

SUFFIXES = (".svg", ".png", ".dot", ".html")


def write_graph(picture: Picture, path: Path) -> None:
    """Write the picture to ``path``, whole or not at all; the same picture gives the same bytes."""
    suffix = path.suffix.lower()
    if suffix == ".png":
        from nsysmap.output.picture.drawing import drawing
        from nsysmap.output.picture.png import write_png

        with replacing(path) as fresh:
            write_png(drawing(picture), fresh)
        return
    text = _text(picture, suffix, path)
    with replacing(path) as fresh:
        fresh.write_bytes(text.encode("utf-8", "backslashreplace"))


def _text(picture: Picture, suffix: str, path: Path) -> str:
    if suffix == ".svg":
        from nsysmap.output.picture.drawing import drawing
        from nsysmap.output.picture.svg import svg

        return svg(drawing(picture))
    if suffix == ".dot":
        from nsysmap.output.picture.dot import dot

        return dot(picture)
    if suffix == ".html":
        from nsysmap.output.picture.html import html

        return html(picture)
    raise NsysmapError(str(path), "has no suffix that names a format", f"use {', '.join(SUFFIXES)}")
