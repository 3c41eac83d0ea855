"""Layers as people's own scripts print them, and files that hold them in other encodings, packed,
or several engines at once.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.engine.log import documents_in_log
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.reader import read_engine, read_engines_in
from nsysmap.mapping.mapped_trace import map_report, read_engines
from tests.figures import figures
from tests.places import FIXTURES

CONV: dict[str, object] = {
    "Name": "/conv1/Conv", "LayerType": "CaskConvolution", "TacticName": "sm80_x", "StreamId": 0,
    "Inputs": [{"Name": "x", "Dimensions": [1, 3, 224, 224], "Format/Datatype": "Half"}],
    "Outputs": [{"Name": "y", "Dimensions": [1, 64, 112, 112], "Format/Datatype": "Half"}],
}  # fmt: skip
POOL: dict[str, object] = {
    **CONV,
    "Name": "/pool/MaxPool",
    "LayerType": "CaskPooling",
    "TacticName": "pool_x",
}
ONE_LINE = (
    "Name: {}, LayerType: kgen, Inputs: [ {{ Name: x, Dimensions: [10,1], Format/Datatype: Float"
    " }}], Outputs: [ {{ Name: y, Dimensions: [1], Format/Datatype: Float }}], TacticName: t,"
    " StreamId: 0, Metadata: "
)


WHOLE = ("--- Layer 0 ---\n", json.dumps(CONV), "\n", "--- Layer 1 ---\n", json.dumps(POOL), "\n")
PIECES = (*WHOLE, ONE_LINE.format("a"), '"a"', "{", "}", "[I] ", "Layer 0    | a [Op: b]\n")


def read(folder: Path, text: str | bytes, name: str = "dump.log") -> Engine:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_engine(file)


def names(engine: Engine) -> list[str]:
    return [layer.name for layer in engine.layers]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "heading",
    [
        "--- Layer {} ---",
        "===== Layer {} =====",
        "---------- layer #{}: ----------",
        "# --- Layer {} (of 2) ---",
    ],
)
def test_layers_under_headings_are_read_as_json(
    tmp_path: Path, heading: str, indent: int | None
) -> None:
    rows = "\n".join(
        f"{heading.format(number)}\n{json.dumps(row, indent=indent)}"
        for number, row in enumerate((CONV, POOL))
    )
    engine = read(tmp_path, f"Loading engine …\nnum_layers: 2\n{rows}\nDone.\n")
    assert names(engine) == ["/conv1/Conv", "/pool/MaxPool"]
    assert engine.detailed
    assert engine.layers[0].tactic == "sm80_x"
    assert engine.layers[1].outputs[0].dimensions == (1, 64, 112, 112)


@pytest.mark.parametrize(
    "form", ["{}", '"{}"', ONE_LINE, "Name: {}\nLayerType: kgen\nTacticName: t"]
)
def test_layers_under_headings_are_read_as_names_lines_and_fields(
    tmp_path: Path, form: str
) -> None:
    text = "\n".join(
        f"--- Layer {number} ---\n{form.format(name)}\n"
        for number, name in enumerate(("/conv1/Conv", "fc + relu"))
    )
    engine = read(tmp_path, text)
    assert names(engine) == ["/conv1/Conv", "fc + relu"]
    assert engine.detailed == ("LayerType" in form)


def test_a_listing_that_begins_at_0_again_is_another_engine(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    file.write_text(
        "".join(
            f"--- Layer {number} ---\n{json.dumps({**CONV, 'Name': name})}\n"
            for number, name in ((0, "a"), (1, "b"), (0, "c"))
        )
    )
    assert [names(engine) for engine in read_engines_in(file)] == [["a", "b"], ["c"]]
    (note,) = (note.text for note in read_engine(file).notes if "different" in note.text)
    assert figures(note) == ["2", "1"]


def test_json_in_the_middle_of_a_log_is_read_and_what_is_cut_short_is_not(tmp_path: Path) -> None:
    dump = json.dumps({"Layers": [CONV, POOL], "Bindings": ["x", "y"]}, indent=1)
    engine = read(tmp_path, f"[32mINFO [0m engine layer_info:\n{dump}\nI0312 done {{x}}\n")
    assert names(engine) == ["/conv1/Conv", "/pool/MaxPool"]
    assert engine.bindings == ("x", "y")
    rows = "\n".join(f"layer: {json.dumps(row)}" for row in (CONV, POOL))
    assert len(read_engines_in(tmp_path / "dump.log")) == 1
    assert names(
        read(tmp_path, f"{json.dumps(CONV)},\n{json.dumps(POOL)}\nend\n".join(("start\n", "")))
    ) == [
        "/conv1/Conv",
        "/pool/MaxPool",
    ]
    assert [len(document.rows) for document in documents_in_log(rows)] == [1, 1]
    with pytest.raises(NsysmapError, match="neither"):
        read(tmp_path, f"log\n{dump[: len(dump) * 3 // 4]}")


POLYGRAPHY = """[I] ==== TensorRT Engine ====
    Name: Unnamed Network 0 | Explicit Batch Engine

    ---- 2 Layer(s) ----
    - Profile: 0
        Layer 0    | Reformatting CopyNode for Input Tensor 0 to /conv1/Conv [Op: Reformat]
            {images [dtype=float32, shape=(1, 3, 224, 224), Format: Row major linear FP32],
             a [b] c [dtype=int8, shape=(-1,)]}
             -> {Reformatted Input Tensor 0 [dtype=int8, shape=(1, 3, 224, 224), Format: Row major Int8 format]}
            ---- Attributes ----
            Origin = REFORMAT
            Tactic = 0x00000000000003e8

        Layer 1    | /conv1/Conv + PWN(/relu) [Op: CaskConvolution]
            {Reformatted Input Tensor 0 [shape=(1, 3, 224, 224)]}
             -> {y [dtype=float16, shape=(1, 64, 112, 112), Format: Half]}
            ---- Attributes ----
            TacticName = sm80_xmma
"""  # noqa: E501


def test_polygraphys_listing_of_an_engine_is_read(tmp_path: Path) -> None:
    reformat, conv = read(tmp_path, POLYGRAPHY).layers
    assert (reformat.name, reformat.kind) == (
        "Reformatting CopyNode for Input Tensor 0 to /conv1/Conv",
        "reformat",
    )
    assert [(tensor.name, tensor.datatype, tensor.dimensions) for tensor in reformat.inputs] == [
        ("images", "FP32", (1, 3, 224, 224)),
        ("a [b] c", "INT8", (-1,)),
    ]
    assert (reformat.outputs[0].name, reformat.outputs[0].format) == (
        "Reformatted Input Tensor 0",
        "Row major Int8 format",
    )
    assert (conv.name, conv.type, conv.tactic, conv.outputs[0].datatype) == (
        "/conv1/Conv + PWN(/relu)",
        "CaskConvolution",
        "sm80_xmma",
        "FP16",
    )


def test_polygraphys_listing_of_a_network_is_no_engines(tmp_path: Path) -> None:
    with pytest.raises(NsysmapError, match="before the build"):
        read(
            tmp_path,
            POLYGRAPHY.replace("[Op: Reformat]", "[Op: LayerType.SHUFFLE]").replace(
                "[Op: CaskConv", "[Op: LayerType.CONV"
            ),
        )


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_files_are_unpacked(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    text = json.dumps({"Layers": [CONV]}).encode()
    assert names(read(tmp_path, pack(text), "engine.json.gz")) == ["/conv1/Conv"]
    with pytest.raises(NsysmapError, match=r"unpacked|to its end"):
        read(tmp_path, pack(text * 500)[:-40], "engine.json.gz")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("form", ["json", "line"])
def test_files_of_windows_are_read_in_their_encodings(
    tmp_path: Path, encoding: str, form: str
) -> None:
    text = (
        ONE_LINE.format("größer") + "\r\n"
        if form == "line"
        else json.dumps({"Layers": [{**CONV, "Name": "größer"}]}, ensure_ascii=False)
    )
    assert names(read(tmp_path, text.encode(encoding))) == ["größer"]


@pytest.mark.parametrize(
    "text",
    [
        '{{"Layers": [{0}]}}\n{{"Layers": [{1}]}}\n',
        '[{{"Layers": [{0}]}}, {{"Layers": [{1}]}}]',
        '{{"encoder": {{"Layers": [{0}]}}, "decoder": {{"Layers": [{1}], "Bindings": []}}}}',
    ],
)
def test_several_engines_in_one_json_file_are_all_read(tmp_path: Path, text: str) -> None:
    file = tmp_path / "engines.json"
    file.write_text(text.format(json.dumps(CONV), json.dumps(POOL)))
    assert [names(engine) for engine in read_engines_in(file)] == [
        ["/conv1/Conv"],
        ["/pool/MaxPool"],
    ]


def test_of_several_engines_in_a_file_those_count_that_ran(tmp_path: Path) -> None:
    file = tmp_path / "engines.json"
    file.write_text(
        "\n".join(
            (FIXTURES / folder / "engine.json").read_text()
            for folder in ("bert_trt85", "bert_trt10", "bert_trt103")
        )
    )
    engines = read_engines([file])
    assert [engine.source for engine in engines] == [
        f"engines.json (engine {number} of 3)" for number in (1, 2, 3)
    ]
    mapped = map_report(FIXTURES / "bert_trt10" / "sync.sqlite", engines)
    assert [engine.source for engine in mapped.engines] == ["engines.json (engine 2 of 3)"]
    assert set(mapped.mapped.table.text("method").list()) == {"nvtx"}
    (note,) = (note.text for note in mapped.engines[0].notes if "lists 3" in note.text)
    assert "(engine 2 of 3) ran" in note


def test_of_several_engines_in_a_file_none_is_taken_where_none_is_known_to_have_run(
    tmp_path: Path,
) -> None:
    file = tmp_path / "engines.json"
    file.write_text(
        "\n".join(
            (FIXTURES / folder / "engine.json").read_text()
            for folder in ("bert_trt85", "bert_trt103")
        )
    )
    mapped = map_report(FIXTURES / "bert_trt10" / "sync.sqlite", read_engines([file]))
    assert len(mapped.engines) == 2
    assert set(mapped.mapped.engine_fits.text("verdict").list()) == {"did-not-run"}
    assert [
        (note.level, note.text)
        for engine in mapped.engines
        for note in engine.notes
        if "lists 2" in note.text
    ] == [
        (
            "warning",
            "engines.json lists 2 engines, but none of them is known to have run in the trace.",
        )
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[{"name": "prob", "dimensions": "1x1000", "values": [0.1, 0.2]}]',
            r"is a trtexec --exportOutput file \(what the network computed\)",
        ),
        (
            '[{"startComputeMs": 1, "computeMs": 0.5}]',
            "is a trtexec --exportTimes file, .* this one with --times",
        ),
        (
            "&&&& RUNNING TensorRT.trtexec [TensorRT v8503] # trtexec\n[I] Throughput: 1 qps\n",
            "is a trtexec log without layers",
        ),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS pointer"),
        ("[1, 2]", "is other JSON"),
    ],
)
def test_other_files_of_the_trade_are_named_for_what_they_are(
    tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(NsysmapError, match=told):
        read(tmp_path, text, "x.json")


@pytest.mark.parametrize(
    "text",
    [
        '{"Name": ' * 200_000,
        '{"Name": "a", "LayerType": "b"} ' * 50_000,
        "x\n" + '{"Layers": [' * 100_000,
        "--- Layer 0 ---\n" * 100_000,
        "--- Layer 0 ---\n{" * 50_000,
        "Layer 0    | a [Op: b]\n" + "{" * 500_000,
        "Layer 0    | a [Op: b]\n{" + "x [shape=(" * 100_000 + "}\n",
        "Layer 0    | " * 100_000,
        "---- Layer " * 100_000,
        "Layer 0    | a [Op: b]\n" + "\n" * 500_000,
    ],
)
def test_text_made_to_be_read_slowly_is_read(text: str) -> None:
    started = time.process_time()
    documents_in_log(text)
    assert time.process_time() - started < 20


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(PIECES) | st.text(alphabet='{}[]":,- \nLayerNmOp0|x', max_size=20),
        max_size=12,
    )
)
def test_what_is_taken_for_an_engine_in_any_text_has_layers(pieces: list[str]) -> None:
    listed = documents_in_log("".join((*pieces, "\n", *WHOLE)))
    assert listed
    assert all(document.rows for document in (*listed, *documents_in_log("".join(pieces))))
