"""The functions of the page's scripts, held to the tables: packing, search, selection, lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from nsysmap.core.schema import Tables
from nsysmap.core.table import MISSING
from nsysmap.output.page.events import events_of
from nsysmap.output.page.packing import packed
from nsysmap.output.page.windows import windows_of
from tests.page.opening import CAPTURES, MIXED
from tests.page.scripts import elements_of, run
from tests.reports import analysis

TRACE = """
const doc = (await inflated("doc")).head;
const trace = traceOf(doc, unpacked(await inflated("rows")));
"""
NOTHING = "{ inference: null, range: null, layer: null, layers: null, found: null }"


def bert() -> Tables:
    return analysis("bert_trt103", "sync.nsys-rep", rules=True).tables


def test_columns_are_unpacked_as_they_were_packed() -> None:
    columns = {
        "ascending": np.arange(0, 3000, 3, dtype=np.int64),
        "any": np.array([(-7) ** (row % 9) for row in range(1000)], np.int64),
        "wide": np.array([(-1) ** row * (2**52 - row) for row in range(1000)], np.int64),
        "unknown": np.array([MISSING if row % 3 else row for row in range(1000)], np.int64),
    }
    empty = {"nothing": np.zeros(0, np.int64)}
    found = run(
        "async () => { const tables = unpacked(await inflated('rows'));"
        " const each = (held, make) =>"
        "   Object.fromEntries(Object.entries(held).map(([name, one]) => [name, make(one)]));"
        " return each(tables, ({ rows, ...columns }) => each(columns, values => [...values])); }",
        elements={"rows": packed({"one": columns, "none": empty})},
    )
    wanted = {name: np.where(held == MISSING, -1, held).tolist() for name, held in columns.items()}
    assert found == {"one": wanted, "none": {"nothing": []}}


@pytest.mark.parametrize(
    ("asked", "passing"),
    [
        ("relu", ["conv + ReLU", "relu_3"]),
        ("  RELU conv ", ["conv + ReLU"]),
        ("softmax", []),
        ("(", ["gemm (a|b)"]),
    ],
)
def test_search_wants_every_word_wherever_it_stands(asked: str, passing: list[str]) -> None:
    texts = ["conv + ReLU", "relu_3", "gemm (a|b)"]
    assert run("([asked, texts]) => texts.filter(searcher(asked))", [asked, texts]) == passing


def test_no_word_is_no_search() -> None:
    assert run("() => [searcher(''), searcher('  ')]") == [None, None]


@pytest.mark.parametrize("capture", [*CAPTURES.values(), MIXED])
def test_every_row_of_events_has_a_lane_and_a_title(
    written: Callable[..., Path], capture: tuple[str, ...]
) -> None:
    found = cast(
        "dict[str, Any]",
        run(
            f"""async () => {{ {TRACE}
              const drawn = {{}}, untitled = [];
              for (const lane of trace.lanes) lane.row.forEach((row, at) => {{
                const name = TABLES[lane.types[at]];
                if (name) (drawn[name] ??= []).push(row);
                const title = trace.titleOf(lane.types[at], row);
                if (typeof title !== "string" || !title || title.includes("undefined"))
                  untitled.push([name, row]);
              }});
              const rows = Object.fromEntries(TABLES.map(name => [name, trace.tables[name].rows]));
              return {{ drawn, rows, untitled }}; }}""",
            elements=elements_of(written(*capture)),
        ),
    )
    assert found["untitled"] == []
    for name, rows in found["rows"].items():
        assert sorted(found["drawn"].get(name, [])) == list(range(rows)), name


def test_the_script_knows_every_table_of_events() -> None:
    tables = bert()
    made = events_of(tables, windows_of(tables, 150_000)).tables
    known = cast("list[str]", run("() => TABLES"))
    classes = {f"{name}_classes" for name in known}
    assert {name for name in made if "start" in made[name] or "from" in made[name]} <= set(known)
    assert set(known) <= made.keys()
    assert {name for name in made if name.endswith("_classes")} <= classes


def test_the_kernels_of_an_inference_and_of_a_part_of_the_time_are_summed_by_layer(
    written: Callable[..., Path],
) -> None:
    tables = bert()
    kernels, inference = tables.kernels, 4
    layer, start, end = (kernels.ints(name) for name in ("layer_id", "start_ns", "end_ns"))
    mine = kernels.ints("inference") == inference
    origin = events_of(tables, windows_of(tables, 150_000)).origin_ns
    # from the middle of one kernel to the middle of another one
    first, last = np.flatnonzero(mine)[[5, 30]]
    since, until = ((int(start[row]) + int(end[row])) // 2 for row in (first, last))
    found = cast(
        "list[list[list[float]]]",
        run(
            f"""async ([inference, from, to]) => {{ {TRACE}
              const all = {NOTHING};
              const sums = selection => [...trace.summed({{ ...all, ...selection }}, trace.layerOf)]
                .map(([layer, sum]) => [layer, sum.time, sum.kernels]);
              const some = {{ inference, layers: [1, 2] }};
              return [{{ inference }}, {{ range: [from, to] }}, some].map(sums); }}""",
            [inference, since - origin, until - origin],
            elements_of(written(*CAPTURES["one inference at a time"])),
        ),
    )

    def sums(rows: Any, begin: int, stop: int) -> list[list[int]]:
        spent = np.minimum(end, stop) - np.maximum(start, begin)
        rows = rows & (spent > 0)
        return sorted(
            [one, int(spent[rows & (layer == one)].sum()), int((rows & (layer == one)).sum())]
            for one in np.unique(layer[rows]).tolist()
        )

    whole = (int(start.min()), int(end.max()))
    assert sorted(found[0]) == sums(mine, *whole)
    assert sorted(found[1]) == sums(np.ones(len(kernels), bool), since, until)
    assert sorted(found[2]) == sums(mine & np.isin(layer, [1, 2]), *whole)


def test_idle_time_of_the_whole_run_is_that_of_the_gaps_by_cause(
    written: Callable[..., Path],
) -> None:
    gaps = bert().gaps
    wanted: Counter[str | None] = Counter()
    for cause, length in zip(
        gaps.text("cause").list(),
        (gaps.ints("end_ns") - gaps.ints("start_ns")).tolist(),
        strict=True,
    ):
        wanted[cause] += length
    found = cast(
        "dict[str, float]",
        run(
            f"""async () => {{ {TRACE}
              const {{ found }} = trace.idle({NOTHING});
              return Object.fromEntries([...found].map(([cause, sum]) => [cause, sum.time])); }}""",
            elements=elements_of(written(*CAPTURES["one inference at a time"])),
        ),
    )
    assert found == dict(wanted)


def test_a_selection_of_a_layer_holds_its_kernels_their_calls_and_the_idle_time_before_them(
    written: Callable[..., Path],
) -> None:
    kernels = bert().kernels
    layer = int(kernels.ints("layer_id")[30])
    found = cast(
        "dict[str, int]",
        run(
            f"""async layer => {{ {TRACE}
              const inside = trace.chosenBy({{ ...{NOTHING}, layer }}), counts = {{}};
              for (const type of [KERNEL, CALL, COPY]) {{
                const rows = [...Array(trace.tables[TABLES[type]].rows).keys()];
                counts[TABLES[type]] = rows.filter(row => inside(type, row)).length;
              }}
              return counts; }}""",
            layer,
            elements_of(written(*CAPTURES["one inference at a time"])),
        ),
    )
    mine = kernels.ints("layer_id") == layer
    launches = np.unique(kernels.ints("launch")[mine])
    assert found == {
        "kernels": int(mine.sum()),
        "calls": int((launches != MISSING).sum()),
        "copies": 0,
    }
