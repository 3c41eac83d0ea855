"""What 8 bits are used for in an engine: products in them, products that stayed and why, what
converts, and element-wise work that a product's kernel could do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from nsysmap.answer.eight_bits import eight_bits_of
from nsysmap.answer.eight_bits_words import cells
from nsysmap.core.engine_schema import EDGES, LAYERS, TENSORS, WORK
from nsysmap.core.result_schema import EIGHT_BITS, LAYER_TIMES, PRECISION, ROOFLINE
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import DEVICES
from nsysmap.timing.eight_bits import QuantizedEngine, eight_bits_table

Given = Mapping[str, object]
FP8: Given = {"does": "product", "precision": "FP8", "reads": ("FP8",), "writes": ("FP16",)}
FP16: Given = {"does": "product", "precision": "FP16", "reads": ("FP16",), "writes": ("FP16",)}


def _texts(one: Given, key: str) -> tuple[str, ...]:
    held = one.get(key, ())
    return tuple(map(str, held)) if isinstance(held, tuple) else ()


def _engine(
    layers: Sequence[Given],
    edges: Sequence[tuple[int, int]] = (),
    capability: tuple[int, int] = (9, 0),
) -> QuantizedEngine:
    device = {"device": 0, "name": "GPU", "compute_major": capability[0]}
    numbered = list(enumerate(layers))
    return QuantizedEngine(
        layers=Table.of_rows(
            LAYERS,
            [
                {
                    "layer_id": at,
                    "engine": 0,
                    "name": f"layer {at}",
                    "kind": "gemm",
                    "onnx": one.get("onnx"),
                    "time_ns": 1_000,
                }
                for at, one in numbered
            ],
        ),
        work=Table.of_rows(
            WORK,
            [
                {
                    "layer_id": at,
                    "tensor_cores": "yes",
                    **{
                        name: one.get(name)
                        for name in ("does", "precision", "channels_in", "channels_out")
                    },
                }
                for at, one in numbered
            ],
        ),
        tensors=Table.of_rows(
            TENSORS,
            [
                {
                    "layer_id": at,
                    "direction": direction,
                    "position": place,
                    "name": "t",
                    "datatype": type_,
                }
                for at, one in numbered
                for direction, key in (("in", "reads"), ("out", "writes"))
                for place, type_ in enumerate(_texts(one, key))
            ],
        ),
        edges=Table.of_rows(
            EDGES, [{"from_layer": one, "to_layer": two, "tensor": "t"} for one, two in edges]
        ),
        precision=Table.empty(PRECISION),
        devices=Table.of_rows(DEVICES, [{**device, "compute_minor": capability[1]}]),
        layer_times=Table.of_rows(
            LAYER_TIMES,
            [
                {
                    "layer_id": at,
                    "engine": 0,
                    "told_by": "trace",
                    "total_ns": 1_000,
                    "inferences": 1,
                    "kernel": one.get("kernel"),
                    "share_of_kernel_time": 0.1,
                }
                for at, one in numbered
            ],
        ),
    )


def _parts(engine: QuantizedEngine) -> list[tuple[str, str | None]]:
    return [(row.text("part"), row.maybe_text("why")) for row in eight_bits_table(engine)]


def test_an_engine_without_8_bits_has_no_rows() -> None:
    assert not len(eight_bits_table(_engine([FP16])))


def test_a_layer_that_does_nothing_has_no_part() -> None:
    assert _parts(_engine([FP8, {"does": "nothing"}])) == [("product", None)]


def test_element_wise_work_on_what_a_product_wrote_as_a_float_is_an_epilogue() -> None:
    gelu = {"does": "pointwise", "precision": "FP16", "reads": ("FP16",), "writes": ("FP8",)}
    quantizer = {"does": "quantize", "precision": "FP16", "reads": ("FP16",), "writes": ("FP8",)}
    norm = {"does": "norm", "precision": "FP16"}
    found = _parts(_engine([FP8, gelu, quantizer, norm], [(0, 1), (0, 2), (0, 3)]))
    assert [part for part, _ in found] == ["product", "epilogue", "convert", "rest"]


@pytest.mark.parametrize(
    ("stayed", "capability", "why"),
    [
        (FP16, (9, 0), "no-quantizer"),
        (
            {**FP16, "onnx": "/a/Conv_0/DequantizeLinear, /a/Conv", "channels_in": 4},
            (9, 0),
            "channels",
        ),
        (
            {
                **FP16,
                "onnx": "/a_0/DequantizeLinear, /a/MatMul",
                "channels_in": 64,
                "channels_out": 64,
            },
            (9, 0),
            "dequantized",
        ),
        ({**FP16, "onnx": "/a/MatMul, /b_0/QuantizeLinear"}, (9, 0), "no-quantizer"),
        ({**FP16, "reads": ("FP16", "FP8")}, (9, 0), "one-input"),
        (FP16, (8, 0), "no-tensor-cores"),
    ],
)
def test_why_a_product_stays_in_a_wider_type(
    stayed: Given, capability: tuple[int, int], why: str
) -> None:
    found = _parts(_engine([FP8, stayed], capability=capability))
    assert found[1] == ("stayed", why)


def test_a_kernel_of_an_architecture_without_the_type_is_told() -> None:
    older = {**FP8, "kernel": "cudnn_generated_fort_native_sm80_matMul_knob_24_64x64x32_5_0"}
    own = {**FP8, "kernel": "sm89_xmma_gemm_e4m3f16_e4m3f32_f32_tn_n_tilesize64x64x64_stage3"}
    rows = list(eight_bits_table(_engine([older, own])))
    assert [row.maybe_text("kernel_arch") for row in rows] == ["sm80", None]


def test_the_answer_adds_up_and_names_the_layers() -> None:
    engine = _engine([FP8, FP16, {"does": "norm", "precision": "FP16"}])
    (found,) = eight_bits_of(
        {
            "layers": engine.layers,
            "eight_bits": eight_bits_table(engine),
            "roofline": Table.empty(ROOFLINE),
        }
    )
    assert (found.type, found.time_ns) == ("FP8", 3_000)
    assert sum(one.time_ns for one in found.parts) == found.time_ns
    assert [row[1] for row in cells(found)] == ["33%", "33%", "33%"]
    assert eight_bits_of({**{"layers": engine.layers}, **_nothing()}) == ()


def _nothing() -> dict[str, Table]:
    return {"eight_bits": Table.empty(EIGHT_BITS), "roofline": Table.empty(ROOFLINE)}


def test_a_bert_in_fp8_of_tensorrt_itself() -> None:
    """Its products compute in FP8 by kernels for sm80, and attention stays in FP16."""
    from nsysmap.api import analyze
    from tests.places import FIXTURES

    report = FIXTURES / "real_trt" / "bert_fp8-graph.nsys-rep"
    engine = FIXTURES / "real_trt" / "bert_fp8.engine.json"
    (found,) = analyze(report, engine, rules=[], reader="own").summary.eight_bits
    parts = {(one.part, one.why): one.layers for one in found.parts}
    assert parts == {
        ("product", None): 16,
        ("stayed", "no-quantizer"): 4,
        ("epilogue", None): 16,
        ("rest", None): 10,
    }
    assert (found.older_products, found.older_arch) == (16, "sm80")
    assert found.reached is not None
    assert found.reached < 0.1
