"""Nsight Compute's CSV is read in its forms and languages, and its kernels are matched to the
trace's.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.api import analyze
from nsysmap.core.engine_schema import EDGES
from nsysmap.core.errors import NsysmapError
from nsysmap.core.result_schema import KERNELS
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import DEVICES, INFERENCES
from nsysmap.counters.beside_ncu import _from_cache, dram_bytes, ncu_table, reads_in_program
from nsysmap.counters.ncu_match import SequenceKernel, base_name, match_kernels, other_program
from nsysmap.inputs.ncu.numbers import decimal_mark, in_base_unit, number
from nsysmap.inputs.ncu.printed import (
    NcuConditions,
    NcuKernel,
    NcuMetric,
    parse_ncu_csv,
    read_ncu_csv,
)
from nsysmap.mapping.mapped_trace import map_report
from nsysmap.trace.inferences.steady import steady_inferences
from tests.exports import exported
from tests.places import CAPTURES, FIXTURES

DATA = Path(__file__).parent / "data"


def test_a_row_a_metric() -> None:
    gemm, relu = read_ncu_csv(DATA / "ncu_details.csv")
    assert (gemm.name, gemm.grid, gemm.block, gemm.pid) == (
        "void gemm<float, 128>(int, float *)",
        (2, 66, 1),
        (128, 1, 1),
        7,
    )
    assert gemm.metrics["gpu__time_duration.sum"].value == 1_234_500
    assert gemm.metrics["sm__cycles_elapsed.avg.per_second"].value == pytest.approx(1.41e9)
    assert gemm.metrics["dram__bytes.sum.per_second"].value == pytest.approx(300.5e9)
    assert relu.metrics["dram__bytes.sum"].value == 2_500_000
    assert "smsp__inst.sum" not in relu.metrics


def test_a_column_a_metric_with_units_below() -> None:
    gemm, relu = read_ncu_csv(DATA / "ncu_raw.csv")
    assert gemm.metrics["dram__bytes.sum"].value == 8_714_752
    assert gemm.metrics["gpu__time_duration.sum"].value == pytest.approx(25_952)
    assert gemm.metrics["sm__cycles_elapsed.avg.per_second"].value == pytest.approx(1.395e9)
    assert set(relu.metrics) == {"gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second"}


def test_a_machine_that_writes_commas_before_decimals() -> None:
    rows = [
        (
            '"ID","Process ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric'
            ' Unit","Metric Value"'
        ),
        '"0","7","gemm","(1, 1, 1)","(1, 1, 1)","dram__bytes.sum","byte","27.595.520"',
        '"0","7","gemm","(1, 1, 1)","(1, 1, 1)","gpu__time_duration.sum","ns","117.344"',
        (
            '"0","7","gemm","(1, 1, 1)","(1, 1,'
            ' 1)","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","65,77"'
        ),
    ]
    (gemm,) = parse_ncu_csv("\n".join(rows), "ncu.csv")
    values = {name: each.value for name, each in gemm.metrics.items()}
    assert values == {
        "dram__bytes.sum": 27_595_520, "gpu__time_duration.sum": 117_344,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 65.77,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "hello\n", "a,b,c\n1,2,3\n", '"ID","Kernel Name","Metric Name","Metric Value"\n']
)
def test_another_file_is_refused_with_what_to_do(text: str, tmp_path: Path) -> None:
    (tmp_path / "ncu.csv").write_text(text)
    with pytest.raises(NsysmapError, match="ncu --csv"):
        read_ncu_csv(tmp_path / "ncu.csv")


@given(
    st.floats(0, 1e15, allow_nan=False),
    st.sampled_from([("{:,.3f}", "."), ("{:.4f}", "."), ("{:,.0f}", ".")]),
)
def test_numbers_are_read_as_written(value: float, form: tuple[str, str]) -> None:
    written = form[0].format(value)
    assert number(written, ".") == pytest.approx(float(written.replace(",", "")))
    swapped = written.translate(str.maketrans(",.", ".,"))
    assert number(swapped, ",") == pytest.approx(float(written.replace(",", "")))


@given(st.text(max_size=30))
def test_any_text_is_a_number_or_none_and_a_value_changes_with_its_unit_only(text: str) -> None:
    for mark in ".,":
        told = number(text, mark)
        assert told is None or isinstance(told, float)
    value, unit = in_base_unit(1.0, text)
    assert math.isfinite(value)
    assert (value == 1.0) or unit != text


@pytest.mark.parametrize(
    ("values", "mark"),
    [
        (["1,234", "5.5"], "."), (["1.234", "5,5"], ","), (["1,234,567"], "."),
        (["1.234.567"], ","), (["1.234,5"], ","),
        (["1,234"], "."), (["1.234"], "."), ([], "."), (["0,123"], ","),
    ],
)  # fmt: skip
def test_the_decimal_mark_is_told_by_the_whole_file(values: list[str], mark: str) -> None:
    assert decimal_mark(values) == mark


@pytest.mark.parametrize(
    ("value", "unit", "base"),
    [
        (2.5, "Mbyte", (2.5e6, "byte")), (1.0, "Kibyte", (1024.0, "byte")),
        (3.0, "usecond", (3000.0, "ns")), (1.0, "s", (1e9, "ns")),
        (1.4, "Ghz", (1.4e9, "hz")), (1.4, "cycle/nsecond", (1.4e9, "hz")),
        (2.0, "Gbyte/second", (2e9, "byte/s")),
        (7.0, "%", (7.0, "%")), (9.0, "register/thread", (9.0, "register/thread")),
        (1.0, "strange", (1.0, "strange")),
    ],
)  # fmt: skip
def test_units(value: float, unit: str, base: tuple[float, str]) -> None:
    found, named = in_base_unit(value, unit)
    assert found == pytest.approx(base[0])
    assert named == base[1]


@pytest.mark.parametrize(
    ("name", "base"),
    [
        (
            (
                "void at::native::vectorized_elementwise_kernel<(int)8,"
                " at::CUDAFunctor_add<c10::Half>>(int, T2)"
            ),
            "vectorized_elementwise_kernel",
        ),
        (
            "void at::<unnamed>::vectorized_layer_norm_kernel<c10::Half, float>(int)",
            "vectorized_layer_norm_kernel",
        ),
        ("void (anonymous namespace)::f<1>(int)", "f"),
        (
            "nvjet_sm90_hsh_144x128_64x6_1x2_h_bz_coopA_bias_TNN",
            "nvjet_sm90_hsh_144x128_64x6_1x2_h_bz_coopA_bias_TNN",
        ),
        ("__myl_CastSubMul_0x80c871", "__myl_CastSubMul_0x80c871"),
        ("vectorized_layer_norm_kernel", "vectorized_layer_norm_kernel"),
    ],
)
def test_base_name(name: str, base: str) -> None:
    assert base_name(name) == base


SEQUENCE = [
    SequenceKernel(name, (size, 1, 1), (128, 1, 1))
    for name, size in (("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5))
]


def profiled(*rows: tuple[str, int]) -> list[NcuKernel]:
    return [
        NcuKernel(at, 1, name, (size, 1, 1), (128, 1, 1), {})
        for at, (name, size) in enumerate(rows)
    ]


def test_kernels_go_by_name_size_and_order() -> None:
    found = match_kernels(profiled(("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5)), SEQUENCE)
    assert found.group.tolist() == [0, 1, 2, 3, 4]
    assert (found.by, found.turns) == (("name", "grid", "block"), 1)


def test_a_profile_may_begin_anywhere_leave_out_and_go_round() -> None:
    assert match_kernels(
        profiled(("c", 4), ("b", 5), ("a", 1), ("b", 2)), SEQUENCE
    ).group.tolist() == [3, 4, 0, 1]
    assert match_kernels(profiled(("b", 2), ("b", 5)), SEQUENCE).group.tolist() == [1, 4]
    assert match_kernels(
        profiled(("x", 9), ("b", 2), ("y", 8), ("c", 4)), SEQUENCE
    ).group.tolist() == [-1, 1, -1, 3]


def test_the_same_name_with_another_size_is_another_kernel() -> None:
    found = match_kernels(profiled(("a", 1), ("b", 7), ("c", 9)), SEQUENCE)
    assert found.group.tolist() == [0, -1, -1]
    assert found.by == ("name", "grid", "block")


def test_a_size_alone_is_no_kernel_where_names_are_written_alike() -> None:
    assert match_kernels(
        profiled(("a", 1), ("x", 2), ("a", 3), ("y", 4)), SEQUENCE
    ).group.tolist() == [0, -1, 2, -1]


def test_without_sizes_names_and_order_are_all_there_is() -> None:
    bare = [
        replace(kernel, grid=None, block=None) for kernel in profiled(("b", 2), ("a", 3), ("c", 4))
    ]
    found = match_kernels(bare, SEQUENCE)
    assert (found.group.tolist(), found.by) == ([1, 2, 3], ("name",))


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ((("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5)), None),
        ((("b", 2), ("c", 4)), None),  # some of them, as --kernel-name leaves
        (
            (*(("start", at) for at in range(9)), ("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5)),
            None,
        ),  # and what runs before
        ((("a", 1), ("p", 2), ("q", 3), ("r", 4)), "another program"),
        ((("a", 10), ("b", 20), ("a", 30), ("c", 4)), "other grids or blocks"),
    ],
)
def test_a_profile_of_another_program_is_not_matched_by_chance(
    rows: tuple[tuple[str, int], ...], told: str | None
) -> None:
    given = profiled(*rows)
    reason = other_program(given, [(SEQUENCE, match_kernels(given, SEQUENCE))])
    assert (reason is None) if told is None else (reason is not None and told in reason)


@pytest.mark.skipif(not (CAPTURES / "gpu_metrics").is_dir(), reason="without ../shared")
def test_a_profile_of_another_program_gives_no_figures_and_says_why() -> None:
    folder = FIXTURES / "bert_trt10"
    found = analyze(
        folder / "sync.sqlite",
        folder / "engine.json",
        ncu=CAPTURES / "gpu_metrics" / "ncu.csv",
        rules=(),
    )
    rows = found.tables.ncu_kernels.pandas()
    assert rows.position.isna().all()
    assert rows.reason.str.contains("another program").all()
    assert any(
        note.level == "warning" and "none of the 60 profiled kernels is matched" in note.text
        for note in found.notes
    )


def test_each_engine_of_a_program_has_its_own_kernels_in_the_profile(tmp_path: Path) -> None:
    """Two shapes in turn, which have different kernels: a profile of one inference of each."""
    mapped = map_report(exported("two_shapes/nonvtx"), [])
    sequence = mapped.inferences.ints("kernel_sequence")
    steady = steady_inferences(mapped.inferences)
    chosen = [
        int(steady[np.flatnonzero(sequence[steady] == one)[0]])
        for one in np.unique(sequence[steady])[:2]
    ]
    rows = np.concatenate(
        [np.flatnonzero(mapped.kernels.ints("inference") == one) for one in chosen]
    )
    lines = ['"ID","Process ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum"']
    for at, row in enumerate(mapped.kernels.take(rows)):
        block, grid = (
            f"({', '.join(str(row.integer(f'{what}_{side}')) for side in 'xyz')})"
            for what in ("block", "grid")
        )
        lines.append(f'"{at}","1","{row.text("name")}","{block}","{grid}","1000"')
    (tmp_path / "ncu.csv").write_text("\n".join(lines))
    table = ncu_table(
        read_ncu_csv(tmp_path / "ncu.csv"), mapped.kernels, mapped.inferences, mapped.trace.devices
    )
    assert (table.ints("position") == mapped.kernels.ints("position")[rows]).mean() > 0.9
    assert len(np.unique(table.ints("kernel_sequence"))) == 2


def test_shortened_names_go_by_size() -> None:
    found = match_kernels(profiled(("k1", 1), ("k2", 2), ("k3", 3), ("k4", 4), ("k5", 5)), SEQUENCE)
    assert (found.group.tolist(), found.by) == ([0, 1, 2, 3, 4], ("grid", "block"))


def test_repeated_blocks_are_said_to_fit_several_places() -> None:
    twice = [SequenceKernel(name, (1, 1, 1), (1, 1, 1)) for name in "abab"]
    assert match_kernels([NcuKernel(0, 1, "b", (1, 1, 1), (1, 1, 1), {})], twice).turns == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user", "not allowed"),
        ("==WARNING== No kernels were profiled.", "no kernel"),
    ],
)
def test_a_profile_of_nothing_says_why(text: str, told: str) -> None:
    with pytest.raises(NsysmapError, match=told):
        parse_ncu_csv(f"==PROF== Connected to process 1\n{text}\n", "x.csv")


def test_nothing_in_common_matches_nothing() -> None:
    assert match_kernels(profiled(("x", 9)), SEQUENCE).group.tolist() == [-1]
    assert match_kernels([], SEQUENCE).group.tolist() == []


@pytest.mark.skipif(not (CAPTURES / "gpu_metrics").is_dir(), reason="without ../shared")
def test_an_analysis_puts_every_profiled_kernel_beside_the_kernel_of_the_trace_that_it_is() -> None:
    folder = CAPTURES / "gpu_metrics"
    analysis = analyze(folder / "eager.nsys-rep", ncu=folder / "ncu.csv", rules=())
    rows = analysis.tables.ncu_kernels.pandas()
    assert rows.position.tolist() == list(range(60))
    assert (rows.matched_by == "name, grid, block").all()
    estimated = (
        analysis.tables.kernel_counters.pandas()
        .query("metric == 'tensor_active'")
        .sort_values("position")
    )
    assert np.median(np.abs(estimated.value.to_numpy() - rows.tensor_active.to_numpy())) < 1.0
    assert any("60 of 60 profiled kernels" in note.text for note in analysis.notes)


@pytest.mark.parametrize("cell", ["9" * 6000, "²", "1e400"])
def test_numbers_that_no_counter_has_are_none(cell: str) -> None:
    text = (
        '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value","Grid'
        f' Size"\n"1","a","b","Kbyte","{cell}","{cell},1,1"\n'
    )
    (kernel,) = parse_ncu_csv(text, "ncu.csv")
    assert (kernel.grid, kernel.metrics) == (None, {}) or kernel.metrics["b"].value < 1e36
    with pytest.raises(NsysmapError, match="no profiled kernel"):
        parse_ncu_csv(text.replace('"1"', f'"{cell}"', 1), "ncu.csv")


def test_a_cell_that_never_ends_is_an_error() -> None:
    with pytest.raises(NsysmapError, match="is not a CSV"):
        parse_ncu_csv(
            '"ID","Kernel Name","Metric Value"\n"1","a' + "x" * 300_000 + '","1"\n', "ncu.csv"
        )


def test_what_ncu_2025_prints_of_a_report_is_the_same_on_both_pages() -> None:
    raw, details = (read_ncu_csv(DATA / f"ncu_2025_{page}.csv") for page in ("raw", "details"))
    assert [(each.name, each.grid, each.block) for each in raw] == [
        (each.name, each.grid, each.block) for each in details
    ]
    assert len(raw) == 2
    assert raw[0].grid == (2048, 1, 1)
    for page in (raw, details):
        assert [base_name(each.name) for each in page] == ["vectorized_layer_norm_kernel"] * 2
        assert page[0].metrics["gpu__time_duration.sum"].value == pytest.approx(9824, abs=5)
        assert page[0].metrics[
            "sm__warps_active.avg.pct_of_peak_sustained_active"
        ].value == pytest.approx(72.18, abs=0.01)
        assert page[0].conditions.caches is None  # a report is printed without it
    shared = set(raw[1].metrics) & set(details[1].metrics)
    assert {"dram__cycles_elapsed.avg.per_second", "sm__cycles_active.avg"} <= shared
    for name in shared:
        assert details[1].metrics[name].value == pytest.approx(raw[1].metrics[name].value, rel=2e-3)
        assert details[1].metrics[name].unit == raw[1].metrics[name].unit


@pytest.mark.parametrize(
    ("lines", "caches", "clocks"),
    [
        (("uncontrolled GPU caches", "unmodified GPU clocks"), "left alone", "left alone"),
        (("unmodified GPU clocks",), "emptied", "left alone"),
        (("uncontrolled GPU caches",), "left alone", "locked"),
        ((), None, None),
    ],
)
def test_ncus_own_lines_tell_the_conditions(
    lines: tuple[str, ...], caches: str | None, clocks: str | None
) -> None:
    said = [
        f"==WARNING== Note: Running with {line}. Profiling results may be inconsistent."
        for line in lines
    ]
    rows = [
        "==PROF== Connected to process 7 (/usr/bin/app)",
        '"ID","Kernel Name","a__b.sum"',
        '"","","byte"',
        '"0","k","1"',
    ]
    (kernel,) = parse_ncu_csv("\n".join([*said, *rows]), "ncu.csv")
    assert (kernel.conditions.caches, kernel.conditions.clocks) == (caches, clocks)


def test_bytes_are_told_by_the_page_details_alone() -> None:
    metrics = {
        "dram__bytes.sum.per_second": NcuMetric(4e11, "byte/s"),
        "gpu__time_duration.sum": NcuMetric(10_000, "ns"),
    }
    assert dram_bytes(NcuKernel(0, 1, "k", None, None, metrics)) == pytest.approx(4e6)


def test_times_and_sizes_without_a_unit_are_not_known() -> None:
    table = (
        '"ID","Kernel'
        ' Name","gpu__time_duration.sum","dram__bytes.sum"\n{units}"0","k","42","1,024"\n'
    )
    (bare,), (told,) = (
        parse_ncu_csv(table.format(units=units), "x") for units in ("", '"","","us","Kbyte"\n')
    )
    assert (dram_bytes(bare), dram_bytes(told)) == (None, 1_024_000.0)
    columns = [Table.empty(spec) for spec in (KERNELS, INFERENCES, DEVICES)]
    took = [ncu_table((one,), *columns).floats("ncu_duration_ns")[0] for one in (bare, told)]
    assert np.isnan(took[0]) and took[1] == 42_000.0


def test_what_the_kernel_before_wrote_is_read_from_the_cache_in_the_program() -> None:
    def kernel(read: float, sectors: float, conditions: NcuConditions) -> NcuKernel:
        counted = {
            "dram__bytes_read.sum": NcuMetric(read, "byte"),
            "lts__t_sectors_op_write.sum": NcuMetric(sectors, "sector"),
        }
        return NcuKernel(0, 1, "k", None, None, counted, conditions)

    def told(conditions: NcuConditions) -> list[float | None]:
        return reads_in_program(
            [kernel(1000, 10, conditions), kernel(500, 100, conditions), kernel(400, 1, conditions)]
        )

    assert told(NcuConditions("emptied", None)) == [None, 500 - 320, 0.0]
    assert told(NcuConditions("left alone", None)) == [1000, 500, 400]
    assert told(NcuConditions()) == [None, None, None]


def test_tensors_that_the_cache_still_holds_are_not_read_from_memory_in_the_program() -> None:
    """Layer 0 writes 400 bytes for layer 2 and 100 for layer 1; layer 3 has two kernels."""
    counted = {
        "dram__bytes_read.sum": NcuMetric(1000, "byte"),
        "dram__bytes_write.sum": NcuMetric(0, "byte"),
    }
    tensors = [(0, 1, 100), (0, 2, 400), (1, 2, 50), (2, 3, 10)]
    edges = Table.of_rows(
        EDGES,
        [
            {"from_layer": a, "to_layer": b, "tensor": f"{a}{b}", "bytes": size}
            for a, b, size in tensors
        ],
    )

    def told(
        caches: Literal["emptied", "left alone"] | None, l2_bytes: int | None
    ) -> list[float | None]:
        profiled = [
            NcuKernel(at, 1, "k", None, None, counted, NcuConditions(caches, None))
            for at in range(5)
        ]
        return _from_cache(profiled, [0, 1, 2, 3, 3], edges, l2_bytes)

    assert told("emptied", 10_000) == [None, 900, 550, None, None]
    # 2000 bytes were moved since layer 0: its 400 are gone
    assert told("emptied", 1200) == [
        None,
        900,
        950,
        None,
        None,
    ]
    assert told("emptied", None) == told("left alone", 10_000) == told(None, 10_000) == [None] * 5


def test_counters_of_a_graph_that_tensorrt_runs_are_those_of_nsight_compute() -> None:
    """42 kernels of 1 to 9 µs, 150 inferences at 50 kHz; ncu emptied the caches, so that what
    earlier layers wrote is subtracted.
    """
    real = FIXTURES / "real_trt"
    tables = analyze(
        real / "gm_bert-graph.nsys-rep",
        real / "bert_eager.engine.json",
        ncu=real / "bert_eager.ncu.csv",
    ).tables
    told, counters = tables.ncu_kernels, tables.kernel_counters
    assert told.ints("position").tolist() == list(range(42))
    reads = np.array([row.text("metric") == "dram_read" for row in counters])
    value, error = counters.floats("value")[reads], counters.floats("error")[reads]
    exact = told.floats("dram_read_percent")
    some = np.isfinite(exact)
    assert some.sum() >= 40
    away = np.abs(value - exact)[some]
    assert float(np.median(away)) < 0.4
    assert float(np.mean(away < 1.96 * error[some])) > 0.95
