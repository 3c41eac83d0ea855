"""Engine files in every form that TensorRT's tools write, and the ones that are something else."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.engine.layer_info import documents_of, engine_of, onnx_nodes, parse_json
from nsysmap.inputs.engine.profile import profile_engine
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.network.tables import edges_table, layers_table, tensors_table
from tests.places import FIXTURES, SHARED

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def conv(name: str, reads: str, writes: str, **more: object) -> dict[str, object]:
    return {
        "Name": name,
        "LayerType": "CaskConvolution",
        "Inputs": [
            {
                "Name": reads,
                "Location": "Device",
                "Dimensions": [1, 16, 8, 8],
                "Format/Datatype": "Row major linear FP16 format",
            }
        ],
        "Outputs": [
            {
                "Name": writes,
                "Location": "Device",
                "Dimensions": [1, 16, 8, 8],
                "Format/Datatype": "Row major linear FP16 format",
            }
        ],
        **more,
    }


def myelin(name: str, reads: list[str], writes: list[str]) -> dict[str, object]:
    return {
        "Name": name,
        "LayerType": "kgen",
        "Inputs": [
            {"Name": item, "Dimensions": [4, 4], "Format/Datatype": "Half"} for item in reads
        ],
        "Outputs": [
            {"Name": item, "Dimensions": [4, 4], "Format/Datatype": "Half"} for item in writes
        ],
        "TacticName": name.split("_myl0", maxsplit=1)[0] + "_0x00",
        "StreamId": 0,
        "Metadata": "",
    }


def written(folder: Path, value: Any, name: str = "engine.json") -> Path:
    file = folder / name
    file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return file


def refused(folder: Path, value: Any, name: str = "engine.json") -> str:
    file = written(folder, value, name)
    with pytest.raises(NsysmapError) as raised:
        read_engine(file)
    line = str(raised.value)
    assert file.name in line
    assert "\n" not in line
    assert raised.value.remedy
    return line


def test_a_detailed_file_gives_types_shapes_tactics_and_bindings(tmp_path: Path) -> None:
    row = conv(
        "c1",
        "x",
        "y",
        TacticName="sm80_xmma_fprop",
        StreamId=2,
        Weights={"Type": "Int8", "Count": 10},
        Metadata="[ONNX Layer: /c1]\x1f[ONNX Layer: /q]",
    )
    engine = read_engine(written(tmp_path, {"Layers": [row], "Bindings": ["x", "y"]}))
    (layer,) = engine.layers
    assert engine.detailed
    assert engine.bindings == ("x", "y")
    assert (layer.type, layer.tactic, layer.stream, layer.precision) == (
        "CaskConvolution",
        "sm80_xmma_fprop",
        2,
        "INT8",
    )
    assert layer.onnx == ("/c1", "/q")
    assert layer.inputs[0].dimensions == (1, 16, 8, 8)
    assert layer.inputs[0].datatype == "FP16"
    assert layer.inputs[0].format == "Row major linear FP16 format"
    assert layer.parameters["Weights"] == {"Type": "Int8", "Count": 10}


@pytest.mark.parametrize(
    "value",
    [
        {"Layers": ["a", "b"], "Bindings": ["x"]},
        ["a", "b"],
        {"Layers": [{"Name": "a"}, {"Name": "b"}]},
    ],
)
def test_a_names_only_file_says_so(tmp_path: Path, value: object) -> None:
    engine = read_engine(written(tmp_path, value))
    assert [layer.name for layer in engine.layers] == ["a", "b"]
    assert not engine.detailed
    assert any("names only" in note.text for note in engine.notes)


def test_a_bare_list_of_detailed_layers_is_read(tmp_path: Path) -> None:
    engine = read_engine(written(tmp_path, [conv("c1", "x", "y"), conv("c2", "y", "z")]))
    assert engine.detailed
    assert len(engine.layers) == 2


def test_keys_in_the_first_spelling_of_tensorrt_8_2_are_read(tmp_path: Path) -> None:
    tensor = {
        "name": "t",
        "dimensions": [16, 512, 28, 28],
        "format/datatype": "Thirty-two wide channel vectorized row major Int8 format.",
    }
    engine = read_engine(
        written(
            tmp_path,
            {
                "layers": [
                    {
                        "name": "n",
                        "layerType": "CaskConvolution",
                        "inputs": [tensor],
                        "outputs": [],
                        "tacticName": "t",
                    }
                ]
            },
        )
    )
    assert engine.layers[0].inputs[0].datatype == "INT8"
    assert engine.layers[0].tactic == "t"


def test_the_split_datatype_and_format_of_tensorrt_11_are_read_with_strides_and_constants(
    tmp_path: Path,
) -> None:
    tensor = {
        "Name": "t",
        "Dimensions": [2, 3],
        "Strides": [3, 1],
        "StrideOrder": [1, 0],
        "Datatype": "BFloat16",
        "Format": "(Linear) Row major linear format",
    }
    row = {
        "Name": "g_myl3_2",
        "LayerType": "gemm",
        "Inputs": [tensor],
        "Constants": [{**tensor, "Name": "w"}],
        "Outputs": [tensor],
        "Metadata": "",
    }
    (layer,) = read_engine(written(tmp_path, {"Layers": [row]})).layers
    assert layer.inputs[0].datatype == "BF16"
    assert layer.inputs[0].strides == (3, 1)
    assert layer.inputs[0].format == "(Linear) Row major linear format"
    assert [tensor.name for tensor in layer.constants] == ["w"]
    assert (layer.region, layer.region_index) == (3, 2)


def test_several_optimisation_profiles_are_told_apart(tmp_path: Path) -> None:
    names = [
        "conv",
        "__myl_Add_myl0_1",
        "conv [profile 1]",
        "node_linear [profile 1]_myl11_2",
        "x_myl4_1 [profile 1]",
    ]
    engine = read_engine(written(tmp_path, {"Layers": names}))
    assert [layer.optimization_profile for layer in engine.layers] == [0, 0, 1, 1, 1]
    assert [layer.region for layer in engine.layers] == [None, 0, None, 11, 4]


def test_a_myelin_kernel_is_of_the_profile_of_its_region(tmp_path: Path) -> None:
    rows = [
        myelin("__myl_Resh_myl5_0", ["x"], ["t"]),
        myelin("__myl_Resh_myl0_0", ["x"], ["s"]),
        myelin("node_linear [profile 1]_myl11_1", ["t"], ["u"]),
        myelin("__myl_Cast_myl11_2", ["u"], ["v"]),
        myelin("__myl_Cast_myl12_0", ["v"], ["y [profile 1]"]),
    ]
    engine = read_engine(written(tmp_path, {"Layers": rows}))
    assert [layer.optimization_profile for layer in engine.layers] == [0, 0, 1, 1, 1]
    assert [(row["from_layer"], row["to_layer"]) for row in edges_table([engine]).records()] == [
        (2, 3),
        (3, 4),
    ]


def test_an_engine_with_one_profile_names_none(tmp_path: Path) -> None:
    assert read_engine(written(tmp_path, ["a"])).layers[0].optimization_profile is None


def test_dynamic_shapes_leave_format_and_size_unknown(tmp_path: Path) -> None:
    tensor = {"Name": "t", "Dimensions": [-1, 128], "Format/Datatype": "N/A due to dynamic shapes"}
    engine = read_engine(
        written(
            tmp_path,
            {"Layers": [{"Name": "n", "LayerType": "NoOp", "Inputs": [tensor], "Outputs": []}]},
        )
    )
    assert engine.layers[0].inputs[0].format is None
    assert tensors_table([engine]).records()[0]["bytes"] is None


def test_metadata_separates_fused_layers_and_merged_pairs() -> None:
    assert onnx_nodes("[ONNX Layer: a]\x1f[ONNX Layer: b]\x1e[ONNX Layer: c [1]]") == (
        "a",
        "b",
        "c [1]",
    )
    assert onnx_nodes("[ONNX Layer: a][ONNX Layer: b]") == ("a", "b")
    assert onnx_nodes("") == ()
    assert onnx_nodes("said by the builder") == ("said by the builder",)


@unhurried
@given(
    st.lists(
        st.text(st.characters(exclude_characters="[]\x1e\x1f", codec="utf-8"), min_size=1).filter(
            lambda name: name == name.strip()
        ),
        unique=True,
    )
)
def test_every_onnx_node_comes_back_out_of_metadata(names: list[str]) -> None:
    assert onnx_nodes("\x1f".join(f"[ONNX Layer: {name}]" for name in names)) == tuple(names)


def test_a_consumer_is_joined_to_the_nearest_producer_before_it(tmp_path: Path) -> None:
    rows = [
        myelin("a_myl0_0", ["x"], ["t"]),
        myelin("b_myl0_1", ["t"], ["u"]),
        myelin("c_myl0_2", ["u"], ["t"]),
        myelin("d_myl0_3", ["t"], ["y"]),
    ]
    edges = edges_table([read_engine(written(tmp_path, {"Layers": rows}))])
    assert [(row["from_layer"], row["to_layer"], row["tensor"]) for row in edges.records()] == [
        (0, 1, "t"),
        (1, 2, "u"),
        (2, 3, "t"),
    ]


def test_a_tensor_written_only_later_is_no_edge(tmp_path: Path) -> None:
    rows = [myelin("a_myl0_0", ["t"], ["u"]), myelin("b_myl0_1", ["u"], ["t"])]
    edges = edges_table([read_engine(written(tmp_path, {"Layers": rows}))])
    assert [(row["from_layer"], row["to_layer"]) for row in edges.records()] == [(0, 1)]


def test_parts_written_into_one_tensor_are_all_joined_to_its_reader(tmp_path: Path) -> None:
    rows = [
        myelin("a_myl0_0", ["x"], ["cat"]),
        myelin("b_myl0_1", ["x"], ["cat"]),
        myelin("c_myl0_2", ["cat"], ["y"]),
    ]
    rows[2]["Inputs"] = [{"Name": "cat", "Dimensions": [8, 4], "Format/Datatype": "Half"}]
    edges = edges_table([read_engine(written(tmp_path, {"Layers": rows}))])
    assert [(row["from_layer"], row["to_layer"], row["bytes"]) for row in edges.records()] == [
        (0, 2, 32),
        (1, 2, 32),
    ]


def test_optimisation_profiles_share_no_edges(tmp_path: Path) -> None:
    rows = [conv("a", "x", "t"), conv("b [profile 1]", "t", "y")]
    assert len(edges_table([read_engine(written(tmp_path, {"Layers": rows}))])) == 0


@unhurried
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from("xyztu"), max_size=3),
            st.lists(st.sampled_from("xyztu"), max_size=2),
        ),
        max_size=12,
    )
)
def test_edges_go_forward_and_come_from_a_producer_of_that_tensor(
    layers: list[tuple[list[str], list[str]]],
) -> None:
    rows = [
        myelin(f"k_myl0_{index}", reads, writes) for index, (reads, writes) in enumerate(layers)
    ] or [myelin("k_myl0_0", [], [])]
    engine = engine_of(documents_of({"Layers": rows}, "made")[0], "made")
    for row in edges_table([engine]).records():
        source, target, tensor = (
            int(str(row["from_layer"])),
            int(str(row["to_layer"])),
            row["tensor"],
        )
        assert source < target
        assert tensor in {item.name for item in engine.layers[source].outputs}
        assert not any(
            tensor in {item.name for item in engine.layers[between].outputs}
            for between in range(source + 1, target)
        )


def test_two_engines_share_one_numbering(tmp_path: Path) -> None:
    engine = read_engine(written(tmp_path, {"Layers": [conv("a", "x", "t"), conv("b", "t", "y")]}))
    layers = layers_table([engine, engine]).records()
    assert [(row["layer_id"], row["engine"], row["layer_index"]) for row in layers] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 1, 0),
        (3, 1, 1),
    ]
    assert [
        (row["from_layer"], row["to_layer"]) for row in edges_table([engine, engine]).records()
    ] == [(0, 1), (2, 3)]


def profile(folder: Path, rows: list[dict[str, object]], count: int = 10) -> Path:
    return written(folder, [{"count": count}, *rows], "profile.json")


def test_a_profile_fills_median_times_by_name(tmp_path: Path) -> None:
    file = written(tmp_path, ["a", "b", "c"])
    times = profile(
        tmp_path,
        [
            {"name": "b", "timeMs": 1.0, "averageMs": 0.1, "medianMs": 0.05, "percentage": 50},
            {"name": "a", "timeMs": 1.0, "averageMs": 0.1},
        ],
    )
    assert read_engine(file, profile=times).trtexec_ns == (100_000, 50_000, None)


def test_repeated_names_take_their_times_in_order(tmp_path: Path) -> None:
    file = written(tmp_path, ["a", "b", "a"])
    times = profile(
        tmp_path,
        [
            {"name": "a", "timeMs": 20.0},
            {"name": "b", "timeMs": 30.0},
            {"name": "a", "timeMs": 40.0},
        ],
    )
    assert read_engine(file, profile=times).trtexec_ns == (2_000_000, 3_000_000, 4_000_000)


def test_profile_rows_without_a_layer_are_noted(tmp_path: Path) -> None:
    file = written(tmp_path, ["a"])
    times = profile(
        tmp_path,
        [
            {"name": "a", "medianMs": 0.1, "timeMs": 1},
            {"name": "strange", "medianMs": 0.1, "timeMs": 1},
        ],
    )
    assert any(
        "strange" in note.text and "1 of 2" in note.text
        for note in read_engine(file, profile=times).notes
    )


def test_a_profile_of_another_engine_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, ["a"])
    with pytest.raises(NsysmapError, match="none of its 1 layers"):
        read_engine(file, profile=profile(tmp_path, [{"name": "z", "medianMs": 0.1, "timeMs": 1}]))


def test_bare_nan_in_a_percentage_does_not_matter(tmp_path: Path) -> None:
    file = written(tmp_path, ["a"])
    times = written(
        tmp_path,
        '[{"count": 1}, {"name": "a", "timeMs": 0, "averageMs": 0, "medianMs": 0.5, "percentage":'
        " -nan }]",
        "p.json",
    )
    assert read_engine(file, profile=times).trtexec_ns == (500_000,)


@pytest.mark.parametrize("time", ["NaN", "1e999", "-1", '"fast"', "true", "nan"])
def test_an_impossible_time_in_a_profile_is_refused(tmp_path: Path, time: str) -> None:
    file = written(tmp_path, ["a"])
    times = written(
        tmp_path, f'[{{"count": 1}}, {{"name": "a", "timeMs": 1, "medianMs": {time} }}]', "p.json"
    )
    with pytest.raises(NsysmapError, match=r"p\.json"):
        read_engine(file, profile=times)


def test_an_engine_given_as_profile_is_named_as_such(tmp_path: Path) -> None:
    file = written(tmp_path, {"Layers": ["a"]})
    with pytest.raises(NsysmapError, match="not a profile"):
        read_engine(file, profile=file)


def test_other_files_are_named_for_what_they_are(tmp_path: Path) -> None:
    assert "--exportProfile" in refused(tmp_path, [{"count": 3}, {"name": "a", "timeMs": 1}])
    assert "--exportTimes" in refused(tmp_path, [{"startComputeMs": 0.1, "computeMs": 2}])
    assert "is other JSON" in refused(tmp_path, {"traceEvents": []})
    assert "is other JSON" in refused(tmp_path, [1, 2])
    assert "is other JSON" in refused(tmp_path, [{"a": 1}])
    assert "a number" in refused(tmp_path, "12")
    assert "lists no layers" in refused(tmp_path, {"Layers": []})
    assert "lists no layers" in refused(tmp_path, [])
    assert "nsys report" in refused(tmp_path, "NVIDIA Nsight Systems Report\n\0")
    assert "SQLite" in refused(tmp_path, "SQLite format 3\0")
    assert "ONNX" in refused(tmp_path, "\x08\x07", "model.onnx")
    assert "is empty" in refused(tmp_path, "")
    assert "is empty" in refused(tmp_path, " \n")
    assert "neither" in refused(tmp_path, "hello\nworld")
    assert "binary" in refused(tmp_path, "\0\1\2\0")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(NsysmapError):
            read_engine(path)


@pytest.mark.parametrize(
    "text",
    [
        (
            '{"Layers": [{"Name": "a", "LayerType": "x", "Inputs": [{"Name": "t", "Dimensions": [1,'
            " -20000]}]}]}"
        ),
        '{"Layers": [{"Name": "a", "Inputs": [{"Name": "t", "Dimensions": [1, NaN]}]}]}',
        '{"Layers": [{"Name": "a", "Inputs": [{"Name": "t", "Dimensions": [Infinity]}]}]}',
        '{"Layers": [{"Name": "a", "Inputs": [{"Name": "t", "Dimensions": [1e999]}]}]}',
        (
            '{"Layers": [{"Name": "a", "Inputs": [{"Name": "t", "Dimensions":'
            " [99999999999999999999]}]}]}"
        ),
        '{"Layers": [{"Name": "a", "Inputs": [{"Name": "t", "Dimensions": [1.5]}]}]}',
        '{"Layers": [{"Name": "a", "Inputs": [{"Name": "t", "Dimensions": "1x2"}]}]}',
        '{"Layers": [{"Name": "a", "Inputs": [{"Dimensions": [1]}]}]}',
        '{"Layers": [{"Name": "a", "Inputs": {"Name": "t"}}]}',
        '{"Layers": [{"Name": 7}]}',
        '{"Layers": [null]}',
        '{"Layers": {"a": 1}}',
        '{"Layers": [' + "9" * 5000 + "]}",
        "[" * 100_000,
        '{"Layers": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_nonsense_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    refused(tmp_path, text)


def test_a_file_cut_short_is_named_as_such(tmp_path: Path) -> None:
    whole = json.dumps({"Layers": [conv("c1", "x", "y"), conv("c2", "y", "z")]}, indent=1)
    for end in range(1, len(whole) - 1, 7):
        assert "cut short" in refused(tmp_path, whole[:end])


def test_names_keep_control_characters_and_markup_as_data(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>\x1b[31m\n\u202e"
    assert read_engine(written(tmp_path, {"Layers": [name]})).layers[0].name == name
    assert (
        read_engine(written(tmp_path, '["raw \x01 control"]')).layers[0].name == "raw \x01 control"
    )


def test_half_characters_do_not_survive(tmp_path: Path) -> None:
    engine = read_engine(written(tmp_path, r'["a\ud800b"]'))
    assert engine.layers[0].name == "a?b"
    layers_table([engine]).arrow()


def test_repeated_layer_names_are_kept_and_noted(tmp_path: Path) -> None:
    engine = read_engine(written(tmp_path, ["a", "a", "b"]))
    assert len(engine.layers) == 3
    assert any("more than once" in note.text for note in engine.notes)


def test_utf_16_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        file = tmp_path / "engine.json"
        file.write_text('["é"]', encoding=encoding)
        assert read_engine(file).layers[0].name == "é"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["Layers", "Name", "Inputs", "Dimensions", "LayerType", "Weights", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


engine_values = st.fixed_dictionaries(
    {
        "Layers": st.lists(
            st.text()
            | st.fixed_dictionaries(
                {"Name": st.text()}, optional={"LayerType": json_values, "TacticName": json_values}
            )
        )
    }
)


@unhurried
@given(json_values | engine_values)
def test_any_json_gives_an_engine_or_one_error(value: object) -> None:
    try:
        engine = engine_of(documents_of(parse_json(json.dumps(value), "made"), "made")[-1], "made")
    except NsysmapError as error:
        assert "\n" not in str(error)
    else:
        assert len(layers_table([engine])) == len(engine.layers)
        tensors_table([engine]).arrow()


@unhurried
@given(st.text())
def test_any_text_gives_json_or_one_error(text: str) -> None:
    try:
        parse_json(text, "made")
    except NsysmapError as error:
        assert "\n" not in str(error)


PUBLIC = [
    ("engines/trt8_mobilenet_v2_residuals.graph.json", 58),
    ("engines/trt8_resnet_qat.graph.json", 37),
    ("engines/trt10.16_mnist.layers.json", 9),
    ("engines/trt10_ivit_softmax.layers.json", 6),
    ("engines/trt11.3_vitpose_excerpt.layers.json", 7),
    ("captures/bert_trt10/engine.json", 57),
    ("captures/mobilenet_qat/engine.json", 73),
]


@pytest.mark.parametrize(("name", "layers"), PUBLIC)
def test_public_engines_are_read_whole(name: str, layers: int) -> None:
    file = SHARED / name
    if not file.exists():
        pytest.skip("public engine files are not here")
    times = next(
        (
            path
            for path in (
                file.parent / file.name.replace("graph", "profile"),
                file.parent / "profile.json",
            )
            if path != file and path.exists()
        ),
        None,
    )
    engine = read_engine(file, profile=times)
    assert len(engine.layers) == layers
    assert engine.detailed
    if times is not None:
        assert not any("match any layer" in note.text for note in engine.notes)
    sizes = [
        row["bytes"]
        for row in tensors_table([engine]).records()
        if "-1" not in str(row["dimensions"])
    ]
    assert all(size is not None for size in sizes)


def test_numbers_of_thousands_of_digits_in_a_name_are_no_region_and_no_profile(
    tmp_path: Path,
) -> None:
    digits = "9" * 5000
    path = tmp_path / "e.json"
    path.write_text(
        json.dumps({"Layers": [f"a_myl{digits}_{digits}", f"b [profile {digits}]", "c_myl1_2"]})
    )
    layers = read_engine(path).layers
    assert [(layer.region, layer.region_index, layer.optimization_profile) for layer in layers] == [
        (None, None, None),
        (None, None, None),
        (1, 2, None),
    ]


HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    "text",
    [
        HUGE,
        f'{{"Layers":{HUGE}}}',
        f'{{"Layers":[{HUGE}]}}',
        f'{{"Layers":[{{"Name":"a","Inputs":{HUGE}}}]}}',
        f'{{"Layers":[{{"Name":"a","Inputs":[{{"Name":"x","Dimensions":{HUGE}}}]}}]}}',
        f'{{"Layers":[{{"Name":"a","Inputs":[{{"Name":"x","Dimensions":[{HUGE}]}}]}}]}}',
        f'{{"Layers":[{{"Name":"a","Inputs":[{{"Name":"x","Dimensions":[{"9" * 5000}]}}]}}]}}',
    ],
)
def test_a_number_of_hundreds_of_digits_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    path.write_text(text)
    with pytest.raises(NsysmapError):
        read_engine(path)


def test_whole_numbers_beyond_64_bits_are_floats_and_infinities_text(tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    path.write_text(
        '{"Layers":[{"Name":"a","Seed":18446744073709551615,"Scale":1e999,"Beta":-9223372036854775808,"Gamma":0.5}]}'
    )
    assert read_engine(path).layers[0].parameters == {
        "Seed": 2.0**64,
        "Scale": "1e999",
        "Beta": -(2**63),
        "Gamma": 0.5,
    }


@pytest.mark.parametrize("count", ["-5", HUGE, "1.5", "true", '"3"'])
def test_a_profile_with_a_count_that_cannot_be_is_refused(count: str, tmp_path: Path) -> None:
    engine, profile = tmp_path / "engine.json", tmp_path / "profile.json"
    engine.write_text('{"Layers":[{"Name":"a","LayerType":"gemm"}]}')
    profile.write_text(f'[{{"count":{count}}},{{"name":"a","timeMs":3.0}}]')
    with pytest.raises(NsysmapError, match=r"is impossible|is too long"):
        read_engine(engine, profile=profile)


def test_a_packed_file_of_millions_of_empty_lists_is_refused_before_they_are_made(
    tmp_path: Path,
) -> None:
    path = tmp_path / "engine.json.gz"
    path.write_bytes(gzip.compress(b'{"Layers":[' + b"[]," * 10_000_001 + b"[]]}", compresslevel=1))
    assert path.stat().st_size < 300_000
    with pytest.raises(NsysmapError, match="holds more than 20,000,000 values"):
        read_engine(path)


RTX_FORMS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "1.4": ({"Format/Datatype": "Row major linear FP16 format"}, {"Bindings": ["x", "y"]}),
    "1.5": (
        {
            "Strides": [64, 1],
            "StrideOrder": [1, 0],
            "Datatype": "Half",
            "Format": "(Linear) Row major linear format",
        },
        {
            "I/O Tensors": [
                {"Name": "x", "IOMode": "Input", "DataType": "Half"},
                {"Name": "y", "IOMode": "Output", "DataType": "Half"},
            ]
        },
    ),
    "1.6 and 1.7": (
        {
            "Strides": [64, 1],
            "StrideOrder": [1, 0],
            "Datatype": "Half",
            "Format": "Format not available due to dynamic shapes",
        },
        {
            "I/O Tensors": [{"Name": "x", "IOMode": "Input"}, {"Name": "y", "IOMode": "Output"}],
            "Engine Metadata": {"Multi-Device": "1"},
        },
    ),
}


@pytest.mark.parametrize("version", RTX_FORMS)
def test_the_forms_of_tensorrt_for_rtx_are_read(tmp_path: Path, version: str) -> None:
    """The keys are those that the libraries of these versions hold; a whole file was there of 1.5
    only (fixtures/real_trt).
    """
    tensor, beside = RTX_FORMS[version]
    layer = {
        "Name": "__myl_Relu_myl0_0", "LayerType": "kgen",
        "Inputs": [{"Name": "x", "Dimensions": [8, 64], **tensor}], "Constants": [],
        "Outputs": [{"Name": "y", "Dimensions": [8, 64], **tensor}],
        "TacticName": "__myl_Relu_0x1", "StreamId": 0,
        "Metadata": "[ONNX Layer: /Relu]",
    }  # fmt: skip
    file = tmp_path / "engine.json"
    file.write_text(json.dumps({"Layers": [layer], **beside}), encoding="utf-8")
    engine = read_engine(file)
    assert engine.bindings == ("x", "y")
    assert not engine.notes
    assert [
        (t.dimensions, t.datatype) for t in (*engine.layers[0].inputs, *engine.layers[0].outputs)
    ] == [((8, 64), "FP16")] * 2
    assert engine.layers[0].onnx == ("/Relu",)


def test_inputs_and_outputs_of_engines_that_tensorrt_for_rtx_built_are_known() -> None:
    engine = read_engine(FIXTURES / "real_trt" / "llama.engine.json")
    assert engine.bindings == ("ids", "past", "cos", "sin", "output", "new_kv")


def test_signals_and_waits_are_known_among_names_by_their_numbers(tmp_path: Path) -> None:
    names = [f"__mye{number}_myl0_{at}" for at, number in enumerate((18628, 18630, 18632, 5851))]
    path = tmp_path / "names.json"
    path.write_text(json.dumps({"Layers": ["/conv/Conv_myl0_9", *names], "Bindings": []}))
    kinds = [layer.kind for layer in read_engine(path).layers]
    assert kinds == ["convolution", "signal", "signal", "signal", "gemm"]


def test_the_profile_that_torch_tensorrt_writes_is_read(tmp_path: Path) -> None:
    """Its Debugger with profile_format="trex" leaves a comma behind the last value of each."""
    file = tmp_path / "_run_on_acc_0_engine_engine_execution_profile.trace"
    rows = [("conv1", 2.5, 0.25), ("a,\\n}", 5.0, 0.5)]
    file.write_text(
        "[\n"
        + ",\n".join(
            f'  {{\n    "name": "{name}",\n    "timeMs": {total},\n    "averageMs": {mean},\n'
            '    "percentage": 50,\n  }'
            for name, total, mean in rows
        )
        + "\n]\n"
    )
    engine = profile_engine(file)
    assert engine is not None
    assert [layer.name for layer in engine.layers] == ["conv1", "a,\n}"]
    assert engine.trtexec_ns == (250_000, 500_000)
