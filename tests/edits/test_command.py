"""`nsysmap fix` as it is called: the script, the edited model, and input that cannot be used."""

from __future__ import annotations

import pytest

onnx = pytest.importorskip("onnx")
