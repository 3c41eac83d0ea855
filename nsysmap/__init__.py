"""nsysmap: the post-mortem of a TensorRT profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsysmap.analysis import Analysis, analyze
    from nsysmap.base.errors import NsysmapError
    from nsysmap.comparison.compare import compare
    from nsysmap.engine.reader import read_engine
    from nsysmap.names.decode import decode
    from nsysmap.report.build import report_of
    from nsysmap.report.model import Report

__version__ = "0.1.0"
__all__ = ["Analysis", "NsysmapError", "Report", "analyze", "compare", "decode", "read_engine", "report_of"]

_HOME = {
    "Analysis": "nsysmap.analysis",
    "NsysmapError": "nsysmap.base.errors",
    "Report": "nsysmap.report.model",
    "analyze": "nsysmap.analysis",
    "compare": "nsysmap.comparison.compare",
    "decode": "nsysmap.names.decode",
    "read_engine": "nsysmap.engine.reader",
    "report_of": "nsysmap.report.build",
}


def __getattr__(name: str) -> object:
    """The API's names, imported when first used: `nsysmap --version` must not load numpy."""
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'nsysmap' has no attribute {name!r}")
