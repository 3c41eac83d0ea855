"""Runs a command as a user would, without the cost of a new process."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from nsysmap.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command printed and its exit status."""

    status: int
    out: str
    err: str


def run(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> Done:
    """`nsysmap ARGUMENTS…`."""
    capfd.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["nsysmap", *map(str, arguments)])
        patch.setenv("NO_COLOR", "1")
        status = 0
        try:
            main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
    out, err = capfd.readouterr()
    return Done(status, out, err)
