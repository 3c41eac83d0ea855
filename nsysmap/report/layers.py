"""What `nsysmap layers` shows: the layers of an engine, with measured times where there are any, in at most 100 columns or as JSON."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nsysmap.base.note import Note
from nsysmap.base.terminal import columns, escaped, shortened
from nsysmap.base.units import counted, microseconds, percent
from nsysmap.engine.model import Engine, Layer, Tensor
from nsysmap.engine.tensor_formats import tensor_bytes
from nsysmap.names.decode import decode, summary
from nsysmap.report import precision as report_precision
from nsysmap.report.precision import Rows
from nsysmap.timing.measured import Measured
from nsysmap.timing.precision import engine_precision_table

WIDTH = 100
_TACTIC_WIDTH = 34
_SHORTEST_NAME = 20
_TOP_PARTS, _TOP_REGIONS = 20, 10
_NUMBER = re.compile(r"(?<![A-Za-z])\d+|(?<=[a-z]{3})\d+")
_ORDINAL = re.compile(r" #\d+$")


@dataclass(frozen=True)
class OfTrace:
    """What a trace measured of the engine."""

    source: str  # the trace's file name
    times: Measured
    notes: tuple[Note, ...]

    @property
    def layers(self) -> dict[int, Mapping[str, object]]:
        """Rows of the engine's layers, by their index."""
        rows = self.times.layers.records()
        return {int(str(row["layer_index"])): row for row in rows if row["engine"] == 0 and row["layer_index"] is not None}

    @property
    def time_words(self) -> str:
        """What the times are."""
        return f"median of {counted(self.times.inferences, 'inference')}" if self.times.inferences else "total over the trace"


def layers_text(engine: Engine, measured: OfTrace | None = None) -> str:
    """The report as text: a heading, one line a layer, what Myelin regions spend, one line a kind, and what the reader must know."""
    times = _times(engine, measured)
    body = _layer_lines(engine, times) if engine.detailed or times else [_name_line(layer) for layer in engine.layers]
    parts = [_heading(engine, measured), body, *(_region_lines(measured) if measured else []), _kind_lines(engine, times)]
    return "\n\n".join("\n".join(part) for part in [*parts, _note_lines(engine, measured)] if part)


def precision_text(engine: Engine, measured: OfTrace | None = None) -> str:
    """Time by data type, tensor cores and conversions: of the engine, of each Myelin region and of each layer."""
    rows = _precision(engine, measured)
    header: tuple[str, ...] = ("share", "µs", "layers", *report_precision.TYPES_HEADER)
    skip = 0 if any(row["time_ns"] is not None for row in rows) else 2  # without times there is no share and no µs
    cells = [cell[skip:] for cell in report_precision.type_cells(rows)]
    parts = [_heading(engine, measured), [report_precision.heading(rows), *_table(header[skip:], cells, "rrrlll"[skip:])]]
    parts.append([line for text in report_precision.sentences(rows) for line in _wrapped(text)])
    regions = [tuple(map(escaped, cell)) for cell in report_precision.region_cells(rows)]
    if regions and not skip:
        parts.append(["by Myelin region", *_table(report_precision.REGIONS_HEADER, regions, "rrrrrrll")])
    by_layer = [(str(index), *cell[skip:], escaped(engine.layers[index].name)) for index, cell in report_precision.layer_cells(rows)]
    header = ("#", *("share", "µs")[skip:], *report_precision.TYPES_HEADER, "layer")
    parts.append(["by layer", *_table(header, by_layer, "r" * (3 - skip) + "llll")])
    return "\n\n".join("\n".join(part) for part in [*parts, _note_lines(engine, measured)] if part)


def layers_json(engine: Engine, measured: OfTrace | None = None, *, precision: bool = False) -> dict[str, object]:
    """The same as one JSON object; times in nanoseconds, sizes in bytes.  What is measured and the precision are there where asked for."""
    rows = measured.layers if measured else {}
    layers = []
    for layer in engine.layers:
        values = _layer_json(engine, layer)
        if measured:
            values |= {key: rows.get(layer.index, {}).get(key) for key in ("time_ns", "share_of_kernel_time", "kernels")}
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
        value |= {"trace": measured.source, "inferences": measured.times.inferences, "regions": _regions_json(measured)}
    if precision:
        named: dict[int, tuple[int | None, str]] = {layer.index: (layer.index, layer.name) for layer in engine.layers}
        value["precision"] = report_precision.precision_json(_precision(engine, measured), named)
    return {**value, "notes": [{"level": note.level, "text": note.text} for note in notes]}


def _layer_json(engine: Engine, layer: Layer) -> dict[str, object]:
    return {
        "index": layer.index,
        "name": layer.name,
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
            "kernels": sum(int(str(row["kernels"])) for row in rows),
            "time_ns": _sum(rows, "time_ns"),
            "mean_ns": _sum(rows, "mean_ns"),
            "parts": [{key: row[key] for key in keys} for row in rows],
        }
        for region, rows in _regions(measured).items()
    ]


def _regions(measured: OfTrace) -> dict[str, list[dict[str, object]]]:
    """The rows of the table region_parts by region, the costliest region first."""
    found: dict[str, list[dict[str, object]]] = {}
    for row in measured.times.region_parts.records():
        if row["engine"] == 0:
            found.setdefault(str(row["region"]), []).append(row)
    return dict(sorted(found.items(), key=lambda item: -_sum(item[1], "time_ns")))


def _sum(rows: Sequence[Mapping[str, object]], column: str) -> int:
    return sum(int(str(row[column])) for row in rows if row[column] is not None)


def _precision(engine: Engine, measured: OfTrace | None) -> Rows:
    """Of the trace; of the engine file alone where there is none, or where it shows no kernel of this engine."""
    rows = [row for row in measured.times.precision.records() if row["engine"] == 0] if measured else []
    return rows or engine_precision_table(engine).records()


# --- text -------------------------------------------------------------------------------------------------------------


def _heading(engine: Engine, measured: OfTrace | None) -> list[str]:
    version = f", TensorRT {engine.tensorrt_version}" if engine.tensorrt_version else ""
    lines = [f"{escaped(engine.source)}: {counted(len(engine.layers), 'layer')}{version}"]
    if measured:
        shown = any(row["time_ns"] is not None for row in measured.layers.values())
        lines.append(f"times of {escaped(measured.source)}: {measured.time_words if shown else 'it shows no kernel of this engine'}")
    return [shortened(line, WIDTH) for line in lines]


def _times(engine: Engine, measured: OfTrace | None) -> dict[str, list[int | None]]:
    """Columns of times per layer, by their heading."""
    times: dict[str, list[int | None]] = {}
    if measured:
        rows = measured.layers
        told = [rows.get(layer.index, {}).get("time_ns") for layer in engine.layers]
        if any(time is not None for time in told):
            times["µs"] = [time if isinstance(time, int) else None for time in told]
    if engine.trtexec_ns:
        times["profile µs" if times else "µs"] = list(engine.trtexec_ns)
    return times


def _layer_lines(engine: Engine, times: Mapping[str, Sequence[int | None]]) -> list[str]:
    """One line a layer under a heading; the name column takes the width that the others leave."""
    rows = [("#", "layer", "kind", "type", "tactic", *times)]
    for layer in engine.layers:
        shown = [_tenths(column[layer.index]) for column in times.values()]
        rows.append((str(layer.index), escaped(layer.name), layer.kind, layer.precision or "", _tactic(layer), *shown))
    widths = [max(columns(row[column]) for row in rows) for column in range(len(rows[0]))]
    widths[4] = min(widths[4], _TACTIC_WIDTH)
    left = WIDTH - sum(widths) + widths[1] - 2 * (len(widths) - 1)
    widths[1] = min(widths[1], max(left, _SHORTEST_NAME))
    return [
        "  ".join(
            _cell(text, width, right=column in (0, 5, 6)) for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _tenths(time_ns: int | None) -> str:
    return "" if time_ns is None else f"{time_ns / 1e3:,.1f}"


def _region_lines(measured: OfTrace) -> Iterator[list[str]]:
    """What each Myelin region spends: opaque ones by part, opened ones in one line with their costliest layers."""
    regions = _regions(measured)
    whole = sum(int(str(row["time_ns"])) for row in measured.times.kernel_time.records() if row["engine"] == 0)
    opened = {name: rows for name, rows in regions.items() if all(row["told_by"] == "engine" for row in rows)}
    for region, rows in regions.items():
        if region not in opened:
            yield from _opaque_lines(region, rows, measured, whole)
    if opened:
        cells = []
        for region, rows in list(opened.items())[:_TOP_REGIONS]:
            costliest = sorted(rows, key=lambda row: -int(str(row["time_ns"])))[:3]
            words = ", ".join(f"{escaped(str(row['part']))} {percent(float(str(row['share_of_region_time'])), 1, 0)}" for row in costliest)
            cells.append((percent(_sum(rows, "time_ns"), whole), _time_cell(rows), f"{len(rows):,}", region, words))
        yield [
            "by Myelin region",
            *_table(("share", "µs", "layers", "region", "its costliest layers"), cells, "rrrll"),
            *_more(len(opened), _TOP_REGIONS, "regions"),
        ]


def _opaque_lines(region: str, rows: Rows, measured: OfTrace, whole: int) -> Iterator[list[str]]:
    """An opaque region by part: first those that are alike but for numbers in their names, then one by one."""
    per = "per inference" if rows[0]["mean_ns"] is not None else "in all"
    heading = f"inside {escaped(region)}: {_time_cell(rows)} µs {per} (mean), {percent(_sum(rows, 'time_ns'), whole)} of all kernel time"
    alike: dict[str, list[Mapping[str, object]]] = {}
    for row in rows:
        alike.setdefault(_unnumbered(str(row["part"])), []).append(row)
    groups = sorted(alike.items(), key=lambda item: -_sum(item[1], "time_ns"))
    lines = _wrapped(heading)
    if len(groups) < len(rows):
        cells = [_part_cells(group, measured, name, rows) for name, group in groups[:_TOP_PARTS]]
        lines += _table(("share", "µs", "kernels", "what it is", "parts that differ by number only"), cells, "rrrll")
        yield [*lines, *_more(len(groups), _TOP_PARTS, "kinds of parts")]
        lines = []
    ordered = sorted(rows, key=lambda row: -int(str(row["time_ns"])))
    cells = [_part_cells([row], measured, str(row["part"]), rows) for row in ordered[:_TOP_PARTS]]
    lines += _table(("share", "µs", "kernels", "what it is", "part"), cells, "rrrll")
    yield [*lines, *_more(len(rows), _TOP_PARTS, "parts"), *_told_by(rows)]


def _unnumbered(part: str) -> str:
    """The part without what numbers it: `layer.3` is `layer.*`, `gemm #7` is `gemm`."""
    return _NUMBER.sub("*", _ORDINAL.sub("", part))


def _part_cells(rows: Rows, measured: OfTrace, name: str, region: Rows) -> tuple[str, ...]:
    count = _sum(rows, "kernels")
    per = count / measured.times.inferences if measured.times.inferences else count
    summaries = list(dict.fromkeys(str(row["summary"]).replace(" kernel: ", ": ") for row in rows))
    return (
        percent(_sum(rows, "time_ns"), _sum(region, "time_ns")),
        _time_cell(rows),
        f"{per:,.0f}" if per == round(per) else f"{per:,.1f}",
        shortened(escaped(summaries[0]), _TACTIC_WIDTH) + (f" and {len(summaries) - 1} more" if len(summaries) > 1 else ""),
        escaped(name.removeprefix("$$myelin$$")),
    )


def _time_cell(rows: Rows) -> str:
    """Microseconds per measured inference; in all where there are no inferences."""
    return microseconds(sum(int(str(row["mean_ns"] if row["mean_ns"] is not None else row["time_ns"])) for row in rows))


def _more(count: int, shown: int, what: str) -> list[str]:
    return [f"  and {count - shown:,} more {what}: all of them with --json"] if count > shown else []


def _told_by(rows: Rows) -> list[str]:
    told = {row["told_by"] for row in rows}
    texts = []
    if "kernel" in told:
        texts.append("A part with a number is what its kernel's name says, in launch order: the trace does not name it.")
    if "onnx" in told:
        texts.append(
            "Nodes are those of the ONNX model, by the order in which kernels of that kind ran; products that read one tensor (query, key, "
            "value) are taken in the model's order."
        )
    return _wrapped(" ".join(texts)) if texts else []


def _kind_lines(engine: Engine, times: Mapping[str, Sequence[int | None]]) -> list[str]:
    counts = Counter(layer.kind for layer in engine.layers)
    spent: Counter[str] = Counter()
    for layer, time_ns in zip(engine.layers, next(iter(times.values()), ()), strict=bool(times)):
        spent[layer.kind] += time_ns or 0
    total = sum(spent.values())
    rows = sorted(counts, key=lambda kind: (-spent[kind], -counts[kind], kind))
    width = max(len(kind) for kind in rows)
    if not times:
        return ["by kind", *(f"  {kind.ljust(width)}  {counts[kind]:>5}" for kind in rows)]
    return [
        f"by kind, {total / 1e3:,.1f} µs in the {'profile' if list(times.values()) == [list(engine.trtexec_ns)] else 'trace'}",
        *(
            f"  {kind.ljust(width)}  {counts[kind]:>5}  {spent[kind] / 1e3:>10,.1f} µs  {spent[kind] / total if total else 0:>6.1%}"
            for kind in rows
        ),
    ]


def _note_lines(engine: Engine, measured: OfTrace | None) -> list[str]:
    notes = [*engine.notes, *(measured.notes if measured else ())]
    return [line for note in notes for line in _wrapped(f"{note.level}: {escaped(note.text)}")]


def _name_line(layer: Layer) -> str:
    return f"{layer.index:>4}  {shortened(escaped(layer.name), WIDTH - 6)}"


def _tactic(layer: Layer) -> str:
    """What the tactic's name says, without what the layer's own name says already."""
    if not layer.tactic:
        return ""
    decoded = decode(layer.tactic)
    return escaped(layer.tactic if decoded.family == "unknown" else "generated" if layer.kind == "myelin_kernel" else summary(decoded))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], aligned: str) -> list[str]:
    """Columns side by side, each l or r; the last two share what the others leave."""
    widths = [max(columns(row[i]) for row in (header, *rows)) for i in range(len(header))]
    left = WIDTH - 2 * len(widths) - sum(widths[:-2])
    if sum(widths[-2:]) > left:
        widths[-2] = min(widths[-2], max(left - widths[-1], left // 2))
        widths[-1] = min(widths[-1], max(left - widths[-2], _SHORTEST_NAME))
    lines = []
    for row in (header, *rows):
        cells = [_cell(text, widths[i], right=aligned[i] == "r") for i, text in enumerate(row)]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines


def _cell(text: str, width: int, *, right: bool) -> str:
    text = shortened(text, width)
    padding = " " * (width - columns(text))
    return padding + text if right else text + padding


def _wrapped(text: str) -> list[str]:
    return [shortened(line, WIDTH) for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)]
