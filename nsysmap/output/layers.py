"""Lays out the output of `nsysmap layers`: the layers of an engine, with measured times if there
are any, as text or JSON.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from nsysmap.answer.costs import Cost, cost_rows, costs_heading, other_costs
from nsysmap.answer.model import Answer
from nsysmap.answer.whose import engine_names
from nsysmap.answer.words import mixture
from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.table import Row, Table
from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.inputs.engine.tensor_formats import tensor_bytes
from nsysmap.names.decode import decode, summary
from nsysmap.names.layers import short_nodes
from nsysmap.network.titles import layer_titles
from nsysmap.output import precision as report_precision
from nsysmap.output.precision import Rows
from nsysmap.output.words import ENGINES_NAME, NAMES_FROM
from nsysmap.text.lines import WHOLE, Line, heading, rendered, styled, table, wrapped
from nsysmap.text.terminal import columns, escaped, shortened, told_apart
from nsysmap.text.units import counted, microseconds, percent, rounded
from nsysmap.timing.measured import KindTimes, Measured
from nsysmap.timing.precision import engine_precision_table

Sort = Literal["index", "time", "name"]
NARROWEST = 80  # columns: a narrower table would lose its names
_TACTIC_WIDTH = 34  # columns
_ENGINE = 14  # width of an engine's name in the table of kernel time
_KINDS_FROM = 100  # width below which the layers' kinds give way to the names
_GAP = 2  # columns between those of a table
_SUMMARY_WIDTH = 60  # columns
_TOP_PARTS, _TOP_REGIONS = 20, 10
_NUMBER = re.compile(r"(?<![A-Za-z])\d+|(?<=[a-z]{3})\d+")
_ORDINAL = re.compile(r" #\d+$")


@dataclass(frozen=True)
class OfTrace:
    """The trace's measurements of the engine."""

    source: str  # the trace's file name
    times: Measured
    notes: tuple[Note, ...]
    number: int = 0  # of the engine among those that were measured
    # its kinds of inferences, as of several shapes: the times above are means over all of them
    kinds: tuple[KindTimes, ...] = ()

    @property
    def layers(self) -> dict[int, Row]:
        """Rows of the engine's layers, by their index."""
        mine = self.of(self.times.layers)
        return {
            index: row for row in mine if (index := row.maybe_integer("layer_index")) is not None
        }

    @property
    def inferences(self) -> int:
        """Steady-state inferences of the engine; 0 if times are totals."""
        return max(
            (row.maybe_integer("inferences") or 0 for row in self.of(self.times.kernel_time)),
            default=self.times.inferences,
        )

    @property
    def time_words(self) -> str:
        """What the times and shares refer to."""
        mean = (
            f"mean of {counted(self.inferences, 'inference')} of this engine"
            if self.inferences
            else "total over the trace"
        )
        of = [
            f"{kind.inferences:,} of {name}"
            for kind, name in zip(self.kinds, self.kind_names, strict=True)
        ]
        mixed = f": {' and '.join(of)}, whose own means stand beside it" if of else ""
        return f"{mean}{mixed}; shares are of all kernel time"

    @property
    def kind_names(self) -> list[str]:
        """Names for the kinds of inferences, by their number of kernels."""
        names = [counted(kind.kernels, "kernel") for kind in self.kinds]
        return [
            f"{name} #{names[: place + 1].count(name)}" if names.count(name) > 1 else name
            for place, name in enumerate(names)
        ]

    @property
    def share(self) -> float:
        """The share of all kernel time that the engine's layers have."""
        return sum(
            row.maybe_real("share_of_all_kernel_time") or 0.0 for row in self.of(self.times.layers)
        )

    def of(self, table: Table) -> Iterator[Row]:
        """The rows of the engine."""
        return (row for row in table if row.maybe_integer("engine") == self.number)


def layers_text(
    engine: Engine,
    measured: OfTrace | None = None,
    *,
    sort: Sort = "index",
    width: int | None = None,
    titles: Sequence[str] = (),
) -> str:
    """The report as text: a heading, one line per layer, what Myelin regions spend, one line a
    kind, and what the reader must know.

    Lines have at most ``width`` columns; without a width nothing is cut.  ``titles`` say what the
    layers are called; by default what the engine file tells.
    """
    room = _room(width)
    called = titles_of(engine, measured, titles)
    times = _times(engine, measured)
    shares = _shares(engine, measured)
    order = _order(engine, times, shares, sort)
    body = (
        _layer_lines(times, shares, order, called, room)
        if engine.detailed or times
        else _name_lines(order, called, room)
    )
    regions = (
        _region_lines(
            measured,
            {layer.name: title for layer, title in zip(engine.layers, called, strict=True)},
            room,
        )
        if measured
        else ()
    )
    parts = [
        _heading(engine, measured, room),
        body,
        *regions,
        _kind_lines(engine, times),
        _note_lines(engine, measured, room),
    ]
    return _text(parts)


def titles_of(
    engine: Engine, measured: OfTrace | None, titles: Sequence[str] = ()
) -> Sequence[str]:
    """The title of each layer: as given, from the trace's tables, or from the engine file."""
    if titles:
        return titles
    told = layer_titles(engine.layers)
    rows = measured.layers if measured else {}
    return [
        (rows[at].maybe_text("title") if at in rows else None) or title
        for at, title in enumerate(told)
    ]


def costs_text(summary: Answer, *, width: int | None = None) -> str:
    """Shows where the kernel time of the whole report goes, as the answer has it: layers of all
    engines, and kernels without a layer.

    Layers whose titles differ only in numbers are one row; a * stands for the numbers.
    """
    mixed = list(wrapped(told, _room(width), indent=0)) if (told := mixture(summary)) else []
    return _text([_costs_table(summary, cost_rows(summary), _room(width)), mixed])


def _costs_table(summary: Answer, shown: Sequence[Cost], width: int) -> list[Line]:
    """These rows of the table of kernel time, and all others as one."""
    several = len({group.engine for group in summary.layers}) > 1
    engines = told_apart([escaped(name) for name in engine_names(summary)], _ENGINE)
    kinds_too = width >= _KINDS_FROM
    cells = []
    for cost in shown:
        engine = () if not several else ("–" if cost.engine is None else engines[cost.engine],)
        cells.append(
            (
                percent(cost.share, 1, 0),
                rounded(cost.time_ns),
                "–" if cost.layers is None else f"{cost.layers}",
                *((cost.what,) if kinds_too else ()),
                *engine,
                escaped(cost.name if width == WHOLE else short_nodes(cost.name)),
            )
        )
    if rest := other_costs(summary, shown):
        share, time_ns, layers = rest
        cells.append(
            (
                percent(share, 1, 0),
                rounded(time_ns),
                f"{layers}" if layers else "–",
                *("",) * kinds_too,
                *("",) * several,
                "(all others)",
            )
        )
    head = (
        "share",
        "time",
        "layers",
        *(("kind",) if kinds_too else ()),
        *(("engine",) if several else ()),
    )
    taken = sum(
        _GAP + max(columns(one) for one in (name, *(cell[i] for cell in cells)))
        for i, name in enumerate(head)
    )
    header = (*head, costs_heading(summary, width - _GAP - taken))
    return table(header, cells, width, "rrr" + "l" * kinds_too + "l" * several + "n")


def precision_text(
    engine: Engine,
    measured: OfTrace | None = None,
    *,
    width: int | None = None,
    titles: Sequence[str] = (),
) -> str:
    """Time by data type, tensor cores and conversions: of the engine, of each Myelin region and of
    each layer.
    """
    called = titles_of(engine, measured, titles)
    room = _room(width)
    rows = _precision(engine, measured)
    header: tuple[str, ...] = ("share", "µs", "layers", *report_precision.TYPES_HEADER)
    # without times there is no share and no µs
    skip = 0 if any(row["time_ns"] is not None for row in rows) else 2
    cells = [cell[skip:] for cell in report_precision.type_cells(rows)]
    parts = [_heading(engine, measured, room)]
    parts.append(
        [
            styled(report_precision.heading(rows)),
            *table(header[skip:], cells, room, "rrrlll"[skip:]),
        ]
    )
    parts.append(
        [
            line
            for text in report_precision.sentences(rows)
            for line in wrapped(text, room, indent=0)
        ]
    )
    regions = [tuple(map(escaped, cell)) for cell in report_precision.region_cells(rows)]
    if regions and not skip:
        parts.append(
            [
                styled("by Myelin region"),
                *table(report_precision.REGIONS_HEADER, regions, room, "rrrrrrln"),
            ]
        )
    named = room >= NAMES_FROM
    by_layer = [
        (
            str(index),
            *cell[skip:],
            escaped(called[index]),
            *((escaped(engine.layers[index].name),) if named else ()),
        )
        for index, cell in report_precision.layer_cells(rows)
    ]
    header = (
        "#",
        *("share", "µs")[skip:],
        *report_precision.TYPES_HEADER,
        "layer",
        *((ENGINES_NAME,) if named else ()),
    )
    parts.append(
        [
            styled("by layer"),
            *table(header, by_layer, room, "r" * (3 - skip) + "llln" + "n" * named),
        ]
    )
    return _text([*parts, _note_lines(engine, measured, room)])


def _room(width: int | None) -> int:
    return WHOLE if width is None else max(width, NARROWEST)


def _text(parts: Sequence[Sequence[Line]]) -> str:
    """The parts with an empty line between; without a line break at the end."""
    return "\n\n".join(rendered(part, colour=False).rstrip("\n") for part in parts if part)


def layers_json(
    engine: Engine,
    measured: OfTrace | None = None,
    *,
    precision: bool = False,
    titles: Sequence[str] = (),
) -> dict[str, object]:
    """The same as one JSON object; times in nanoseconds, sizes in bytes.  Measurements and
    precision are included on request.
    """
    rows = measured.layers if measured else {}
    of_kinds = _by_kind(measured) if measured else []
    layers = []
    called = titles_of(engine, measured, titles)
    for layer in engine.layers:
        values = _layer_json(engine, layer, called[layer.index])
        if measured:
            row = rows.get(layer.index)
            values |= {
                name: None if row is None else row[name]
                for name in (
                    "time_ns",
                    "share_of_kernel_time",
                    "share_of_all_kernel_time",
                    "kernels",
                )
            }
            values["by_kind"] = [kind.get(layer.index) for kind in of_kinds]
        layers.append(values)
    notes = [*engine.notes, *(measured.notes if measured else ())]
    value: dict[str, object] = {
        "source": engine.source,
        "tensorrt_version": engine.tensorrt_version,
        "detailed": engine.detailed,
        "bindings": list(engine.bindings),
        "layers": layers,
    }
    if measured:
        value |= {
            "trace": measured.source,
            "inferences": measured.inferences,
            "regions": _regions_json(measured),
        }
        value["kinds"] = [
            {"kernels": kind.kernels, "inferences": kind.inferences} for kind in measured.kinds
        ]
    if precision:
        named: dict[int, tuple[int | None, str, str]] = {
            layer.index: (layer.index, layer.name, called[layer.index]) for layer in engine.layers
        }
        value["precision"] = report_precision.precision_json(_precision(engine, measured), named)
    return {**value, "notes": [{"level": note.level, "text": note.text} for note in notes]}


def _by_kind(measured: OfTrace) -> list[dict[int, int | None]]:
    """For each kind of inferences the mean time of each layer."""
    rows = (
        [(row.maybe_integer("layer_index"), row) for row in measured.of(kind.layers)]
        for kind in measured.kinds
    )
    return [
        {index: row.maybe_integer("time_ns") for index, row in mine if index is not None}
        for mine in rows
    ]


def _layer_json(engine: Engine, layer: Layer, title: str) -> dict[str, object]:
    return {
        "index": layer.index,
        "name": layer.name,
        "title": title,
        "kind": layer.kind,
        "type": layer.type,
        "precision": layer.precision,
        "tactic": layer.tactic,
        "stream": layer.stream,
        "region": layer.region,
        "region_index": layer.region_index,
        "optimization_profile": layer.optimization_profile,
        "onnx": list(layer.onnx),
        "origin": layer.origin,
        "trtexec_ns": engine.trtexec_ns[layer.index] if engine.trtexec_ns else None,
        "inputs": [_tensor_json(tensor) for tensor in layer.inputs],
        "outputs": [_tensor_json(tensor) for tensor in layer.outputs],
    }


def _tensor_json(tensor: Tensor) -> dict[str, object]:
    return {
        "name": tensor.name,
        "dimensions": None if tensor.dimensions is None else list(tensor.dimensions),
        "datatype": tensor.datatype,
        "format": tensor.format,
        "bytes": tensor_bytes(tensor),
    }


def _regions_json(measured: OfTrace) -> list[dict[str, object]]:
    """Every Myelin region with its parts, in the order in which they run."""
    keys = ("part", "told_by", "summary", "kernels", "time_ns", "mean_ns", "share_of_region_time")
    return [
        {
            "region": region,
            "kernels": _sum(rows, "kernels"),
            "time_ns": _sum(rows, "time_ns"),
            "mean_ns": _sum(rows, "mean_ns"),
            "parts": [{key: row[key] for key in keys} for row in rows],
        }
        for region, rows in _regions(measured).items()
    ]


def _regions(measured: OfTrace) -> dict[str, list[Row]]:
    """The rows of the table region_parts by region, the costliest region first."""
    found: dict[str, list[Row]] = {}
    for row in measured.of(measured.times.region_parts):
        found.setdefault(row.text("region"), []).append(row)
    return dict(sorted(found.items(), key=lambda item: -_sum(item[1], "time_ns")))


def _sum(rows: Rows, column: str) -> int:
    return sum(row.maybe_integer(column) or 0 for row in rows)


def _precision(engine: Engine, measured: OfTrace | None) -> Rows:
    """The precision figures of the trace, or of the engine file alone if there is no trace or it
    shows no kernel of this engine.
    """
    rows = list(measured.of(measured.times.precision)) if measured else []
    return rows or list(engine_precision_table(engine))


# --- text
# --------------------------------------------------------------------------------------------------


def _heading(engine: Engine, measured: OfTrace | None, room: int) -> list[Line]:
    version = f", TensorRT {engine.tensorrt_version}" if engine.tensorrt_version else ""
    share = (
        f", {percent(measured.share, 1, 1)} of all kernel time"
        if measured and measured.share
        else ""
    )
    lines = [f"{escaped(engine.source)}: {counted(len(engine.layers), 'layer')}{version}{share}"]
    if measured:
        shown = any(row["time_ns"] is not None for row in measured.layers.values())
        lines.append(
            f"times of {escaped(measured.source)}:"
            f" {measured.time_words if shown else 'the trace shows no kernel of this engine'}"
        )
    found = [line for text in lines for line in heading(text, room)]
    return found if measured or engine.trtexec_ns else [*found, *_see(engine, room)]


def _see(engine: Engine, room: int) -> Iterator[Line]:
    """Questions that an engine file alone can answer, and how to get its times."""
    file = shlex.quote(escaped(engine.source))
    commands = (
        [(f"nsysmap layers {file} --not-fused", "what did not fuse")] if engine.detailed else []
    )
    commands += [
        (f"nsysmap graph {file} -o graph.html", "drawn"),
        (f"nsysmap layers {file} report.nsys-rep", "times; or --profile FILE"),
    ]
    fitting = [(command, what) for command, what in commands if columns(command) <= room]
    longest = max((len(command) for command, _ in fitting), default=0)
    for command, what in fitting:
        comment = f"  # {what}"
        yield styled(
            f"{command:<{longest}}{comment}" if longest + len(comment) <= room else command, "dim"
        )


def _order(
    engine: Engine,
    times: Mapping[str, Sequence[int | None]],
    shares: Sequence[float | None],
    sort: Sort,
) -> list[Layer]:
    """The layers by index, by share or, where there is none, by the first column of times (the most
    first), or by name.
    """
    if sort == "name":
        return sorted(engine.layers, key=lambda layer: layer.name)
    column: Sequence[float | None] | None = shares or next(iter(times.values()), None)
    if sort == "index" or column is None:
        return list(engine.layers)
    return sorted(engine.layers, key=lambda layer: -(column[layer.index] or 0))


def _times(engine: Engine, measured: OfTrace | None) -> dict[str, list[int | None]]:
    """Columns of times per layer, by their heading."""
    times: dict[str, list[int | None]] = {}
    if measured:
        known = {index: row.maybe_integer("time_ns") for index, row in measured.layers.items()}
        told = [known.get(layer.index) for layer in engine.layers]
        if any(time is not None for time in told):
            times["mean µs" if measured.kinds else "µs"] = told
            for own, name in zip(_by_kind(measured), measured.kind_names, strict=True):
                times[f"of {name}"] = [own.get(layer.index) for layer in engine.layers]
    if engine.trtexec_ns:
        times["profile µs" if times else "µs"] = list(engine.trtexec_ns)
    return times


def _shares(engine: Engine, measured: OfTrace | None) -> list[float | None]:
    """For each layer its share of all kernel time; empty if the trace shows no kernel of the
    engine.
    """
    rows = measured.layers if measured else {}
    known = {index: row.maybe_real("share_of_all_kernel_time") for index, row in rows.items()}
    return (
        [known.get(layer.index) for layer in engine.layers]
        if any(share is not None for share in known.values())
        else []
    )


def _layer_lines(
    times: Mapping[str, Sequence[int | None]],
    shares: Sequence[float | None],
    order: Sequence[Layer],
    titles: Sequence[str],
    room: int,
) -> list[Line]:
    """One line per layer under a heading; the title and, if there is room, the name take the
    remaining width.
    """
    named = room >= NAMES_FROM
    cells = [
        (
            str(layer.index),
            *(
                ("" if (share := shares[layer.index]) is None else percent(share, 1),)
                if shares
                else ()
            ),
            *(_tenths(column[layer.index]) for column in times.values()),
            layer.kind,
            layer.precision or "",
            shortened(_tactic(layer), _TACTIC_WIDTH) if room < WHOLE else _tactic(layer),
            escaped(titles[layer.index]),
            *((escaped(layer.name),) if named else ()),
        )
        for layer in order
    ]
    figures = ("#", *(("share",) if shares else ()), *times)
    header = (*figures, "kind", "type", "tactic", "layer", *((ENGINES_NAME,) if named else ()))
    return table(header, cells, room, "r" * len(figures) + "llln" + "n" * named)


def _tenths(time_ns: int | None) -> str:
    return "" if time_ns is None else f"{time_ns / 1e3:,.1f}"


def _region_lines(measured: OfTrace, titles: Mapping[str, str], room: int) -> Iterator[list[Line]]:
    """The time of each Myelin region: opaque ones by part, others in one line with their costliest
    layers; ``titles`` are by name.
    """
    regions = _regions(measured)
    whole = _sum(list(measured.of(measured.times.kernel_time)), "time_ns")
    opened = {
        name: rows
        for name, rows in regions.items()
        if all(row["told_by"] == "engine" for row in rows)
    }
    for region, rows in regions.items():
        if region not in opened:
            yield from _opaque_lines(region, rows, measured, whole, room)
    if opened:
        cells = []
        for region, rows in list(opened.items())[:_TOP_REGIONS]:
            costliest = sorted(rows, key=lambda row: -row.integer("time_ns"))[:3]
            words = ", ".join(
                f"{escaped(titles.get(row.text('part'), row.text('part')))}"
                f" {percent(row.real('share_of_region_time'), 1, 0)}"
                for row in costliest
            )
            cells.append(
                (
                    percent(_sum(rows, "time_ns"), whole),
                    _time_cell(rows),
                    f"{len(rows):,}",
                    region,
                    words,
                )
            )
        yield [
            styled("by Myelin region"),
            *table(
                ("share", "µs", "layers", "region", "its costliest layers"), cells, room, "rrrll"
            ),
            *_more(len(opened), _TOP_REGIONS, "regions"),
        ]


def _opaque_lines(
    region: str, rows: Rows, measured: OfTrace, whole: int, room: int
) -> Iterator[list[Line]]:
    """An opaque region by part: first those whose names differ only in numbers, together, then each
    part.

    ``whole`` is the engine's kernel time, and ``room`` the columns there are.
    """
    per = "per inference" if rows[0]["mean_ns"] is not None else "in total"
    told = (
        f"inside {region}: {_time_cell(rows)} µs {per} (mean),"
        f" {percent(_sum(rows, 'time_ns'), whole)} of the engine's kernel time"
    )
    alike: dict[str, list[Row]] = {}
    for row in rows:
        alike.setdefault(_unnumbered(row.text("part")), []).append(row)
    groups = sorted(alike.items(), key=lambda item: -_sum(item[1], "time_ns"))
    lines = wrapped(told, room, indent=0)
    if len(groups) < len(rows):
        cells = [_part_cells(group, measured, name, rows) for name, group in groups[:_TOP_PARTS]]
        lines += table(
            ("share", "µs", "kernels", "what it is", "parts that differ only by number"),
            cells,
            room,
            "rrrln",
        )
        yield [*lines, *_more(len(groups), _TOP_PARTS, "kinds of parts")]
        lines = []
    ordered = sorted(rows, key=lambda row: -row.integer("time_ns"))
    cells = [_part_cells([row], measured, row.text("part"), rows) for row in ordered[:_TOP_PARTS]]
    lines += table(("share", "µs", "kernels", "what it is", "part"), cells, room, "rrrln")
    yield [*lines, *_more(len(rows), _TOP_PARTS, "parts"), *_told_by(rows, room)]


def _unnumbered(part: str) -> str:
    """The part without its numbers: `layer.3` is `layer.*`, `gemm #7` is `gemm`."""
    return _NUMBER.sub("*", _ORDINAL.sub("", part))


def _part_cells(rows: Rows, measured: OfTrace, name: str, region: Rows) -> tuple[str, ...]:
    count = _sum(rows, "kernels")
    per = count / measured.inferences if measured.inferences else count
    summaries = list(dict.fromkeys(row.text("summary").replace(" kernel: ", ": ") for row in rows))
    return (
        percent(_sum(rows, "time_ns"), _sum(region, "time_ns")),
        _time_cell(rows),
        f"{per:,.0f}" if per == round(per) else f"{per:,.1f}",
        shortened(escaped(summaries[0]), _SUMMARY_WIDTH)
        + (f" and {len(summaries) - 1} more" if len(summaries) > 1 else ""),
        escaped(name.removeprefix("$$myelin$$")),
    )


def _time_cell(rows: Rows) -> str:
    """Microseconds per steady-state inference; in total if there are no inferences."""
    means = [row.maybe_integer("mean_ns") for row in rows]
    return microseconds(
        sum(
            row.integer("time_ns") if mean is None else mean
            for row, mean in zip(rows, means, strict=True)
        )
    )


def _more(count: int, shown: int, what: str) -> list[Line]:
    return (
        [styled(f"  and {count - shown:,} more {what}: all of them with --json")]
        if count > shown
        else []
    )


def _told_by(rows: Rows, room: int) -> list[Line]:
    told = {row["told_by"] for row in rows}
    texts = []
    if "kernel" in told:
        texts.append(
            "Numbered parts are named after their kernels, in launch order, because the trace does"
            " not name them."
        )
    if "onnx" in told:
        texts.append(
            "Nodes come from the ONNX model, in the order in which kernels of that kind ran;"
            " products that read the same tensor (query, key, value) are in the model's order."
        )
    return wrapped(" ".join(texts), room, indent=0) if texts else []


def _kind_lines(engine: Engine, times: Mapping[str, Sequence[int | None]]) -> list[Line]:
    counts = Counter(layer.kind for layer in engine.layers)
    spent: Counter[str] = Counter()
    for layer, time_ns in zip(engine.layers, next(iter(times.values()), ()), strict=bool(times)):
        spent[layer.kind] += time_ns or 0
    total = sum(spent.values())
    kinds = sorted(counts, key=lambda kind: (-spent[kind], -counts[kind], kind))
    if not times:
        return [
            styled("by kind"),
            *table(("layers", "kind"), [(f"{counts[kind]}", kind) for kind in kinds], WHOLE, "rl"),
        ]
    where = "profile" if list(times.values()) == [list(engine.trtexec_ns)] else "trace"
    cells = [
        (percent(spent[kind], total), f"{spent[kind] / 1e3:,.1f}", f"{counts[kind]}", kind)
        for kind in kinds
    ]
    told = styled(f"by kind, {total / 1e3:,.1f} µs in the {where} (all layers together)")
    return [told, *table(("share", "µs", "layers", "kind"), cells, WHOLE, "rrrl")]


def _note_lines(engine: Engine, measured: OfTrace | None, room: int) -> list[Line]:
    notes = [*engine.notes, *(measured.notes if measured else ())]
    return [
        line for note in notes for line in wrapped(f"{note.level}: {note.text}", room, indent=0)
    ]


def _name_lines(order: Sequence[Layer], titles: Sequence[str], room: int) -> list[Line]:
    cells = [
        (str(layer.index), escaped(titles[layer.index]), escaped(layer.name)) for layer in order
    ]
    return table(("#", "layer", ENGINES_NAME), cells, room, "rnn")


def _tactic(layer: Layer) -> str:
    """The information in the tactic's name beyond the layer's own name."""
    if not layer.tactic:
        return ""
    decoded = decode(layer.tactic)
    return escaped(
        layer.tactic
        if decoded.family == "unknown"
        else "generated"
        if layer.tactic.startswith("__myl_")
        else summary(decoded)
    )
