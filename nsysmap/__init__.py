"""nsysmap: the post-mortem of a TensorRT profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsysmap.analysis import Analysis, analyze
    from nsysmap.engine import read_engine
    from nsysmap.names import decode

__version__ = "0.1.0"
__all__ = ["Analysis", "analyze", "decode", "read_engine"]

_HOME = {"Analysis": "nsysmap.analysis", "analyze": "nsysmap.analysis", "read_engine": "nsysmap.engine", "decode": "nsysmap.names"}


def __getattr__(name: str) -> object:
    """The API's names, imported when first used: `nsysmap --version` must not load numpy."""
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'nsysmap' has no attribute {name!r}")
