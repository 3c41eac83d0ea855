"""Kernels of which the export does not tell the process, device, stream and launch."""

from __future__ import annotations

from pathlib import Path

from nsysmap.core.table import MISSING
from nsysmap.mapping.mapped_trace import map_report
from tests.nsys_file import NsysFile, engine_call

LAYERS = [(f"layer{at}", f"sm80_xmma_gemm_f16_{at}_kernel") for at in range(8)]
IDS = ("deviceId", "contextId", "streamId", "globalPid", "correlationId")


def _export(path: Path, *, every: int) -> Path:
    file = NsysFile()
    for call in range(30):
        engine_call(file, 1000 + call * 2000, LAYERS, 1 + call * 100)
    for row in file.rows["CUPTI_ACTIVITY_KIND_KERNEL"][::every]:
        row.update(dict.fromkeys(IDS))
    file.domain("TensorRT", 1)
    return file.write(path)


def test_they_are_no_inferences_of_their_own_and_a_warning_says_how_many(tmp_path: Path) -> None:
    result = map_report(_export(tmp_path / "x.sqlite", every=5))
    assert len(result.inferences) == 30
    (note,) = (note for note in result.trace.notes if note.level == "warning")
    assert "48 of 240 kernels" in note.text
    untold = result.kernels.ints("launch") == MISSING
    assert (result.kernels.ints("inference")[untold] == MISSING).all()


def test_where_no_kernel_tells_its_process_what_repeats_is_found(tmp_path: Path) -> None:
    result = map_report(_export(tmp_path / "x.sqlite", every=1))
    assert len(result.inferences) >= 30
    assert not any("no process" in note.text for note in result.trace.notes)
