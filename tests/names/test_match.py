"""Whether a kernel can be a tactic, how well it suits a layer, and what a layer's name and type
tell.
"""

from __future__ import annotations

import csv
import json
from itertools import permutations
from pathlib import Path

import pytest

from nsysmap.inputs.engine.model import LAYER_KINDS
from nsysmap.names.decode import (
    affinity,
    decode,
    layer_kind,
    matches_tactic,
    normalized_range_text,
    split_layer_name,
)
from nsysmap.names.layers import node_row, nodes_of
from tests.places import CAPTURES, FIXTURES, NAME_TABLES, SHARED

TACTICS = NAME_TABLES / "tactics.tsv"
GEMM = "sm80_xmma_gemm_f16f16_f16f16_f16_nn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16"
MYELIN = "__myl_AddMulCastReshTran_0xf7e2b434b541645892ba84e278dad6f5"


@pytest.mark.parametrize(
    ("kernel", "tactic"),
    [
        (GEMM, GEMM),
        (GEMM + "_execute_kernel_trt", GEMM),
        (GEMM + "_kernel_trt", GEMM),
        (GEMM + "_kernel", GEMM),
        (GEMM + "_execute_split_k_kernel__5x_cublas", GEMM),
        (GEMM + "_execute_segment_k_off_kernel__5x_cublas", GEMM),
        (GEMM + "_fused", GEMM + "_by_fusion_tactic"),
        (GEMM + "_fused_execute_kernel_trt", GEMM + "_fused"),
        (MYELIN, MYELIN),
        (MYELIN + "_com", MYELIN),
        (MYELIN + "_com_vec", MYELIN),
        (MYELIN + "_com_vec", MYELIN + "_vec"),
        ("a_bias_relu_exec_conv1x1_kernel_0_kernel_trt", "a_bias_relu"),
        (
            "cutlass3x_sm100_tensorop_s128x128x32gemm_f8_f8_f32_e4m3_e4m3_128x128x128_0_tnn_align16_1sm_bias_f32_gelu",
            "cutlass3x_sm100_tensorop_s128x128x32gemm_e4m3_e4m3_f32_e4m3_e4m3_128x128x128_0_tnn_align16_1sm_bias_f32_gelu",
        ),
    ],
)
def test_a_kernel_is_the_tactic_with_what_the_launcher_adds(kernel: str, tactic: str) -> None:
    assert matches_tactic(kernel, tactic)


@pytest.mark.parametrize(
    ("kernel", "tactic"),
    [
        (GEMM, ""),
        ("", ""),
        (GEMM + "_fused", GEMM),
        (GEMM + "_execute_kernel_trt", GEMM.replace("stage4", "stage3")),
        (GEMM + "_execute_kernel_trt", GEMM[:-1]),
        (GEMM, GEMM + "_aligna4"),
        (GEMM + "_aligna4_execute_kernel_trt", GEMM),
        (GEMM + "_execute_kernel_trt", GEMM + "_execute_kernel__5x_cublas"),
        (MYELIN + "_vec", MYELIN),
        (MYELIN + "_com", MYELIN.replace("0xf7", "0xf8")),
        (
            "__myl_Fc_0x81_tensorop64x128_cga1x1_gemm_811_0",
            "__myl_Fc_0x81_tensorop64x128_cga1x1_gemm_864_0",
        ),
        ("gemm_e4m3_e4m3_f32", "gemm_f8_f8_f32"),
        ("gemm_e5m2_e4m3_f32", "gemm_e4m3_e4m3_f32"),
    ],
)
def test_a_kernel_of_another_tactic_does_not_match(kernel: str, tactic: str) -> None:
    assert not matches_tactic(kernel, tactic)


def test_of_the_public_tactics_no_two_match_each_other() -> None:
    with TACTICS.open(encoding="utf-8") as file:
        names = [
            row["name"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
    # f8: a kernel's spelling
    tactics = [
        name for name in names if "launcher" not in decode(name).fields and "_f8_" not in name
    ]
    assert len(tactics) > 150
    assert [pair for pair in permutations(tactics, 2) if matches_tactic(*pair)] == []


LAYERS = {
    "myelin layernorm": ("myelin_kernel", "__myl_AddMeanSubMulMeanAddSqrtDivMulMulAdd_myl0_6", ()),
    "myelin softmax": ("myelin_kernel", "__myl_MulAddMaxrSubExpSumDivMul_myl0_20", ()),
    "myelin gemm with epilogue": (
        "myelin_kernel",
        "__myl_FcAdd_myl2_5",
        ("/blocks/0/attn/proj/MatMul", "/blocks/0/attn/proj/Add"),
    ),
    "myelin attention": ("attention", "_gemm_mha_v2_myl0_4", ()),
    "myelin library gemm": (
        "gemm",
        "/bert/encoder/layer.0/output/dense/MatMul_myl0_8",
        ("/bert/encoder/layer.0/output/dense/MatMul",),
    ),
    "convolution": ("convolution", "/conv1/Conv + /relu/Relu", ()),
    "pointwise": ("pointwise", "PWN(PWN(/act/Sigmoid), /act/Mul)", ()),
    "reformat": ("reformat", "Reformatting CopyNode for Input Tensor 0 to /conv1/Conv", ()),
    "pooling": ("pooling", "/maxpool/MaxPool", ()),
    "softmax": ("softmax", "/softmax/Softmax", ()),
}
KERNELS = {
    "__myl_AddMeanSubMulMeanAddSqrtDivMulMulAdd_0x24214c424ddad22198689b80b3bc7a12_com_vec": (
        "myelin layernorm"
    ),
    "__myl_MulAddMaxrSubExpSumDivMul_0x1dfbe970d870a32006aaa8b289a02ec7": "myelin softmax",
    GEMM + "_fused": "myelin gemm with epilogue",
    "_gemm_mha_v2_0x9a82d01d7788f947752fb0caeedda4d2": "myelin attention",
    GEMM + "_execute_kernel_trt": "myelin library gemm",
    "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x32x32_stage4_execute_kernel_trt": (  # noqa: E501
        "convolution"
    ),
    "generatedNativePointwise": "pointwise",
    "void genericReformat::copyPackedKernel<float, __half, (bool)1, (bool)1>(unsigned int)": (
        "reformat"
    ),
    "sm50_xmma_pooling_coalescedC_NHWC_kMAX_3_False_execute_kernel_trt": "pooling",
    "void cuSoftMaxLayer::nchwSoftmaxAxisWSmall<float, (unsigned int)32>(int, const T1 *, T1 *, int)": (  # noqa: E501
        "softmax"
    ),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_suits_its_own_layer_best(kernel: str) -> None:
    degrees = {title: affinity(decode(kernel), *layer) for title, layer in LAYERS.items()}
    best = max(degrees, key=lambda title: degrees[title])
    if kernel.endswith("_execute_kernel_trt") and "gemm_f16f16_f16f16_f16_nn" in kernel:
        degrees.pop("myelin gemm with epilogue")
    assert best == KERNELS[kernel]
    assert degrees.pop(best) >= 0.9
    assert max(degrees.values()) <= 0.6
    assert all(0.0 <= degree <= 1.0 for degree in degrees.values())


def test_myelin_layers_with_other_ops_hardly_fit_and_with_the_same_ops_fit_perfectly() -> None:
    kernel = decode("__myl_ReshTran_0xbe196abf1ff45d9f4c615b95a6c6fbb9")
    assert affinity(kernel, "myelin_kernel", "__myl_ReshTran_myl0_18", ()) == 1.0
    assert affinity(kernel, "myelin_kernel", "__myl_TranResh_myl0_22", ()) < 0.1


def test_a_layer_that_runs_no_kernel_gets_hardly_any() -> None:
    for kind, name in (
        ("shape", "__mye4000_0_myl0_0"),
        ("signal", "entry^bb^signal^1_myl0_3"),
        ("constant", "onnx::Conv_239_clone_1"),
    ):
        assert affinity(decode(GEMM), kind, name, ()) < 0.05


def test_onnx_nodes_tell_the_class_of_a_layer_without_one() -> None:
    convolution = decode("sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc")
    assert affinity(convolution, "unknown", "my_layer", ("/a/Conv", "/a/Relu")) > 0.9
    assert affinity(convolution, "unknown", "my_layer", ()) == 0.5


@pytest.mark.parametrize(
    ("name", "node", "region", "index", "profile"),
    [
        ("__myl_AddMul_myl0_6", "__myl_AddMul", 0, 6, None),
        ("node_linear [profile 1]_myl11_2", "node_linear", 11, 2, 1),
        ("node_conv2d + node_relu [profile 1]", "node_conv2d + node_relu", None, None, 1),
        ("__mye1+__mye2_myl816_0", "__mye1+__mye2", 816, 0, None),
        ("/conv1/Conv", "/conv1/Conv", None, None, None),
        ("a_myl1_2_b", "a_myl1_2_b", None, None, None),
    ],
)
def test_a_layer_name_is_split_into_node_region_and_profile(
    name: str, node: str, region: int | None, index: int | None, profile: int | None
) -> None:
    assert tuple(split_layer_name(name)) == (node, region, index, profile)


def test_10_3_ranges_leave_out_the_number_and_write_dots_as_underscores() -> None:
    assert (
        normalized_range_text("/blocks/blocks.15/attn/proj/MatMul_myl2_7")
        == "/blocks/blocks_15/attn/proj/MatMul"
    )
    assert normalized_range_text("__myl_Fc_myl0_872") == "__myl_Fc"


@pytest.mark.parametrize(
    ("name", "layer_type", "kind"),
    [
        ("x", "CaskConvolution", "convolution"),
        ("x", "CaskGemmConvolution", "convolution"),
        ("(Unnamed Layer* 8) [Matrix Multiply]", "CublasConvolution", "convolution"),
        ("(Unnamed Layer* 12) [Softmax] + (Unnamed Layer* 13) [TopK]", "LogSoftmaxTopK", "softmax"),
        ("QuantizeLinear_98", "Scale", "quantize"),
        ("BatchNormalization_3", "Scale", "scale"),
        ("x", "CudaDepthwiseConvolution Convolution", "convolution"),
        ("x", "PointWiseV2", "pointwise"),
        ("QuantizeLinear_2", "Reformat", "quantize"),
        ("{ForeignNode[a...b]}", "Myelin", "foreign_node"),
        ("__myl_AddMul_myl0_1", "kgen", "myelin_kernel"),
        ("_gemm_mha_v2_myl0_4", "kgen", "attention"),
        ("__myl_FcAdd_myl0_1", "fusion", "gemm"),
        ("__myl_FcAddDivCastErfCastAddMulMul_myl0_9", "runtime_fusion", "gemm"),
        ("__myl_FcAddDivCastErfCastAddMulMul_myl0_9", None, "gemm"),
        ("__myl_CorrMulAddMinMaxMul_myl0_9", "kgen", "convolution"),
        ("__myl_AddMul_myl0_9", "runtime_fusion", "myelin_kernel"),
        ("/maxpool1/MaxPool_myl0_2", "maxpool", "pooling"),
        ("__mye5_myl0_2", "cjmp", "signal"),
        ("__mye5_hc_init_myl0_2", "memset", "constant"),
        ("__mye16508_incr_myl0_54", "add", "shape"),
        ("adv_off^hvar^16788i64_myl0_55", "add", "shape"),
        ("adv_off^hvar^16788i64_myl0_55", None, "shape"),
        ("/Add_myl0_55", "add", "pointwise"),
        ("/pool/AveragePool_myl0_2", "avgpool", "pooling"),
        ("__myl_Conc_myl0_2", "runtime_function", "myelin_kernel"),
        ("/conv1/Conv_myl0_2", "newconvtype", "convolution"),
        ("/a/MatMul_myl0_3", "gemm", "gemm"),
        ("/a/Conv_myl0_2", "correlation", "convolution"),
        ("__mye1_0_myl0_0", "shape_call", "shape"),
        ("__mye1_0_myl0_0", "wait", "signal"),
        ("x", "PluginV2DynamicExt", "plugin"),
        ("x", "PluginV9", "plugin"),
        ("x", "SomethingNew", "other"),
        ("/conv1/Conv + /relu/Relu", None, "convolution"),
        ("fc.weight + QuantizeLinear_255 + Gemm_257 + fc.bias", None, "gemm"),
        ("PWN(/a/Sigmoid)", None, "pointwise"),
        ("Reformatting CopyNode for Input Tensor 0 to /conv1/Conv", None, "reformat"),
        ("{ForeignNode[a...b]}", None, "foreign_node"),
        ("images to nvm", None, "reformat"),
        ("head_3 from nvm", None, "reformat"),
        ("head_3 copy finish", None, "signal"),
        ("_gemm_mha_v2_myl0_4", None, "attention"),
        ("__myl_AddMul_myl0_1", None, "myelin_kernel"),
        ("__mye1+__mye2+__mye3_myl2_3", None, "gemm"),
        ("__mye780_0_myl0_0", None, "unknown"),
        ("dummy_shape_call__mye1_0_myl0_0", None, "shape"),
        ("entry^bb^wait^2_myl0_3", None, "signal"),
        ("onnx::Conv_239_clone_1", None, "constant"),
        ("(Unnamed Layer* 412) [Shuffle]", None, "shuffle"),
        ("node_max_pool2d_1 [profile 1]", None, "pooling"),
        ("resnet50/conv1_conv/Conv2D__6", None, "unknown"),
        ("reshape_after_/fc/Gemm", None, "shuffle"),
        ("LLaMAForCausalLM/lm_head/PLUGIN_V2_Gemm_0", None, "plugin"),
        ("gateup_matmul_edgefm_layout_myl0_3", None, "unknown"),
    ],
)
def test_a_layer_has_a_class_by_its_type_or_else_by_its_name(
    name: str, layer_type: str | None, kind: str
) -> None:
    assert layer_kind(name, layer_type) == kind
    assert kind in LAYER_KINDS


def _captures() -> list[Path]:
    return sorted(
        {
            path.parent.name: path.parent
            for base in (CAPTURES, FIXTURES)
            for path in base.glob("*/truth.tsv")
        }.values()
    )


@pytest.mark.parametrize("capture", _captures(), ids=lambda path: path.name)
def test_every_kernel_of_a_capture_is_its_layers_tactic_and_suits_it(capture: Path) -> None:
    layers = json.loads((capture / "engine.json").read_text(encoding="utf-8"))["Layers"]
    with (capture / "truth.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            layer = layers[int(row["layer_index"])]
            if layer.get("TacticName") and layer["TacticName"] != row["kernel"]:
                assert matches_tactic(row["kernel"], layer["TacticName"]), row["kernel"]
            if decode(row["kernel"]).kind == "kernel":
                assert (
                    affinity(
                        decode(row["kernel"]),
                        layer_kind(layer["Name"], layer["LayerType"]),
                        layer["Name"],
                        (),
                    )
                    >= 0.5
                ), row


ENGINES = SHARED / "engines"
_STATED = (
    ("Int8", "INT8"),
    ("FP16", "FP16"),
    ("Half", "FP16"),
    ("FP32", "FP32"),
    ("Float", "FP32"),
)


def _stated(tensor: dict[str, str]) -> str:
    text = tensor.get("Format/Datatype") or tensor.get("Datatype") or ""
    return next((short for word, short in _STATED if word in text), "")


@pytest.mark.skipif(not ENGINES.is_dir(), reason="the public engine files are not here")
def test_the_types_in_tactics_are_those_that_the_layers_of_public_engines_state() -> None:
    compared = 0
    for path in [
        *ENGINES.glob("*.graph.json"),
        *ENGINES.glob("*.layers.json"),
        *CAPTURES.glob("*/engine.json"),
    ]:
        for layer in json.loads(path.read_text(encoding="utf-8"))["Layers"]:
            fields = decode(layer.get("TacticName") or "").fields
            for side, key in (("Inputs", "input_type"), ("Outputs", "output_type")):
                if key in fields and layer.get(side) and (stated := _stated(layer[side][0])):
                    assert fields[key] == stated, (
                        path.name,
                        layer["Name"],
                        layer["TacticName"],
                        side,
                    )
                    compared += 1
    assert compared > 150


def test_the_nodes_of_a_pointwise_layer_are_named_whatever_constants_stand_among_them() -> None:
    name = "PWN(PWN(PWN(247 + (Unnamed Layer* 11) [Shuffle], Add_49), PWN(Sqrt_50)), Mul_52)"
    assert nodes_of(name) == ["247", "(Unnamed Layer* 11) [Shuffle]", "Add_49", "Sqrt_50", "Mul_52"]


@pytest.mark.parametrize(
    ("node", "op"),
    [
        ("[CONVOLUTION]-[aten_ops.convolution.default]-[/features/3/conv/2/convolution_8]", "Conv"),
        (
            "[SCALE]-[aten_ops._native_batch_norm_legit_no_training.default]-[/features/3/conv/3/norm_8]",
            "BatchNormalization",
        ),
        ("[ELEMENTWISE]-[aten_ops.add.Tensor]-[/features/3/add]", "Add"),
        ("[MATRIX_MULTIPLY]-[aten_ops.addmm.default]-[/classifier/1/addmm_mm]", "Gemm"),
        ("[ELEMENTWISE]-[aten_ops.addmm.default]-[/classifier/1/addmm_add]", "ElementWise"),
        ("[SLICE]-[aten_ops.clamp.default]-[/features_0/2/clamp_min_rhs_broadcast]", "Slice"),
        ("[MAX]-[aten_ops.max_pool2d.default]-[/maxpool/max_pool2d]", "MaxPool"),
    ],
)
def test_nodes_of_torch_tensorrt_name_the_operation_that_they_are_made_of(
    node: str, op: str
) -> None:
    row = node_row(node)
    assert row is not None and row.op == op


@pytest.mark.parametrize(
    ("layer", "kind", "nodes"),
    [
        ("__myl_FcAddDivCastErfCastAddMulMul_myl0_9", "gemm", 6),
        ("__myl_FcAddRelu_myl0_5", "gemm", 2),
        ("__myl_FcAdd_myl0_5", "gemm", 1),
        ("/down/MatMul_myl0_10", "gemm", 0),
    ],
)
def test_a_kernel_that_cudnn_generated_fuses_as_many_nodes_as_its_layer_has_operations(
    layer: str, kind: str, nodes: int
) -> None:
    kernels = {
        fused: decode(
            f"cudnn_generated_fort_native_sm80_matMul{'_pointwise' * fused}_knob_24_64x64x32_5_0"
        )
        for fused in (0, 1, 2, 3, 6)
    }
    degrees = {fused: affinity(kernel, kind, layer, ()) for fused, kernel in kernels.items()}
    assert degrees.pop(nodes) >= 0.9
    assert all(degree < 0.5 for degree in degrees.values())
