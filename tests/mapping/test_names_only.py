"""Engine files of which nothing but the layers' names is known, on traces without ranges."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import MappedTrace, map_trace
from nsysmap.trace.open_report import open_trace
from tests.nsys_file import NsysFile
from tests.places import FIXTURES
from tests.reports import read_trace

REFORMAT = (
    "void genericReformat::copyVectorizedKernel<double, float, float, (bool)1, (bool)0,"
    " (int)1>(unsigned int, void const*)"
)
CONVOLUTION = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize64x64x64_stage3_warpsize2x2x1_kernel_trt"  # noqa: E501
POINTWISE, SOFTMAX = (
    "generatedNativePointwise",
    "void cuSoftmax::cudaSoftmaxForward<float, 4>(float const*, float*)",
)


def _names_only(folder: Path, names: list[str]) -> Path:
    path = folder / "names.json"
    path.write_text(json.dumps({"Layers": names, "Bindings": []}))
    return path


def _network() -> list[tuple[str, str | None]]:
    """Layers and the kernel of each; every third reformat launches nothing, as nothing in its name
    tells.
    """
    layers: list[tuple[str, str | None]] = []
    for block in range(12):
        for number in range(1 + block % 3):
            node = f"/block.{block}/conv.{number}/Conv"
            copies = (block + number) % 3
            layers += [
                (
                    f"Reformatting CopyNode for Input Tensor 0 to {node}",
                    REFORMAT if copies else None,
                ),
                (node, CONVOLUTION),
            ]
        layers += [(f"PWN(/block.{block}/Add)", POINTWISE)] if block % 2 else []
        layers += [(f"/block.{block}/Softmax", SOFTMAX)] if block % 4 == 1 else []
    return layers


def _mapped(
    folder: Path, missing: float
) -> tuple[MappedTrace, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    layers, chosen = _network(), random.Random(3)
    file, at, number, truth = NsysFile(), 1000, 0, list[int]()
    for _ in range(20):
        at += 200_000
        for place, (_, kernel) in enumerate(layers):
            if kernel is not None and chosen.random() >= missing:
                number += 1
                file.launch(kernel, at, number)
                truth.append(place)
                at += 20
    engine = read_engine(_names_only(folder, [name for name, _ in layers]))
    return map_trace(read_trace(file.write(folder / "report.sqlite")), [engine]), np.array(truth)


def test_kernels_that_are_missing_here_and_there_cost_no_others_their_layers(
    tmp_path: Path,
) -> None:
    (tmp_path / "whole").mkdir()
    whole, truth = _mapped(tmp_path / "whole", 0.0)
    found = whole.kernels.ints("layer_index")
    # what the whole sequence says, right or wrong
    usual = dict(zip(truth.tolist(), found.tolist(), strict=True))
    some, truth = _mapped(tmp_path, 0.02)
    found, sure = some.kernels.ints("layer_index"), some.kernels.floats("confidence")
    expected = np.array([usual[layer] for layer in truth.tolist()])
    same = (found == expected) | (found < 0)
    assert same.mean() > 0.98
    assert (found >= 0).mean() > 0.9
    placed = (found >= 0) & (sure >= 0.9)
    assert (found == truth)[placed].mean() >= 0.98


def test_inferences_that_may_be_another_engine_s_are_no_surer_than_what_nothing_proves(
    tmp_path: Path,
) -> None:
    names = [
        layer.name for layer in read_engine(FIXTURES / "decode_loop" / "context.engine.json").layers
    ]
    report = next(
        path
        for path in (FIXTURES / "decode_loop").glob("nonvtx.*")
        if path.suffix in (".sqlite", ".nsys-rep")
    )
    result = map_trace(open_trace(report), [read_engine(_names_only(tmp_path, names))])
    assert result.mapped.engine_fits.text("verdict").list() == ["cannot-tell"]
    assert result.kernels.floats("confidence").max() <= 0.85
