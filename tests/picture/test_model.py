"""Pictures of engines: what boxes, colours and legends say, in every format, whatever the names
hold.
"""

from __future__ import annotations

import json
import re
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from nsysmap.analysis import measured
from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import map_report
from nsysmap.output.picture.drawing import (
    PADDING,
    SUBTITLE_SIZE,
    TITLE_SIZE,
    box_subtitle,
    box_titles,
    drawing,
    fitted,
    text_width,
)
from nsysmap.output.picture.layout import BOX_WIDTH
from nsysmap.output.picture.model import MODES, Picture, Times, picture, tensor_words, times_of
from nsysmap.output.picture.swatches import ink_on, kernel_swatch
from nsysmap.output.picture.write import write_graph
from tests.commands import run
from tests.graph_engines import chain, decoder, names_only
from tests.made_engines import made, row
from tests.places import FIXTURES

BERT = FIXTURES / "bert_trt10"
HOSTILE = '</script><img src=x onerror=alert(1)>"&\\\n\x1b[2J\u202e$\\frac{1}{0}$ 層 \ud800'


def bert() -> Engine:
    return read_engine(BERT / "engine.json")


def bert_times(report: str = "sync.sqlite") -> Times | None:
    mapped = map_report(BERT / report, [bert()])
    return times_of(bert(), measured(mapped), mapped.trace.source)


def hostile() -> Engine:
    rows = [
        row(
            f"{HOSTILE} {at}",
            "kgen",
            [(HOSTILE, [1], "Half")],
            [(HOSTILE, [1], "Half")],
            TacticName=HOSTILE,
        )
        for at in range(4)
    ]
    return made(*rows)


def legend(drawn: Picture, mode: str) -> list[str]:
    return [swatch.words for swatch in drawn.views[0].legends[mode].swatches]


def test_boxes_are_the_layers_with_their_kind_type_and_measured_time() -> None:
    drawn = picture(bert(), bert_times())
    view = drawn.views[0]
    assert drawn.mode == "time"
    assert [box.layers for box in view.boxes] == [(index,) for index in range(57)]
    assert view.boxes[3].title == "#3 layer.0 … query|key|value/MatMul + bias"
    assert (
        view.boxes[6].title == "#6 layer.0/attention/output/LayerNorm/LayerNormalization + residual"
    )
    assert re.fullmatch(r"gemm FP16 · 5\.\d\d µs 2\.\d%", view.boxes[3].subtitle)
    assert view.boxes[0].subtitle == "shape"
    assert "mean of 50 inferences in sync.sqlite" in view.legends["time"].title
    # the shape call ran no kernel: that is not 0 µs
    assert legend(drawn, "time")[-1] == "no time measured"


def test_edges_are_the_tensors_between_the_layers() -> None:
    view = picture(bert(), None).views[0]
    found = {(edge.source, edge.target): edge for edge in view.edges}
    assert found[7, 8].words == "1x128x3072 FP16 (768.0 KiB)"
    assert (2, 20) in found  # the mask is read by every softmax
    assert not any(edge.order for edge in view.edges)
    mask = next(trunk for trunk in view.trunks if trunk.ends[0][0] == 2)
    assert len(mask.segments) < sum(
        len(view.layout.ways[number]) for number, edge in enumerate(view.edges) if edge.source == 2
    )


def test_without_times_the_legend_says_so_and_nothing_is_cold() -> None:
    drawn = picture(bert(), None, mode="time")
    assert (
        drawn.views[0].legends["time"].title == "Time: none given; add a REPORT, or --profile FILE"
    )
    assert {box.swatch["time"].fill for box in drawn.views[0].boxes} == {"#e9ecef"}
    assert picture(bert(), None).mode == "kind"


def test_a_trace_that_hides_its_kernels_gives_no_times() -> None:
    assert bert_times("graph_whole.sqlite") is None


def test_times_of_a_profile_are_used_where_there_is_no_trace() -> None:
    engine = read_engine(BERT / "engine.json", profile=BERT / "profile.json")
    drawn = picture(engine, times_of(engine))
    assert drawn.views[0].legends["time"].title == "GPU time: median of the trtexec profile"
    assert drawn.views[0].boxes[7].subtitle == "gemm FP16 · 8.00 µs 3.3%"
    assert drawn.views[0].boxes[0].subtitle.endswith("0 ns 0%")


def test_the_hottest_box_is_the_hottest_colour_and_twice_the_time_is_not_the_same() -> None:
    engine = chain((0, 1), (1, 2))
    drawn = picture(
        replace(engine, trtexec_ns=(100, 50, None)),
        times_of(replace(engine, trtexec_ns=(100, 50, None))),
    )
    fills = [box.swatch["time"].fill for box in drawn.views[0].boxes]
    assert fills[0] == "#7f0000"
    assert len(set(fills)) == 3
    assert drawn.views[0].boxes[2].swatch["time"].untold


def test_colours_by_precision_follow_the_kernels_and_keep_cannot_tell_apart() -> None:
    folder = FIXTURES / "bert_trt85"
    engine = read_engine(folder / "engine.json")
    mapped = map_report(folder / "sync.sqlite", [engine])
    with_trace = picture(
        engine, times_of(engine, measured(mapped), "sync.sqlite"), mode="precision"
    )
    assert [box.swatch["precision"].words for box in with_trace.views[0].boxes] == [
        "changes the type",
        "FP16",
        "FP16",
        "moves data",
    ]
    without = picture(engine, None, mode="precision")
    assert without.views[0].boxes[1].swatch["precision"].words == "cannot tell"
    assert without.views[0].boxes[1].swatch["precision"].untold


@pytest.mark.parametrize("blocks", [18, 19])
def test_many_layers_are_drawn_by_block_unless_asked_otherwise(blocks: int) -> None:
    engine = decoder(blocks)  # 8 layers a block and three more: 147 and 155
    assert len(picture(engine, None).views[0].boxes) == (147 if blocks == 18 else blocks + 3)
    assert len(picture(engine, None, collapse="none").views[0].boxes) == len(engine.layers)
    assert len(picture(engine, None, collapse="block").views[0].boxes) == blocks + 3


def test_a_block_has_the_count_and_the_time_of_its_layers_and_a_strip_of_their_kinds() -> None:
    engine = replace(decoder(3), trtexec_ns=tuple(range(1000, 1000 * 28, 1000)))
    box = picture(engine, times_of(engine), collapse="block").views[0].boxes[2]
    assert box.title == "model/layers.0"
    assert box.layers == tuple(range(2, 10))
    spent = sum(range(3, 11))
    assert box.subtitle == f"8 layers · {spent:.2f} µs {100 * spent / sum(range(1, 28)):.1f}%"
    assert [round(share, 3) for _, share in box.parts["kind"]] == sorted(
        (round(share, 3) for _, share in box.parts["kind"]), reverse=True
    )
    assert sum(share for _, share in box.parts["kind"]) == pytest.approx(1)


def test_regions_are_one_box_each() -> None:
    drawn = picture(bert(), bert_times(), collapse="region")
    assert [(box.title, len(box.layers)) for box in drawn.views[0].boxes] == [
        ("Myelin region 0", 56),
        ("#56 reformat output 0 of pooled", 1),
    ]


def test_the_strip_of_an_opaque_region_shows_what_its_kernels_are() -> None:
    folder = FIXTURES / "bert_trt85"
    engine = read_engine(folder / "engine.json")
    drawn = picture(
        engine,
        times_of(engine, measured(map_report(folder / "sync.sqlite", [engine])), "sync.sqlite"),
    )
    region = drawn.views[0].boxes[1]
    assert region.swatch["kind"].words == "opaque Myelin region"
    fill, share = region.parts["kind"][0]
    assert fill == kernel_swatch("gemm", "").fill
    assert share == pytest.approx(0.65, abs=0.01)
    assert sum(share for _, share in region.parts["kind"]) == pytest.approx(1)
    assert "softmax, norm, reduction" in legend(drawn, "kind")


def test_arrows_end_at_the_boxes_that_read() -> None:
    drawn = picture(bert(), None)
    view = drawn.views[0]
    tops = {((x + BOX_WIDTH / 2), y) for x, y in view.layout.boxes}
    heads = [head for trunk in view.trunks for head in trunk.heads]
    assert len(heads) >= len(view.trunks)
    assert all(tip in tops and not up for tip, up in heads)
    lines = drawing(drawn).lines
    assert sum(len(line.heads) for line in lines) == len(heads)


def test_what_cannot_be_collapsed_is_refused_in_words() -> None:
    with pytest.raises(NsysmapError, match="use --collapse none"):
        picture(chain((0, 1)), None, collapse="region")


def test_boxes_that_feed_each_other_both_ways_are_drawn() -> None:
    engine = made(
        row("__myl_Add_myl0_0", "kgen", [("a", [8], "Half")], [("b", [8], "Half")]),
        row("plugin", "PluginV3", [("b", [8], "Half")], [("c", [8], "Half")]),
        row("__myl_Mul_myl0_1", "kgen", [("c", [8], "Half")], [("d", [8], "Half")]),
    )
    view = picture(engine, None, collapse="region").views[0]
    assert {(edge.source, edge.target) for edge in view.edges} == {(0, 1), (1, 0)}


def test_a_names_only_engine_is_drawn_in_order_and_says_that_this_is_no_data() -> None:
    drawn = picture(names_only(decoder(3)), None)
    assert all(edge.order for edge in drawn.views[0].edges)
    assert any("order of execution" in note for note in drawn.notes)


def test_the_other_view_of_a_collapsed_picture_has_every_layer() -> None:
    views = picture(decoder(20), None, all_views=True).views
    assert [view.name for view in views] == ["repeated blocks", "every layer"]
    assert len(views[1].boxes) == 163
    assert len(picture(bert(), None, all_views=True).views) == 1


def test_a_view_that_would_be_too_large_is_left_out_with_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nsysmap.output.picture.layout.MOST_BOXES", 100)
    drawn = picture(decoder(20), None, all_views=True)
    assert [view.name for view in drawn.views] == ["repeated blocks"]
    assert drawn.notes[-1].startswith("The view of all layers is left out: it has 163 boxes")


def test_sizes_of_tensors_are_told() -> None:
    assert tensor_words(bert().layers[1].outputs[0]) == "1x128x768 FP16 (192.0 KiB)"


@pytest.mark.parametrize("text", ["W" * 80, "i" * 200, "層" * 50, "a/b.c " * 30])
def test_texts_fit_their_boxes(text: str) -> None:
    assert text_width(fitted(text, 186, 10.5), 10.5) <= 186
    for engine in (
        made(row(text, "Shuffle", [], [])),
        made(*(row(f"{text}/{n}/{text}", "Shuffle", [], []) for n in range(3))),
    ):
        boxes = picture(engine, None).views[0].boxes
        assert all(
            text_width(words, TITLE_SIZE) <= BOX_WIDTH - 2 * PADDING for words in box_titles(boxes)
        )
        assert all(
            text_width(box_subtitle(box), SUBTITLE_SIZE) <= BOX_WIDTH - 2 * PADDING for box in boxes
        )


def test_titles_are_cut_where_they_are_alike() -> None:
    engine = read_engine(FIXTURES / "decode_loop" / "generation.engine.json")
    titles = box_titles(picture(engine, None).views[0].boxes)
    assert not any("……" in title for title in titles)
    for index, part in ((2, "qkv"), (4, "dense"), (6, "fc"), (7, "gate"), (9, "proj")):
        assert "layers/0" in titles[index] and part in titles[index], titles[index]


def test_ink_can_be_read_on_its_paper() -> None:
    assert ink_on("#ffffff") == "#1a1d21"
    assert ink_on("#7f0000") == "#ffffff"


# --- files
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".svg", ".png", ".dot", ".html"])
@pytest.mark.parametrize("mode", MODES)
def test_the_same_picture_gives_the_same_bytes(suffix: str, mode: str, tmp_path: Path) -> None:
    engine = replace(decoder(2), trtexec_ns=tuple(range(19)))
    for name in ("one", "two"):
        write_graph(
            picture(engine, times_of(engine), mode=mode, collapse="block", all_views=True),
            tmp_path / f"{name}{suffix}",
        )
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", [".svg", ".png", ".dot", ".html"])
def test_names_may_hold_anything(suffix: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_graph(picture(hostile(), None), tmp_path / f"x{suffix}")
    data = (tmp_path / f"x{suffix}").read_bytes()
    assert len(data) > 500
    if suffix != ".png":
        text = data.decode("utf-8")
        assert ("<img" in text) == (suffix == ".dot")  # there it is text between quotes
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_the_svg_is_well_formed_and_has_every_box() -> None:
    from nsysmap.output.picture.svg import svg

    drawn = picture(bert(), bert_times())
    root = ET.fromstring(svg(drawing(drawn)))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert set(box_titles(drawn.views[0].boxes)) <= set(texts)
    assert ET.fromstring(svg(drawing(picture(hostile(), None)))) is not None


def test_dot_has_a_node_a_box_and_an_edge_a_tensor_and_balanced_quotes(tmp_path: Path) -> None:
    write_graph(picture(hostile(), None), tmp_path / "x.dot")
    write_graph(picture(bert(), None), tmp_path / "b.dot")
    text = (tmp_path / "b.dot").read_text(encoding="utf-8")
    assert len(re.findall(r"^  n\d+ \[", text, re.MULTILINE)) == 57
    assert len(re.findall(r"^  n\d+ -> n\d+ \[", text, re.MULTILINE)) == len(
        picture(bert(), None).views[0].edges
    )
    for line in (tmp_path / "x.dot").read_text(encoding="utf-8").splitlines():
        assert len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) % 2 == 0


def test_the_page_names_nothing_outside_itself(tmp_path: Path) -> None:
    write_graph(picture(bert(), bert_times(), all_views=True), tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"(?:src|href)\s*=|@import|url\(", text)
    # a name, not an address
    assert set(re.findall(r"\w+://[^\"]*", text)) == {"http://www.w3.org/2000/svg"}


def test_the_page_s_data_has_every_layer_with_kernels_and_tensors(tmp_path: Path) -> None:
    write_graph(picture(bert(), bert_times()), tmp_path / "x.html")
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>',
        (tmp_path / "x.html").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert found is not None
    data = json.loads(found[1])
    assert len(data["layers"]) == 57
    assert data["layers"][4]["kernels"][0]["name"].startswith("_gemm_mha_v2_0x")
    assert data["layers"][4]["kernels"][0]["count"] == "1 ×"
    assert data["layers"][7]["outputs"][0]["words"] == "1x128x3072 FP16 (768.0 KiB)"
    assert [mode in MODES for mode in data["modes"]] == [True] * 3


def test_the_command_draws_and_says_what(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for suffix in (".svg", ".png", ".dot", ".html"):
        done = run(
            capfd,
            "graph",
            BERT / "engine.json",
            BERT / "sync.sqlite",
            "-o",
            tmp_path / f"x{suffix}",
        )
        assert (done.status, done.err) == (0, "")
        assert done.out.startswith("engine.json: 57 layers")
        assert (tmp_path / f"x{suffix}").stat().st_size > 1000


def test_the_command_takes_report_and_engine_in_either_order(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, order in (
        ("a", ("engine.json", "sync.sqlite")),
        ("b", ("sync.sqlite", "engine.json")),
    ):
        assert (
            run(
                capfd, "graph", *(BERT / one for one in order), "-o", tmp_path / f"{name}.svg"
            ).status
            == 0
        )
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_command_says_where_a_trace_has_no_times(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = run(
        capfd, "graph", BERT / "engine.json", BERT / "graph_whole.sqlite", "-o", tmp_path / "x.svg"
    )
    assert done.status == 0
    assert "shows no kernel" in done.err
    # the colour is the kind then
    assert "Time: none given" not in (tmp_path / "x.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["engine.json", "-o", "x.pdf"], "names no known format"),
        (["missing.json", "-o", "x.svg"], "no such file"),
        (["engine.json", "-o", "engine.json"], "names no known format"),
        (["sync.sqlite", "-o", "x.svg"], "is a report, not an engine"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing_behind(
    arguments: list[str], words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("engine.json", "sync.sqlite"):
        (tmp_path / name).write_bytes((BERT / name).read_bytes())
    before = sorted(tmp_path.iterdir())
    done = run(capfd, "graph", *(tmp_path / one if "." in one else one for one in arguments))
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert words in done.err
    assert sorted(tmp_path.iterdir()) == before


def test_every_way_to_collapse_is_one_that_the_command_knows() -> None:
    from nsysmap.cli.graph import graph_command

    choices = {
        option.name: getattr(option.type, "choices", None) for option in graph_command.params
    }
    assert tuple(choices["collapse"] or ()) == ("auto", "block", "region", "none")
    assert tuple(choices["color"] or ()) == MODES
