"""Multiply-adds, operations and bytes of layers, against figures worked out by hand."""
# ruff: noqa: E501 (a table of cases, one a line)

from __future__ import annotations

import json
from dataclasses import replace
from math import prod

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsysmap.inputs.engine.model import Layer, Tensor
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.network.work import (
    does,
    engine_work,
    layer_work,
    product_extent,
    tensor_cores,
    work_table,
)
from tests.made_engines import made, row
from tests.places import FIXTURES, SHARED

NHWC8 = "Channel major FP16 format where channel % 8 == 0"
CHW32 = "Thirty-two wide channel vectorized row major Int8 format"


def tensor(
    name: str, *dimensions: int, datatype: str = "FP16", layout: str | None = None
) -> Tensor:
    return Tensor(name, dimensions, datatype, layout)


def layer(
    kind: str, reads: list[Tensor], writes: list[Tensor], name: str = "layer", **parameters: object
) -> Layer:
    return Layer(
        0,
        name,
        kind,
        kind,
        tuple(reads),
        tuple(writes),
        precision=reads[0].datatype if reads else None,
        parameters=parameters,
    )


def convolution(
    reads: Tensor, writes: Tensor, kernel: list[int], groups: int = 1, **more: object
) -> Layer:
    told = {
        "ParameterType": "Convolution",
        "Kernel": kernel,
        "Groups": groups,
        "OutMaps": (writes.dimensions or (0, 0))[1],
        **more,
    }
    return Layer(
        0,
        "conv",
        "convolution",
        "CaskConvolution",
        (reads,),
        (writes,),
        precision=reads.datatype,
        parameters=told,
    )


CASES = [
    # layer, multiply-adds, operations, bytes in, bytes out
    ("plain", convolution(tensor("x", 1, 16, 8, 8), tensor("y", 1, 32, 8, 8), [3, 3]), 32 * 8 * 8 * 16 * 9, None, 2048, 4096),
    ("strided", convolution(tensor("x", 2, 3, 224, 224), tensor("y", 2, 64, 112, 112), [7, 7], Stride=[2, 2]), 2 * 64 * 112 * 112 * 3 * 49, None, 602112, 3211264),
    ("grouped", convolution(tensor("x", 1, 32, 10, 10), tensor("y", 1, 64, 10, 10), [3, 3], 4), 64 * 100 * 8 * 9, None, 6400, 12800),
    ("depthwise", convolution(tensor("x", 1, 32, 10, 10), tensor("y", 1, 32, 10, 10), [3, 3], 32), 32 * 100 * 9, None, 6400, 6400),
    ("dilated", convolution(tensor("x", 1, 8, 16, 16), tensor("y", 1, 8, 12, 12), [3, 3], Dilation=[2, 2]), 8 * 144 * 8 * 9, None, 4096, 2304),
    ("one-dimensional", convolution(tensor("x", 1, 8, 100), tensor("y", 1, 4, 98), [3]), 4 * 98 * 8 * 3, None, 1600, 784),
    ("three-dimensional", convolution(tensor("x", 1, 2, 4, 4, 4), tensor("y", 1, 3, 4, 4, 4), [3, 3, 3]), 3 * 64 * 2 * 27, None, 256, 384),
    ("padded NHWC8", convolution(tensor("x", 1, 3, 8, 8, layout=NHWC8), tensor("y", 1, 12, 8, 8, layout=NHWC8), [1, 1]), 12 * 64 * 3, None, 1024, 2048),
    (
        "padded CHW32",
        convolution(tensor("x", 1, 24, 56, 56, datatype="INT8", layout=CHW32), tensor("y", 1, 144, 56, 56, datatype="INT8", layout=CHW32), [1, 1]),
        144 * 56 * 56 * 24,
        None,
        32 * 3136,
        160 * 3136,
    ),
    (
        "transposed",
        layer("deconvolution", [tensor("x", 1, 16, 8, 8)], [tensor("y", 1, 4, 16, 16)], ParameterType="Deconvolution", Kernel=[2, 2], Groups=1),
        16 * 64 * 4 * 4,
        None,
        2048,
        2048,
    ),
    ("product", layer("gemm", [tensor("a", 128, 768)], [tensor("c", 128, 3072)]), 128 * 3072 * 768, None, 196608, 786432),
    ("product with B", layer("gemm", [tensor("a", 4, 8), tensor("b", 8, 6)], [tensor("c", 4, 6)]), 4 * 6 * 8, None, 64 + 96, 48),
    ("transposed B", layer("gemm", [tensor("a", 4, 8), tensor("b", 6, 8)], [tensor("c", 4, 6)]), 4 * 6 * 8, None, 64 + 96, 48),
    ("transposed A", layer("gemm", [tensor("a", 8, 4), tensor("b", 8, 6)], [tensor("c", 4, 6)]), 4 * 6 * 8, None, 64 + 96, 48),
    ("batched", layer("gemm", [tensor("q", 12, 128, 64), tensor("k", 12, 64, 128)], [tensor("s", 12, 128, 128)]), 12 * 128 * 128 * 64, None, 393216, 393216),
    ("batched, one B", layer("gemm", [tensor("a", 8, 16, 32), tensor("b", 32, 10)], [tensor("c", 8, 16, 10)]), 8 * 16 * 10 * 32, None, 8192 + 640, 2560),
    ("with a bias", layer("gemm", [tensor("a", 4, 8), tensor("bias", 1, 6)], [tensor("c", 4, 6)]), 4 * 6 * 8, None, 64 + 12, 48),
    ("vector", layer("gemm", [tensor("a", 1, 3136)], [tensor("c", 1, 1024)]), 1024 * 3136, None, 6272, 2048),
    ("three products over one input", layer("gemm", [tensor("a", 1, 192, 1024)], [tensor("c", 3, 192, 1024)], name="q+k+v"), 3 * 192 * 1024 * 1024, None, 393216, 1179648),
    (
        "attention from Q, K and V",
        layer("attention", [tensor("q", 16, 192, 64), tensor("k", 16, 64, 192), tensor("v", 16, 192, 64)], [tensor("o", 16, 192, 64)]),
        2 * 16 * 192 * 192 * 64,
        None,
        3 * 393216,
        393216,
    ),
    ("attention from packed QKV", layer("attention", [tensor("qkv", 1, 128, 2304), tensor("m", 1, 1, 1, 128)], [tensor("o", 1, 128, 768)]), 2 * 128 * 128 * 768, None, 589824 + 256, 196608),
    ("cross attention", layer("attention", [tensor("q", 1, 64, 768), tensor("kv", 1, 128, 1536)], [tensor("o", 1, 64, 768)]), 2 * 64 * 128 * 768, None, 98304 + 393216, 98304),
    ("pooling", layer("pooling", [tensor("x", 1, 64, 112, 112)], [tensor("y", 1, 64, 56, 56)], WindowSize=[3, 3]), 0, 64 * 56 * 56 * 9, 1605632, 401408),
    ("pointwise", layer("pointwise", [tensor("x", 4, 4)], [tensor("y", 4, 4)], NbOperations=3), 0, 48, 32, 32),
    ("generated", layer("myelin_kernel", [tensor("x", 4, 4), tensor("m", 1, 4)], [tensor("y", 4, 4)], name="__myl_AddCastMulTran_myl0_1"), 0, 32, 40, 32),
    ("generated product", layer("myelin_kernel", [tensor("x", 4, 8)], [tensor("y", 4, 16)], name="__myl_FcAddRelu_myl0_1"), 4 * 16 * 8, None, 64, 128),
    ("reformat", layer("reformat", [tensor("x", 1, 3, 8, 8, datatype="FP32")], [tensor("y", 1, 3, 8, 8, layout=NHWC8)]), 0, 0, 768, 1024),
    ("softmax", layer("softmax", [tensor("x", 2, 8)], [tensor("y", 2, 8)]), 0, 80, 32, 32),
]  # fmt: skip


@pytest.mark.parametrize(
    ("made", "macs", "flops", "bytes_in", "bytes_out"),
    [case[1:] for case in CASES],
    ids=[str(case[0]) for case in CASES],
)
def test_work_equals_that_worked_out_by_hand(
    made: Layer, macs: int, flops: int | None, bytes_in: int, bytes_out: int
) -> None:
    work = layer_work(made)
    assert work.macs == macs
    assert work.flops == (2 * macs if flops is None else flops)
    assert (work.bytes_in, work.bytes_out) == (bytes_in, bytes_out)


def test_weights_are_counted_from_the_file_or_inferred() -> None:
    told = layer(
        "convolution",
        [tensor("x", 1, 3, 4, 4)],
        [tensor("y", 1, 8, 4, 4)],
        Kernel=[1, 1],
        Weights={"Type": "Int8", "Count": 24},
        Bias={"Type": "Float", "Count": 8},
    )
    assert layer_work(told).weight_bytes == 24 + 32
    inferred = layer_work(layer("gemm", [tensor("a", 128, 768)], [tensor("c", 128, 3072)]))
    assert inferred.weight_bytes == 768 * 3072 * 2
    assert inferred.reason is not None
    assert "hides the weights" in inferred.reason
    constants = Layer(
        0,
        "g",
        "gemm",
        "gemm",
        (tensor("a", 4, 8),),
        (tensor("c", 4, 6),),
        constants=(tensor("w", 8, 6), tensor("alpha", 1)),
        precision="FP16",
    )
    assert layer_work(constants).weight_bytes == 96 + 2
    assert layer_work(constants).macs == 192


@pytest.mark.parametrize(
    ("reads", "macs", "weights"),
    [
        ([tensor("a", 64, 1024)], 64 * 3072 * 1024, 1024 * 3072 * 2),
        ([tensor("a", 2, 32, 1024)], 64 * 3072 * 1024, 1024 * 3072 * 2),
        ([tensor("a", 1024, 64)], 64 * 3072 * 1024, 1024 * 3072 * 2),  # transposed
        (
            [tensor("a", 64, 1024), tensor("w", 3072, 1024)],
            64 * 3072 * 1024,
            None,
        ),  # the file shows them: they are read as an input
    ],
)
def test_a_plugin_named_after_a_product_multiplies(
    reads: list[Tensor], macs: int, weights: int | None
) -> None:
    told = layer_work(layer("plugin", reads, [tensor("c", 64, 3072)], PluginType="Gemm"))
    assert (told.macs, told.flops, told.weight_bytes) == (macs, 2 * macs, weights)
    moved = 2 * (64 * 1024 + 64 * 3072 + 1024 * 3072)
    assert told.bytes_moved == moved


def test_what_a_plugin_computes_is_told_by_its_type_or_unknown() -> None:
    reads, writes = [tensor("x", 64, 1024)], [tensor("y", 64, 1024)]
    for name in ("Rmsnorm", "InstanceNormalization_TRT", "LayerNormPlugin"):
        assert layer_work(layer("plugin", reads, writes, PluginType=name)).flops == 8 * 64 * 1024
    for name in ("GPTAttention", "WeightOnlyQuantMatmul", "Lookup", "GemmSwiglu"):
        unknown = layer_work(layer("plugin", reads, writes, PluginType=name))
        assert (unknown.macs, unknown.flops, unknown.reason) == (
            None,
            None,
            f"the work of a plugin {name} cannot be told from its tensors",
        )
    assert layer_work(layer("plugin", reads, writes)).flops is None
    dynamic = layer_work(
        layer("plugin", [tensor("x", -1, 1024)], [tensor("y", -1, 3072)], PluginType="Gemm")
    )
    assert dynamic.flops is None


def test_a_correlation_is_counted_from_its_weights() -> None:
    made = Layer(
        0,
        "c_myl0_1",
        "convolution",
        "correlation",
        (tensor("x", 1, 16, 8, 8),),
        (tensor("y", 1, 32, 8, 8),),
        constants=(tensor("w", 32, 16, 3, 3),),
    )
    assert layer_work(made).macs == 32 * 64 * 16 * 9


@pytest.mark.parametrize(
    "made",
    [
        layer("convolution", [tensor("x", -1, 3, 8, 8)], [tensor("y", -1, 8, 8, 8)], Kernel=[3, 3]),
        layer("gemm", [tensor("a", -1, 16)], [tensor("c", -1, 64)]),
        layer("gemm", [tensor("a", 7, 11)], [tensor("c", 5, 13)]),
        layer("attention", [tensor("x", 5, 7)], [tensor("y", 3, 2)]),
        layer("myelin_kernel", [tensor("x", 4)], [tensor("y", 4)], name="__myl_AddMulEtc_myl0_1"),
        layer("plugin", [tensor("x", 4)], [tensor("y", 4)]),
        layer("foreign_node", [tensor("x", 4)], [tensor("y", 4)]),
        Layer(0, "n", "convolution"),
    ],
)
def test_what_the_file_does_not_tell_is_said_to_be_missing(made: Layer) -> None:
    work = layer_work(made)
    assert work.flops is None
    assert work.reason


def test_where_writer_and_reader_disagree_the_shape_that_fits_the_product_is_taken() -> None:
    """Seen in engines of TensorRT 10: 12 heads written as [1,12,128,128] and shown to the reader as
    [1,128,768].
    """
    values = layer("gemm", [tensor("p", 1, 128, 768)], [tensor("c", 1, 12, 128, 64)])
    assert layer_work(values, {"p": (1, 12, 128, 128)}).macs == 12 * 128 * 64 * 128


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(1, 6),
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40)),
    st.booleans(),
    st.booleans(),
)
def test_the_summed_extent_is_found_for_every_transposition(
    batch: int, extents: tuple[int, int, int], turn_a: bool, turn_b: bool
) -> None:
    m, n, k = extents
    a, b = (batch, k, m) if turn_a else (batch, m, k), (batch, n, k) if turn_b else (batch, k, n)
    found = product_extent((batch, m, n), [a], [b])
    assert found is not None
    assert prod(a) == batch * m * found
    assert prod(b) == batch * n * found


def test_tensor_cores_come_from_the_tactic_and_movers_have_none() -> None:
    def cores(kind: str, tactic: str | None) -> str:
        return tensor_cores(Layer(0, "x", kind, kind, tactic=tactic))

    assert (
        cores(
            "gemm",
            "sm80_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize96x128x32_stage4_warpsize2x2x1_tensor16x8x16",
        )
        == "yes"
    )
    assert (
        cores(
            "convolution",
            "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize32x32x8_stage3_warpsize1x2x1_g1_ffma_t1r5s5_aligna4_alignc4",
        )
        == "no"
    )
    assert cores("convolution", None) == "unknown"
    assert cores("reformat", None) == "no"


def test_the_macs_of_a_whole_encoder_add_up() -> None:
    """bert_trt10: per block 128 x (768*2304 + 768*768 + 2*768*3072) for the linear layers,
    attention 2*128*128*768.
    """
    engine = read_engine(FIXTURES / "bert_trt10" / "engine.json")
    work = {layer.index: found for layer, found in engine_work(engine)}
    assert work[3].macs == 128 * 2304 * 768
    assert work[4].macs == 2 * 128 * 128 * 768
    assert (work[19].macs, work[21].macs) == (128 * 128 * 768, 128 * 128 * 768)
    products = sum(found.macs or 0 for layer, found in engine_work(engine) if layer.index < 53)
    assert products == 6 * (128 * (768 * 2304 + 768 * 768 + 2 * 768 * 3072) + 2 * 128 * 128 * 768)


@pytest.mark.parametrize(
    "name",
    [
        "engines/trt8_mobilenet_v2_residuals.graph.json",
        "engines/trt8_resnet_qat.graph.json",
        "captures/mobilenet_qat/engine.json",
    ],
)
def test_convolution_macs_agree_with_trex_on_its_own_samples(name: str) -> None:
    """trex counts N*K*P*Q*C*R*S/G from the first input and output (trt-engine-explorer,
    df_preprocessing, annotate_convolutions).
    """
    file = SHARED / name
    if not file.exists():
        pytest.skip("public engine files are not here")
    rows = json.loads(file.read_text(encoding="utf-8"))["Layers"]
    convolutions = 0
    for raw, (_, work) in zip(rows, engine_work(read_engine(file)), strict=True):
        if raw.get("ParameterType") != "Convolution":
            continue
        convolutions += 1
        n, c, _, _ = raw["Inputs"][0]["Dimensions"]
        _, k, p, q = raw["Outputs"][0]["Dimensions"]
        r, s = raw["Kernel"]
        assert work.macs == n * k * p * q * c * r * s // raw["Groups"]
    assert convolutions > 20


def test_the_table_has_one_row_a_layer() -> None:
    engine = read_engine(FIXTURES / "bert_trt10" / "engine.json")
    table = work_table([engine, engine])
    assert len(table) == 2 * len(engine.layers)
    assert table.records()[3]["flops"] == 2 * 128 * 2304 * 768
    assert table.records()[57 + 3]["layer_id"] == 60


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("__myl_AddCastMeanSubMulMeanAddSqrtDivMulMulAdd{}", "kgen", "norm"),
        ("__myl_MeanSubMulMean{}", "kgen", "norm"),
        ("__myl_MulAddMaxrSubExpSumDivMul{}", "kgen", "softmax"),
        ("__myl_FcMulAdd{}", "kgen", "product"),
        ("/fc/MatMul{}", "gemm", "product"),
        ("_gemm_mha_v2{}", "kgen", "attention"),
        ("__myl_ReshTran{}", "kgen", "movement"),
        ("__myl_ReshCast{}", "kgen", "cast"),
        ("__myl_AddTanh{}", "kgen", "pointwise"),
        ("__mye1_0{}", "shape_call", "nothing"),
        ("Reformatting CopyNode for Input Tensor 0 to x", "Reformat", "reformat"),
        ("{ForeignNode[a...b]}", "Myelin", "region"),
        ("pool", "TiledPooling", "pooling"),
        ("__myl_AddReshTranReshMove{}", "kgen", "pointwise"),
        ("__myl_ReshConcMean{}", "kgen", "reduction"),
        ("__myl_Topk{}", "kgen", "selection"),
        ("__myl_GnorSilu{}", "kgen", "norm"),
        ("__myl_ReshReshResiConc{}", "kgen", "resize"),
        ("__myl_AddReshEtc{}", "kgen", "other"),
    ],
)
def test_every_layer_is_for_something(name: str, kind: str, told: str) -> None:
    assert does(made(row(name, kind, [], [])).layers[0]) == told


def test_products_know_their_channels() -> None:
    half = "Half"
    conv = row(
        "c",
        "CaskConvolution",
        [("x", [1, 24, 8, 8], half)],
        [("y", [1, 48, 8, 8], half)],
        ParameterType="Convolution",
        Kernel=[3, 3],
        Groups=2,
    )
    gemm = row("/fc/MatMul{}", "gemm", [("x", [1, 64, 384], half)], [("y", [1, 64, 1536], half)])
    rows = work_table([made(conv, gemm)]).records()
    assert [(item["channels_in"], item["channels_out"], item["groups"]) for item in rows] == [
        (24, 48, 2),
        (384, 1536, None),
    ]


REAL = FIXTURES / "real_trt"


@pytest.mark.parametrize(
    ("engine", "gflops"),
    [
        # 4 layers of 12 * 768^2 weights and two products of 128 * 128 * 768, for 128 tokens
        ("bert_eager", 2 * 4 * (12 * 768 * 768 * 128 + 2 * 128 * 128 * 768) / 1e9),
        ("bert_qkv", 2 * 4 * (12 * 768 * 768 * 128 + 2 * 128 * 128 * 768) / 1e9),
        # the networks' published multiply-adds, with the classifier: 4.09 G (ResNet-50, stride in
        # the 3x3) and 1.50 G
        ("resnet50_b1", 2 * 4.09),
        ("resnet50_b8", 2 * 8 * 4.09),
        ("googlenet", 2 * 1.50),
        # one token of 4 layers: q, k and v, the output, the gate, up and down products, keys and
        # values of 256 positions; the head
        (
            "llama",
            2
            * (4 * (1024 * 1536 + 1024 * 1024 + 3 * 1024 * 2816 + 2 * 256 * 1024) + 1024 * 1000)
            / 1e9,
        ),
    ],
)
def test_the_operations_of_engines_that_tensorrt_built_are_those_of_their_models(
    engine: str, gflops: float
) -> None:
    total = sum(
        work.flops or 0 for _, work in engine_work(read_engine(REAL / f"{engine}.engine.json"))
    )
    assert total / 1e9 == pytest.approx(gflops, rel=0.03)


@pytest.mark.parametrize("engine", ["bert_eager", "bert_op13", "googlenet", "llama", "resnet50_b1"])
def test_no_layer_of_an_engine_that_tensorrt_built_is_of_a_kind_that_says_nothing(
    engine: str,
) -> None:
    found = list(engine_work(read_engine(REAL / f"{engine}.engine.json")))
    assert not {layer.kind for layer, _ in found} & {"other", "unknown"}
    assert all(layer.precision == "FP16" for layer, work in found if work.macs)
    assert all(work.bytes_moved is not None for _, work in found)


def test_a_runtime_fusion_of_a_product_is_a_product() -> None:
    engine = read_engine(REAL / "bert_eager.engine.json")
    up, work = next(
        (layer, work) for layer, work in engine_work(engine) if layer.type == "runtime_fusion"
    )
    assert up.name == "__myl_FcAddDivCastErfCastAddMulMul_myl0_9"
    assert (up.kind, does(up), up.precision) == ("gemm", "product", "FP16")
    assert (work.macs, work.channels_in, work.channels_out) == (128 * 768 * 3072, 768, 3072)
    assert work.bytes_moved == 2 * (128 * 768 + 128 * 3072 + 768 * 3072 + 3072)


def test_a_mask_beside_queries_keys_and_values_is_no_key() -> None:
    reads = [
        tensor("q", 12, 128, 64),
        tensor("k", 12, 64, 128),
        tensor("mask", 1, 1, 1, 128),
        tensor("v", 12, 128, 64),
    ]
    assert (
        layer_work(layer("attention", reads, [tensor("o", 12, 128, 64)])).macs
        == 2 * 12 * 128 * 128 * 64
    )


@pytest.mark.parametrize("dynamic", [0, 2])
def test_products_of_which_one_dimension_is_dynamic_know_their_channels(dynamic: int) -> None:
    half = "Half"
    read, written = [1, 24, 8, 8], [1, 48, 8, 8]
    read[dynamic] = written[dynamic] = -1
    conv = row(
        "c",
        "CaskConvolution",
        [("x", read, half)],
        [("y", written, half)],
        ParameterType="Convolution",
        Kernel=[3, 3],
        Groups=1,
    )
    listed = row(
        "c{}",
        "correlation",
        [("x", read, half)],
        [("y", written, half)],
        Constants=[_constant("w", [48, 12, 3, 3])],
    )
    gemm = row(
        "/fc/MatMul{}",
        "gemm",
        [("x", [1, -1, 384], half)],
        [("y", [1, -1, 1536], half)],
        Constants=[_constant("w", [1, 384, 1536])],
    )
    rows = work_table([made(conv, listed, gemm)]).records()
    assert [(item["channels_in"], item["channels_out"], item["groups"]) for item in rows] == [
        (24, 48, 1),
        (24, 48, 2),
        (384, 1536, None),
    ]
    assert {item["macs"] for item in rows} == {None}


def test_a_gather_reads_of_its_table_what_it_looks_up() -> None:
    table = [_constant("table", [50000, 768])]
    found = made(
        row(
            "__myl_CastGath{}",
            "kgen",
            [("ids", [1, 128], "Int64")],
            [("y", [1, 128, 768], "Half")],
            Constants=table,
        )
    )
    assert layer_work(found.layers[0]).bytes_moved == 128 * 8 + 2 * 2 * 128 * 768


def _constant(name: str, dimensions: list[int]) -> dict[str, object]:
    return {
        "Name": name,
        "Dimensions": dimensions,
        "Datatype": "Half",
        "Format": "(Linear) Row major linear format",
    }


def test_what_a_kernel_of_a_cut_name_does_is_told_by_its_onnx_nodes() -> None:
    name = "__myl_SlicReshCastGathReshSlicReshCastGathReshSlicReshCastGathEtc{}"
    moves, adds = (
        "[ONNX Layer: /Gather]\x1f[ONNX Layer: /Concat]",
        "[ONNX Layer: /Gather]\x1f[ONNX Layer: /Add]",
    )
    told = [
        does(made(row(name, "kgen", [], [], Metadata=nodes)).layers[0])
        for nodes in (moves, adds, "")
    ]
    assert told == ["movement", "pointwise", "other"]


def test_the_output_channels_of_a_1x1_convolution_as_a_product_are_its_rows_and_not_the_pixels() -> (
    None
):
    weights = Tensor("w", (1, 1024, 256), "FP16", None)
    made = replace(
        layer("gemm", [tensor("x", 1, 256, 196)], [tensor("y", 1, 1024, 196)]), constants=(weights,)
    )
    assert (layer_work(made).channels_in, layer_work(made).channels_out) == (256, 1024)
