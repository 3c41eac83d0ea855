"""The files of a folder that set parameters of rules, those of the first before those of the
second.
"""

from __future__ import annotations

SETTINGS = ("nsysmap.toml", "pyproject.toml")
