"""Layers listed in logs: one-line, brief and names-only, among everything else that a log holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.engine.layer_info import Document, engine_of
from nsysmap.inputs.engine.log import documents_in_log, tensorrt_version
from nsysmap.inputs.engine.profile import logged_profile
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.network.reformats import engine_reformats


def parse_log(text: str) -> Document | None:
    """The last engine that the text lists."""
    found = documents_in_log(text)
    return found[-1] if found else None


unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
STAMP = "[11/01/2024-10:32:57] [V] [TRT] "
CONV = (
    "Name: /f/Conv + PWN(PWN(/a/Sigmoid), /a/Mul), LayerType: CaskConvolution, Inputs: [ { Name: x,"
    " Location: Device, Dimensions: [1,3,224,224], Format/Datatype: Half }, { Name: y, Location:"
    " Device, Dimensions: [1,64,55,55], Format/Datatype: Channel major FP16 format where channel %"
    " 8 == 0 }], Outputs: [ { Name: z, Location: Device, Dimensions: [1,64,55,55], Format/Datatype:"
    " Thirty-two wide channel vectorized row major Int8 format }], ParameterType: Convolution,"
    ' Kernel: [11,11], PaddingMode: kEXPLICIT_ROUND_DOWN, Weights: {"Type": "Half", "Count":'
    " 23232}, HasBias: 1, TacticName: sm80_xmma_x, TacticValue: 0x280b0ad3c23d8442, StreamId: 0,"
    " Metadata: [ONNX Layer: /f/Conv]\x1e[ONNX Layer: /a/Mul]"
)
MYELIN = (
    "Name: __myl_MulSum_myl0_0, LayerType: kgen, Inputs: [ { Name: __mye116_dconst, Dimensions:"
    " [10,10], Format/Datatype: Float }, { Name: x, Dimensions: [10,1], Format/Datatype: Float }],"
    " Outputs: [ { Name: __myln_k_arg__bb1_2, Dimensions: [1,10], Format/Datatype: Float }],"
    " TacticName: __myl_MulSum_0xfa6c, StreamId: 0, Metadata: "
)
REGION = (
    "Name: {ForeignNode[a.../b]}, LayerType: Myelin, Inputs: [], Outputs: [ { Name: o, Location:"
    " Device, Dimensions: [2,126], Format/Datatype: Row major linear FP32 }], TacticValue: 0x0"
)
SPLIT = (
    "Name: g_myl3_2, LayerType: gemm, Inputs: [ { Name: a, Dimensions: [1,192], Strides: [192,1],"
    " StrideOrder: [1,0], Datatype: Half, Format: (Linear) Row major linear format }], Constants: ["
    " { Name: w, Dimensions: [192], Strides: [1], StrideOrder: [0], Datatype: Float, Format:"
    " (Linear) Row major linear format }], Outputs: [ { Name: b, Dimensions: [1,2], Strides: [2,1],"
    " StrideOrder: [1,0], Datatype: Half, Format: (Arbitrary) Format with stride order = [1,2,0]"
    " }], TacticName: t, StreamId: 1, Metadata: [ONNX Layer: m]"
)


def read(folder: Path, text: str):  # type: ignore[no-untyped-def]
    file = folder / "build.log"
    file.write_text(text, encoding="utf-8")
    return read_engine(file)


def test_one_line_layers_are_read_with_every_field(tmp_path: Path) -> None:
    engine = read(
        tmp_path,
        "&&&& RUNNING TensorRT.trtexec [TensorRT v100900] #"
        f" trtexec\n{STAMP}Layers:\n{CONV}\n{MYELIN}\n{REGION}\n\nBindings:\nx\ny\n{STAMP}done\n",
    )
    conv, kgen, region = engine.layers
    assert engine.detailed
    assert engine.tensorrt_version == "10.9.0"
    assert engine.bindings == ("x", "y")
    assert conv.name == "/f/Conv + PWN(PWN(/a/Sigmoid), /a/Mul)"
    assert [tensor.datatype for tensor in conv.inputs] == ["FP16", "FP16"]
    assert conv.inputs[1].format == "Channel major FP16 format where channel % 8 == 0"
    assert conv.outputs[0].datatype == "INT8"
    assert conv.parameters["Kernel"] == [11, 11]
    assert conv.parameters["Weights"] == {"Type": "Half", "Count": 23232}
    assert conv.parameters["TacticValue"] == "0x280b0ad3c23d8442"
    assert conv.onnx == ("/f/Conv", "/a/Mul")
    assert (kgen.tactic, kgen.region, kgen.region_index, kgen.stream) == (
        "__myl_MulSum_0xfa6c",
        0,
        0,
        0,
    )
    assert kgen.inputs[1].dimensions == (10, 1)
    assert region.inputs == ()
    assert region.outputs[0].dimensions == (2, 126)


def test_tensorrt_11_lines_give_strides_and_constants(tmp_path: Path) -> None:
    (layer,) = read(tmp_path, SPLIT + "\n").layers
    assert layer.inputs[0].strides == (192, 1)
    assert [tensor.name for tensor in layer.constants] == ["w"]
    assert layer.outputs[0].format == "(Arbitrary) Format with stride order = [1,2,0]"
    assert layer.outputs[0].datatype == "FP16"
    assert layer.stream == 1
    assert layer.onnx == ("m",)


def test_comment_signs_and_blank_lines_between_layers_do_not_matter(tmp_path: Path) -> None:
    assert len(read(tmp_path, f"    # Layers:\n    # {MYELIN}\n\n    # {MYELIN}\n").layers) == 2


@pytest.mark.parametrize(
    ("line", "tensors"),
    [
        (
            (
                "Layer(CaskConvolution): Conv_0 + PWN(Clip_3), Tactic: 0x02d9,"
                " in[Float(1,3,512,768)], b (x)[Int8(4)] -> 395[Int8(1,32,256,384)]"
            ),
            ["in", "b (x)"],
        ),
        (
            (
                "Layer(CaskConvolution): Conv_0 + PWN(Clip_3), Tactic: 0x02d9 (sm80_xmma), in"
                " (Float[1,3,512,768]), b (Int8[4]) -> 395 (Int8[1,32,256,384])"
            ),
            ["in", "b"],
        ),
    ],
)
def test_the_builders_brief_lines_are_read(tmp_path: Path, line: str, tensors: list[str]) -> None:
    (layer,) = read(
        tmp_path, f"[02/08/2023-15:25:37] [V] [TRT] Engine Layer Information:\n{line}\n"
    ).layers
    assert (layer.name, layer.type) == ("Conv_0 + PWN(Clip_3)", "CaskConvolution")
    assert [tensor.name for tensor in layer.inputs] == tensors
    assert layer.inputs[0].dimensions == (1, 3, 512, 768)
    assert (layer.outputs[0].name, layer.outputs[0].datatype, layer.outputs[0].dimensions) == (
        "395",
        "INT8",
        (1, 32, 256, 384),
    )


def test_brief_lines_tell_how_many_channels_stand_together(tmp_path: Path) -> None:
    line = (
        "Layer(CaskConvolution): Conv_0, Tactic: 0x3d98, Reformatted Input Tensor 0 to Conv_0"
        " (Int8[1,3:4,224,224]) -> 395 (Half[1,32:8,112,112])"
    )
    (layer,) = read(
        tmp_path, f"[02/08/2023-15:25:37] [V] [TRT] Engine Layer Information:\n{line}\n"
    ).layers
    assert [
        (tensor.name, tensor.datatype, tensor.dimensions)
        for tensor in (*layer.inputs, *layer.outputs)
    ] == [
        ("Reformatted Input Tensor 0 to Conv_0", "INT8", (1, 3, 224, 224)),
        ("395", "FP16", (1, 32, 112, 112)),
    ]
    assert layer.inputs[0].format == "4 wide channel vectorized Int8 format"


def test_a_brief_line_without_inputs_has_outputs(tmp_path: Path) -> None:
    (layer,) = read(
        tmp_path,
        "[TRT] [V] Layer(Constant): k + (Unnamed Layer* 13) [Shuffle], Tactic: 0,  -> (Unnamed"
        " Layer* 13) [Shuffle]_output[Float(1,-7,256)]\n",
    ).layers
    assert layer.name == "k + (Unnamed Layer* 13) [Shuffle]"
    assert layer.inputs == ()
    assert layer.outputs[0].name == "(Unnamed Layer* 13) [Shuffle]_output"
    assert layer.outputs[0].dimensions == (1, -1, 256)


def test_a_names_only_dump_is_read_and_says_so(tmp_path: Path) -> None:
    engine = read(
        tmp_path,
        "[01/10/2024-21:55:13] [I] Layer Information:\n[01/10/2024-21:55:13] [I] Layers:\nconv1 +"
        " relu\n__myl_Add_myl0_1\n\nBindings:\nx\n[01/10/2024-21:55:14] [I] next\n",
    )
    assert [layer.name for layer in engine.layers] == ["conv1 + relu", "__myl_Add_myl0_1"]
    assert not engine.detailed
    assert engine.bindings == ("x",)


def test_the_last_of_the_most_detailed_lists_is_taken(tmp_path: Path) -> None:
    text = (
        f"{STAMP}Layers:\n{CONV}\n{STAMP}Layers:\n{MYELIN}\n{MYELIN}\n{STAMP}Engine Layer"
        " Information:\nLayer(NoOp): n, Tactic: 0, a[Half(1)] -> b[Half(1)]\n"
    )
    engine = read(tmp_path, text)
    assert [layer.type for layer in engine.layers] == ["kgen", "kgen"]
    assert any("2 different engines" in note.text for note in engine.notes)


def test_layers_printed_once_more_one_by_one_after_the_bindings_are_the_same_engine(
    tmp_path: Path,
) -> None:
    engine = read(
        tmp_path,
        f"Engine information:\nLayers:\n{CONV}\n{MYELIN}\n\nBindings:\nx\ny\n\nLayer"
        f" information:\n{CONV}\n\n{MYELIN}\n",
    )
    assert [layer.type for layer in engine.layers] == ["CaskConvolution", "kgen"]
    assert engine.bindings == ("x", "y")
    assert not engine.notes


def test_a_listing_that_names_a_layer_which_it_lacks_is_an_excerpt_and_its_edges_are_no_inputs(
    tmp_path: Path,
) -> None:
    copy = (
        "Layer(Reformat): Reformatting CopyNode for Input Tensor 0 to conv_7, Tactic: 0x3ea, x"
        " (Int8[1,64:32,8,8]) -> y (Int8[1,64:4,8,8])"
    )
    conv = (
        "Layer(CaskConvolution): conv_7, Tactic: 0x02d9, y (Int8[1,64:4,8,8]) -> z"
        " (Int8[1,64:4,8,8])"
    )
    region = (
        "Layer(Reformat): Reformatting CopyNode for Input Tensor 0 to {ForeignNode[a...b]}, Tactic:"
        " 0x3ea, z (Int8[1]) -> w (Half[1])"
    )
    excerpt, whole = read(tmp_path, f"{copy}\n"), read(tmp_path, f"{copy}\n{conv}\n{region}\n")
    assert (excerpt.excerpt, whole.excerpt) == (True, False)
    assert "conv_7, which is" in excerpt.notes[0].text
    assert [found.cause for found in engine_reformats(excerpt)] == ["layout"]
    assert [found.cause for found in engine_reformats(whole)] == ["input", "output"]


@pytest.mark.parametrize("median", [True, False])
def test_the_times_of_dump_profile_are_read_off_a_log(median: bool, tmp_path: Path) -> None:
    layers = "\n".join(
        f"Layer(CaskConvolution): conv {at}, Tactic: 0x02d9, t{at} (Half[1,8]) -> t{at + 1}"
        " (Half[1,8])"
        for at in range(3)
    )
    heading, middle = ("   Median(ms)", "       0.0018") if median else ("", "")
    rows = "".join(
        f"{STAMP}[I]       31.40       0.00{at + 20}{middle}       2.1   conv {at}\n"
        for at in range(3)
    ).replace("[V] [TRT] ", "")
    table = (
        f"[I] === Profile (18362 iterations ) ===\n[I]    Time(ms)     Avg.(ms){heading}   Time(%) "
        f"  Layer\n{rows}"
    )
    log = tmp_path / "build.log"
    log.write_text(
        f"{STAMP}Engine Layer Information:\n{layers}\n{table}[I]     1529.13       0.0833{middle}  "
        "   100.0   Total\n[I] \n"
    )
    assert read_engine(log, profile=log).trtexec_ns == (
        (1800,) * 3 if median else (2000, 2100, 2200)
    )


NEW_TABLE = """[I] === Profile (306 iterations ) ===
[I]    Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer
[I]       31.40       0.1026       0.1001      60.0   Conv_0 + Relu_1
[I]       20.90       0.0683       0.0600      40.0   __myl_FcAddRelu_myl0_1
[I]       52.30       0.1709       0.1601     100.0   Total
[I]
"""
OLD_TABLE = """[I] === Profile (306 iterations ) ===
[I]                    Layer   Time (ms)   Avg. Time (ms)   Time %
[I]          Conv_0 + Relu_1       30.60           0.1000     60.0
[I]   __myl_FcAddRelu_myl0_1       18.36           0.0600     40.0
[I]                    Total       48.96           0.1600    100.0
[I]
"""


@pytest.mark.parametrize("table", [NEW_TABLE, OLD_TABLE], ids=["8.4", "8.0"])
def test_a_log_with_a_table_of_times_and_no_list_of_layers_is_an_engine_known_by_names(
    table: str, tmp_path: Path
) -> None:
    stamped = table.replace("[I]", "[02/16/2024-18:15:43] [I]")
    engine = read(
        tmp_path,
        f"&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec\n{stamped}&&&& PASSED"
        " TensorRT.trtexec\n",
    )
    assert [(layer.name, layer.kind, layer.region) for layer in engine.layers] == [
        ("Conv_0 + Relu_1", "convolution", None),
        ("__myl_FcAddRelu_myl0_1", "gemm", 0),
    ]
    assert engine.trtexec_ns == ((100_100, 60_000) if table == NEW_TABLE else (100_000, 60_000))
    assert (engine.detailed, engine.tensorrt_version) == (False, "8.6.1")
    assert "table of times" in engine.notes[0].text


def test_where_a_log_lists_layers_and_times_the_list_is_the_engine(tmp_path: Path) -> None:
    assert read(tmp_path, f"{STAMP}Layers:\n{CONV}\n\n{NEW_TABLE}").detailed


def test_a_log_without_times_is_no_profile(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text(f"{STAMP}Layers:\n{CONV}\n")
    with pytest.raises(NsysmapError, match=r"no times.*--dumpProfile"):
        read_engine(log, profile=log)


def test_a_log_without_layers_has_none() -> None:
    assert (
        parse_log(
            "[01/01/2024-00:00:00] [I] === Performance summary ===\n[01/01/2024-00:00:00] [I]"
            " Throughput: 1 qps\n"
        )
        is None
    )


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("[TensorRT v8503]", "8.5.3"),
        ("[TensorRT v101601]", "10.16.1"),
        ("[I] TensorRT version: 8.4.1", "8.4.1"),
        ("none", None),
    ],
)
def test_the_version_is_read_off_the_log(text: str, version: str | None) -> None:
    assert tensorrt_version(text) == version


@unhurried
@given(
    st.lists(
        st.sampled_from(
            [STAMP, "Layers:\n", CONV, MYELIN, REGION, SPLIT, "\n", "Bindings:\nx\n", "done"]
        )
        | st.text(max_size=30)
    )
)
def test_what_is_taken_for_an_engine_in_any_text_has_layers(pieces: list[str]) -> None:
    document = parse_log("".join(pieces))
    listed = document is not None and len(engine_of(document, "made").layers) > 0
    assert listed == (document is not None)
    assert (
        parse_log("".join(pieces) + f"\n{STAMP}Layers:\n{CONV}\n\nBindings:\nx\n{STAMP}done\n")
        is not None
    )


names = st.text(
    st.characters(
        codec="ascii", exclude_characters="\n\r\x1e\x1f", categories=("L", "N", "P", "S")
    ),
    min_size=1,
    max_size=12,
)


@unhurried
@given(names, names, st.lists(st.integers(-1, 4096), max_size=5))
def test_a_written_line_comes_back(layer: str, tensor: str, dimensions: list[int]) -> None:
    shape = ",".join(map(str, dimensions))
    document = parse_log(
        f"Name: {layer}, LayerType: kgen, Inputs: [ {{ Name: {tensor}, Dimensions: [{shape}],"
        " Format/Datatype: Half }], Outputs: [], TacticName: t, StreamId: 0, Metadata: "
    )
    assert document is not None
    (row,) = engine_of(document, "made").layers
    assert row.name == layer
    assert [(item.name, item.dimensions) for item in row.inputs] == [(tensor, tuple(dimensions))]
    assert row.outputs == ()
    assert row.tactic == "t"


@pytest.mark.parametrize(
    "repeated",
    [
        "{ Name: a, Dimensions: [1,",
        "{ Name: a, Dimensions: [1], Format/Datatype: ",
        "{ Name: a, Dimensions: [1], Datatype: x, Format: ",
        "{ Name: a, Location: b, ",
        "], Outputs: [",
    ],
)
def test_a_line_made_to_be_read_slowly_is_read(repeated: str) -> None:
    document = parse_log("Name: x, LayerType: y, Inputs: [" + repeated * 20_000)
    assert document is not None
    assert [row["Name"] for row in document.rows if isinstance(row, dict)] == ["x"]


@pytest.mark.parametrize("repeated", ["b (Float[1,", "b (", "b[", ", Tactic: 0x1", ", Tactic: 1 ("])
def test_a_brief_line_made_to_be_read_slowly_is_read(repeated: str) -> None:
    document = parse_log("Layer(X): a, " + repeated * 20_000 + " -> ")
    assert document is not None
    assert len(document.rows) == 1


def test_numbers_that_are_none_are_left_out_of_dimensions_and_strides() -> None:
    line = (
        "Name: x, LayerType: y, Inputs: [{ Name: a, Dimensions: [1-1,2], Strides:"
        f" [--5,{'9' * 5000},3] }}], Outputs: []"
    )
    document = parse_log(line)
    assert document is not None
    assert document.rows == [
        {
            "Name": "x",
            "LayerType": "y",
            "Inputs": [{"Name": "a", "Dimensions": [2], "Strides": [3]}],
            "Outputs": [],
            "Metadata": "",
        }
    ]


def test_an_engine_on_a_dla_is_said_to_be_one() -> None:
    table = (
        "[I] === Profile (306 iterations ) ===\n"
        "[I]    Layer                   Time (ms)   Avg. Time (ms)   Time %\n"
        "[I]    images to nvm           33.99       0.0852           1.1\n"
        "[I]    {ForeignNode[a...b]}    3.38        0.0085           0.1\n"
        "[I]    head from nvm           3069.55     7.6931           98.8\n"
        "[I]    Total                   3106.92     7.7868           100.0\n"
    )
    engine = logged_profile(table, "dla.log")
    assert engine is not None
    assert [layer.kind for layer in engine.layers] == ["reformat", "foreign_node", "reformat"]
    assert any(note.level == "warning" and "DLA" in note.text for note in engine.notes)
    plain = logged_profile(table.replace(" from nvm", " tensor   "), "gpu.log")
    assert plain is not None
    assert not any("DLA" in note.text for note in plain.notes)
