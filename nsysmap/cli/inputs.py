"""What several commands read in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsysmap.engine.onnx_model import OnnxModel


def onnx_model(path: str | None) -> OnnxModel | None:
    """The ONNX model, where one is given."""
    if path is None:
        return None
    from nsysmap.engine.onnx_model import read_model

    return read_model(path)
