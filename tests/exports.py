"""Captures as SQLite, exported with nsys where they are shipped as it wrote them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nsysmap.inputs.nsys.export import export
from tests.places import CAPTURES, FIXTURES


def exported(name: str) -> Path:
    """The capture FOLDER/REPORT as SQLite; the test is skipped where it is neither shipped nor
    beside the repository, or needs an nsys.
    """
    found = [
        path
        for base in (FIXTURES, CAPTURES)
        for end in (".sqlite", ".nsys-rep")
        if (path := base / f"{name}{end}").exists()
    ]
    if not found:
        pytest.skip(f"{name} is not here")
    if found[0].suffix == ".sqlite":
        return found[0]
    if shutil.which("nsys") is None:
        pytest.skip(f"no nsys is installed to export {name}")
    return export(found[0])
