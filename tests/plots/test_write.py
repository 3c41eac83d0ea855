"""Each figure says in text what the analysis has, and is refused where the analysis has nothing to
show.
"""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from nsysmap.analysis import Analysis
from nsysmap.answer.costs import cost_rows
from nsysmap.api import analyze
from nsysmap.core.errors import NsysmapError
from nsysmap.core.idle_causes import IDLE_CAUSES, idle_words
from nsysmap.core.table import Table
from nsysmap.output.plots.write import KINDS, write_plot
from nsysmap.text.units import duration, percent
from tests.commands import run
from tests.places import FIXTURES

BERT = (FIXTURES / "bert_trt103" / "sync.nsys-rep", FIXTURES / "bert_trt103" / "engine.json")


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analyze(*BERT, rules=())


def texts(analysis: Analysis, kind: str, path: Path) -> list[str]:
    write_plot(analysis, kind, path)
    return [
        "".join(one.itertext()).strip()
        for one in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")
    ]


def test_layers_stand_with_their_time_repeated_ones_together(
    analysis: Analysis, tmp_path: Path
) -> None:
    said = texts(analysis, "layers", tmp_path / "x.svg")
    first = cost_rows(analysis.summary)[0]
    assert any(one.startswith(f"{first.layers} × ") for one in said)
    assert any(f"{duration(first.time_ns)}, {percent(first.share, 1)}" in one for one in said)


def test_idle_time_stands_by_cause(analysis: Analysis, tmp_path: Path) -> None:
    said = " ".join(texts(analysis, "idle", tmp_path / "x.svg"))
    for row in analysis.tables.idle_totals:
        assert f"idle, {IDLE_CAUSES[row.text('cause')].words}" in said
        assert percent(row.real("share_of_window"), 1) in said


def test_outliers_are_named_with_their_cause(analysis: Analysis, tmp_path: Path) -> None:
    said = texts(analysis, "inferences", tmp_path / "x.svg")
    slowest = analysis.summary.slowest
    assert slowest is not None
    assert any(
        one.startswith(f"{slowest.inference}: {slowest.times_median:.1f} ×")
        and idle_words(slowest.more[0][0]) in one
        for one in said
    )


def test_the_roofline_counts_every_layer_with_time(analysis: Analysis, tmp_path: Path) -> None:
    said = texts(analysis, "roofline", tmp_path / "x.svg")
    assert any("layers latency-bound" in one for one in said)
    assert "memory: 4.81 TB/s" in said
    assert not any("mathdefault" in one for one in said)


@pytest.mark.parametrize(
    ("folder", "trace"), [("bert_trt10", "sync.sqlite"), ("aux_streams", "graph.nsys-rep")]
)
def test_each_layer_that_the_roofline_names_has_its_number_beside_a_point(
    folder: str, trace: str, tmp_path: Path
) -> None:
    said = texts(
        analyze(FIXTURES / folder / trace, [FIXTURES / folder / "engine.json"], rules=()),
        "roofline",
        tmp_path / "x.svg",
    )
    assert {"1", "2", "3", "4", "5"} <= set(said)
    assert any(one.startswith("5: ") for one in said)


def test_the_roofline_says_of_which_data_type_its_peaks_are(
    analysis: Analysis, tmp_path: Path
) -> None:
    said = texts(analysis, "roofline", tmp_path / "x.svg")
    peaks = {
        row.maybe_real("peak_flops_per_s")
        for row in analysis.tables.roofline
        if row.maybe_integer("flops")
    }
    drawn = [one for one in said if one.endswith(" cores")]
    assert len(drawn) == len(peaks - {None}) > 1
    assert any(one.endswith(": FP16 on tensor cores") for one in drawn)
    assert any(one.endswith(" on CUDA cores") for one in drawn)


def test_the_roofline_leads_with_the_time_it_is_of_and_says_why_the_rest_is_missing(
    tmp_path: Path,
) -> None:
    folder = FIXTURES / "decode_loop"
    both = analyze(
        folder / "sync.nsys-rep",
        [folder / "context.engine.json", folder / "generation.engine.json"],
        rules=(),
    )
    said = texts(both, "roofline", tmp_path / "x.svg")
    title = next(one for one in said if one.startswith("Roofline"))
    shown = float(
        title.removeprefix("Roofline of the layers with ").removesuffix("% of the kernel time")
    )
    omitted = {
        one.split(", ", 1)[1]: float(one.split()[2][:-2])
        for one in said
        if one.startswith("not shown: ")
    }
    assert shown > 65  # the Gemm plugins take most of the time
    assert shown + sum(omitted.values()) == pytest.approx(100, abs=0.3)
    assert "18 layers: the engine file does not show what is inside these regions" in omitted
    assert "10 layers: what these plugins compute does not follow from their tensors" in omitted
    named = [one for one in said if "Gemm" in one]
    assert [one[:2] for one in named] == ["1:", "2:", "3:", "4:", "5:"]
    shares = [float(one.split()[1][:-2]) for one in named]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) < shown
    assert {"1", "2", "3", "4", "5"} <= {*said}


def test_the_roofline_shows_measured_traffic_beside_the_modelled(
    analysis: Analysis, tmp_path: Path
) -> None:
    table = analysis.tables.roofline
    known = [row.maybe_integer("flops") and row.maybe_integer("bytes") for row in table]
    moved = [
        2 * row.integer("bytes") if known[at] and at % 2 else None for at, row in enumerate(table)
    ]
    some = [{**row, "dram_bytes": size} for row, size in zip(table.records(), moved, strict=True)]
    counted = replace(
        analysis, tables=analysis.tables.with_tables(roofline=Table.of_rows(table.spec, some))
    )
    number = sum(
        1 for at, row in enumerate(table) if known[at] and at % 2 and row.maybe_integer("time_ns")
    )
    assert number > 5
    assert f"{number} layers by the memory traffic that was measured (hardware counters)" in texts(
        counted, "roofline", tmp_path / "x.svg"
    )
    assert not any("measured" in one for one in texts(analysis, "roofline", tmp_path / "y.svg"))


def test_a_roofline_of_layers_without_tensors_says_what_the_file_lacks(tmp_path: Path) -> None:
    plain = analyze(
        FIXTURES / "two_gpus" / "tp_sync.nsys-rep",
        [FIXTURES / "two_gpus" / "tp.engine.json"],
        rules=[],
    )
    with pytest.raises(
        NsysmapError,
        match=(
            "operations and bytes: the engine file has no tensors; give one that trtexec"
            " --exportLayerInfo"
        ),
    ):
        write_plot(plain, "roofline", tmp_path / "x.svg")


def test_what_if_shows_before_and_after(analysis: Analysis, tmp_path: Path) -> None:
    said = texts(analysis, "what-if", tmp_path / "x.svg")
    for row in analysis.tables.whatif:
        assert any(one.startswith(row.text("change")) for one in said) == (
            row.text("answer") == "answered"
        )
    assert "unchanged" in said


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_of_nothing_is_refused_with_what_to_do(
    analysis: Analysis, kind: str, tmp_path: Path
) -> None:
    tables = analysis.tables
    names = (
        "repeated_layers",
        "device_times",
        "inference_times",
        "roofline",
        "whatif",
        "kernel_totals",
    )
    bare = replace(
        analysis,
        tables=tables.with_tables(
            **{name: Table.empty(getattr(tables, name).spec) for name in names}
        ),
    )
    with pytest.raises(NsysmapError, match=r"sync\.nsys-rep"):
        write_plot(bare, kind, tmp_path / "x.svg")
    assert not (tmp_path / "x.svg").exists()


def test_without_layers_the_costliest_kernels_are_drawn_and_it_is_said(
    analysis: Analysis, tmp_path: Path
) -> None:
    bare = replace(
        analysis,
        tables=analysis.tables.with_tables(
            repeated_layers=Table.empty(analysis.tables.repeated_layers.spec)
        ),
    )
    said = texts(bare, "layers", tmp_path / "x.svg")
    assert any("no layer is known" in one for one in said)
    assert "µs over the trace" in said
    assert sum(1 for one in said if one.endswith("%")) == len(bare.summary.kernels)


def test_the_same_analysis_gives_the_same_bytes(analysis: Analysis, tmp_path: Path) -> None:
    for suffix in ("svg", "png"):
        for name in ("x", "y"):
            write_plot(analysis, "idle", tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"x.{suffix}").read_bytes() == (tmp_path / f"y.{suffix}").read_bytes()


def test_the_command_writes_a_picture(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = run(capfd, "plot", *BERT, "idle", "-o", tmp_path / "x.png", "-o", tmp_path / "x.svg")
    assert done.status == 0, done.err
    assert done.out == "".join(
        f"idle of sync.nsys-rep → {tmp_path / name}\n" for name in ("x.png", "x.svg")
    )
    assert (tmp_path / "x.svg").read_text().startswith("<?xml")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    refused = run(capfd, "plot", *BERT, "idle", "-o", tmp_path / "x.pdf")
    assert refused.status == 2
    assert ".png, .svg" in refused.err


def test_a_trace_of_two_gpus_has_a_bar_for_each(tmp_path: Path) -> None:
    two = analyze(FIXTURES / "two_gpus" / "tp_sync.nsys-rep", rules=())
    said = texts(two, "idle", tmp_path / "x.svg")
    assert {"GPU 0", "GPU 1"} <= set(said)


def test_layers_of_two_engines_with_the_same_names_are_told_apart(tmp_path: Path) -> None:
    folder = FIXTURES / "decode_loop"
    both = analyze(
        folder / "sync.nsys-rep",
        [folder / "context.engine.json", folder / "generation.engine.json"],
        rules=(),
    )
    for kind in ("layers", "roofline"):
        said = [one for one in texts(both, kind, tmp_path / "x.svg") if "layers/*" in one]
        assert len(set(said)) == len(said) > 1
        assert any(one.endswith("(generation.engine.json)") for one in said)


def named(analysis: Analysis, source: str) -> Analysis:
    other = replace(analysis)
    other.__dict__["summary"] = replace(analysis.summary, source=source)
    return other


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_says_what_ran_where(analysis: Analysis, kind: str, tmp_path: Path) -> None:
    said = texts(analysis, kind, tmp_path / "x.svg")
    assert "sync.nsys-rep: 50 inferences of engine.json on NVIDIA H200, TensorRT 10+" in " ".join(
        said
    )
    write_plot(named(analysis, "sync " * 500), kind, tmp_path / "y.svg")
    # a long name is cut
    assert (tmp_path / "y.svg").stat().st_size < (tmp_path / "x.svg").stat().st_size + 3000


def test_changes_that_make_no_single_inference_faster_say_so(
    analysis: Analysis, tmp_path: Path
) -> None:
    said = texts(analysis, "what-if", tmp_path / "x.svg")
    answered = {
        row.text("change") for row in analysis.tables.whatif if row.text("answer") == "answered"
    }
    assert said.count("throughput, not latency") == len(answered & {"two-in-flight", "async"}) > 0


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_letters_that_the_font_lacks_are_no_warning(
    analysis: Analysis, suffix: str, tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_plot(named(analysis, "報告.nsys-rep"), "idle", tmp_path / f"x{suffix}")
    assert suffix == ".png" or "報告" in (tmp_path / "x.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["layers", "idle", "inferences", "roofline"])
def test_no_legend_stands_where_the_data_is(analysis: Analysis, kind: str, tmp_path: Path) -> None:
    """A mark of a legend inside the axes is taken for an inference or a layer."""
    write_plot(analysis, kind, tmp_path / "x.svg")
    tree = ET.parse(tmp_path / "x.svg")
    axes = tree.find(".//*[@id='axes_1']")
    assert axes is not None
    assert tree.find(".//*[@id='legend_1']") is not None
    assert axes.find(".//*[@id='legend_1']") is None


def test_inferences_that_only_their_gpu_tells_apart_say_which(tmp_path: Path) -> None:
    two = analyze(FIXTURES / "two_gpus" / "tp_sync.nsys-rep", rules=())
    said = texts(two, "inferences", tmp_path / "x.svg")
    assert two.summary.steady == 79
    assert sorted(one.partition(", median")[0] for one in said if "median" in one) == [
        "39 inferences of 38 kernels, GPU 1", "40 inferences of 38 kernels, GPU 0",
    ]  # fmt: skip


def test_hidden_kernels_are_not_counted_as_none(tmp_path: Path) -> None:
    folder = FIXTURES / "decode_loop"
    hidden = analyze(
        folder / "graph_whole.nsys-rep",
        [folder / "context.engine.json", folder / "generation.engine.json"],
        rules=(),
    )
    assert any(
        one.startswith("96 inferences with hidden kernels, median")
        for one in texts(hidden, "inferences", tmp_path / "x.svg")
    )
    assert any("visible kernel time" in one for one in texts(hidden, "layers", tmp_path / "x.svg"))


def test_what_no_range_marks_is_called_repetitions(tmp_path: Path) -> None:
    torch = analyze(FIXTURES / "torch_encoder" / "eager.nsys-rep", rules=())
    for kind in ("inferences", "idle", "what-if"):
        said = " ".join(texts(torch, kind, tmp_path / "x.svg")).replace(
            "(no range marks an inference)", ""
        )
        assert "repetition" in said and "inference" not in said, said
