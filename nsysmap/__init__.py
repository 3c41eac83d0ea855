"""nsysmap: post-mortem analysis of Nsight Systems captures of TensorRT programs.  docs/python.md
shows the Python API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsysmap.answer.model import Answer
    from nsysmap.api import Analysis, analyze
    from nsysmap.comparison.compare import compare
    from nsysmap.core.errors import NsysmapError
    from nsysmap.inputs.engine.reader import read_engine
    from nsysmap.mapping.mapped_trace import map_report
    from nsysmap.names.decode import decode
    from nsysmap.output.build import report_of
    from nsysmap.output.page.write import page as html_page

__version__ = "0.1.0"
__all__ = [
    "Analysis",
    "Answer",
    "NsysmapError",
    "analyze",
    "compare",
    "decode",
    "html_page",
    "map_report",
    "read_engine",
    "report_of",
]

_HOME = {
    "Analysis": "nsysmap.api.Analysis",
    "Answer": "nsysmap.answer.model.Answer",
    "NsysmapError": "nsysmap.core.errors.NsysmapError",
    "Report": "nsysmap.answer.model.Answer",  # its name before
    "analyze": "nsysmap.api.analyze",
    "compare": "nsysmap.comparison.compare.compare",
    "decode": "nsysmap.names.decode.decode",
    "html_page": "nsysmap.output.page.write.page",
    "map_report": "nsysmap.mapping.mapped_trace.map_report",
    "read_engine": "nsysmap.inputs.engine.reader.read_engine",
    "report_of": "nsysmap.output.build.report_of",
}


def __getattr__(name: str) -> object:
    """The API's names, imported when first used: `nsysmap --version` must not load numpy."""
    if name in _HOME:
        from importlib import import_module

        module, _, held = _HOME[name].rpartition(".")
        return getattr(import_module(module), held)
    raise AttributeError(f"module 'nsysmap' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The API's names, loaded or not."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
