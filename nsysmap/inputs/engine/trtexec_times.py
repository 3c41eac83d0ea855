"""Reads trtexec's measurements without the profiler: an `--exportTimes` file, or the performance
summary in its log.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.layer_info import parse_json
from nsysmap.inputs.engine.tool_file import (
    begins_json_list,
    head_of,
    is_binary,
    refuse_other_files,
    text_of,
)

MEASURES = ("enqueue", "h2d", "gpu_compute", "d2h", "latency", "interval")
"""In trtexec's order: host time of the enqueue, the three parts of the latency on the GPU, their
sum, and the time between two queries.
"""

_EXPECTED = "give the file of trtexec --exportTimes=FILE, or the log of a trtexec run"
_SUMMARY = "=== Performance summary ==="
_TITLES = {
    "Enqueue Time": "enqueue", "H2D Latency": "h2d", "GPU Compute Time": "gpu_compute",
    "GPU Compute": "gpu_compute", "D2H Latency": "d2h",
    "Latency": "latency", "Host Latency": "latency",
}  # fmt: skip
_LINE = re.compile(
    r"^(?:.*?\] )?(?P<title>[A-Z][\w ]*?): (?P<values>min = [\d.]+ ms,.*)$", re.MULTILINE
)
_VALUE = re.compile(r"(min|max|mean|median|percentile\((\d+(?:\.\d+)?)%\)) = ([\d.]+) ms")
_OLD_TITLE = re.compile(r"^(?:.*?\] )?(Host Latency|Enqueue Time|GPU Compute)\s*$")
_OLD_VALUE = re.compile(
    r"^(?:.*?\] )?(min|max|mean|median|percentile): ([\d.]+) ms(?: at ([\d.]+)%)?"
)
_THROUGHPUT = re.compile(r"^(?:.*?\] )?[Tt]hroughput: (\d+(?:\.\d+)?) qps", re.MULTILINE)
_QUERIES = re.compile(r"Timing trace has (\d{1,12}) queries")
_OPTION = re.compile(
    r"^(?:.*?\] )?(CUDA Graph|Separate profiling|Profile|Streams|Inference Streams): (\w+)\s*$",
    re.MULTILINE,
)
_LONGEST_MS = 1e9  # eleven days: no measurement


@dataclass(frozen=True)
class Measure:
    """One time that trtexec measures for each query, in ns; None if missing."""

    median_ns: int | None
    mean_ns: int | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    p99_ns: int | None = None


@dataclass(frozen=True)
class TrtexecTimes:
    """The times of a run of trtexec."""

    source: str  # file name, for messages
    measures: Mapping[str, Measure]  # by the names of MEASURES, those that it tells
    queries: int | None = None
    tensorrt_version: str | None = None
    cuda_graph: bool | None = None  # queries were replays of a CUDA graph
    streams: int | None = None
    # measured while layers were timed one by one, which makes everything longer
    by_layer: bool = False


def read_times(path: str | Path) -> TrtexecTimes:
    """The times in a file.  Raises NsysmapError if it is missing, or holds none."""
    file = Path(path)
    head = head_of(file)
    refuse_other_files(file, head, "trtexec's times", _EXPECTED)
    if is_binary(head):
        raise NsysmapError(str(file), "is a binary file, not trtexec's times", _EXPECTED)
    text = text_of(file)
    found = _summary(text, file.name)
    if found is not None:
        return found
    if not begins_json_list(text.lstrip()):
        raise NsysmapError(str(file), "has no performance summary of trtexec", _EXPECTED)
    return _exported(parse_json(text.strip(), str(file)), file)


def times_in(path: str | Path) -> TrtexecTimes | None:
    """The performance summary in a file that is a log of trtexec; None in one that is not, or
    cannot be read.
    """
    file = Path(path)
    try:
        head = head_of(file)
        return (
            None
            if is_binary(head) or head.lstrip()[:1] == b"{"
            else _summary(text_of(file), file.name)
        )
    except NsysmapError:
        return None


def _exported(value: Any, file: Path) -> TrtexecTimes:
    """One row per query, in ms since the first; TensorRT 8 and 10 write the same keys."""
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    if not rows or not all("computeMs" in row for row in rows):
        raise NsysmapError(str(file), "is other JSON, not trtexec's times", _EXPECTED)
    measures = {"gpu_compute": _spread([_ms(row, "computeMs", file) for row in rows])}
    for name, key in (("h2d", "h2dMs"), ("d2h", "d2hMs"), ("latency", "latencyMs")):
        if all(key in row for row in rows):
            measures[name] = _spread([_ms(row, key, file) for row in rows])
    if all("startEnqMs" in row and "endEnqMs" in row for row in rows):
        measures["enqueue"] = _spread(
            [_ms(row, "endEnqMs", file) - _ms(row, "startEnqMs", file) for row in rows]
        )
        starts = sorted(_ms(row, "startEnqMs", file) for row in rows)
        if len(starts) > 1:
            measures["interval"] = _spread([after - before for before, after in pairwise(starts)])
    return TrtexecTimes(file.name, measures, len(rows))


def _ms(row: Mapping[str, Any], key: str, file: Path) -> float:
    value = row[key]
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 <= value < _LONGEST_MS
    ):
        raise NsysmapError(str(file), f"the {key} of a query is not a time", _EXPECTED)
    return float(value)


def _spread(values_ms: Sequence[float]) -> Measure:
    ordered = sorted(values_ms)
    at_99 = ordered[min(len(ordered) - 1, math.ceil(0.99 * len(ordered)) - 1)]
    return Measure(
        _ns(statistics.median(ordered)),
        _ns(statistics.fmean(ordered)),
        _ns(ordered[0]),
        _ns(ordered[-1]),
        _ns(at_99),
    )


def _ns(value_ms: float) -> int:
    return round(value_ms * 1e6)


def _summary(text: str, source: str) -> TrtexecTimes | None:
    """The last performance summary in a log, of any TensorRT since 7."""
    at = text.rfind(_SUMMARY)
    if at < 0:
        return None
    from nsysmap.inputs.engine.log import tensorrt_version  # few engine files are logs

    end = text.find("\n&&&&", at)
    block = text[at : end if end >= 0 else len(text)]
    measures = {}
    for line in _LINE.finditer(block):
        name = _TITLES.get(line["title"])
        if name is not None and name not in measures:
            measures[name] = _measure(
                [(kind, percent, value) for kind, percent, value in _VALUE.findall(line["values"])]
            )
    measures = measures or _old_measures(block)
    throughput = _THROUGHPUT.search(block)
    if throughput and float(throughput.group(1)) > 0:
        measures["interval"] = Measure(None, mean_ns=_ns(1e3 / float(throughput.group(1))))
    if not measures:
        return None
    before = text[: at + len(_SUMMARY)]
    options = dict(_OPTION.findall(before))
    queries = _QUERIES.findall(before) or _QUERIES.findall(block)
    streams = options.get("Streams") or options.get("Inference Streams") or ""
    return TrtexecTimes(
        source,
        measures,
        int(queries[-1]) if queries else None,
        tensorrt_version(text),
        cuda_graph=None if "CUDA Graph" not in options else options["CUDA Graph"] == "Enabled",
        streams=int(streams) if streams.isdigit() and len(streams) < 9 else None,
        by_layer=options.get("Profile") == "Enabled"
        and options.get("Separate profiling") != "Enabled",
    )


def _measure(values: Sequence[tuple[str, str, str]]) -> Measure:
    held = {
        ("p" + percent if percent else kind): _ns(float(value))
        for kind, percent, value in values
        if _is_time(value)
    }
    return Measure(
        held.get("median"), held.get("mean"), held.get("min"), held.get("max"), held.get("p99")
    )


def _old_measures(block: str) -> dict[str, Measure]:
    """TensorRT 7 writes a title and then a line a value."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    title = ""
    for line in block.split("\n"):
        heading, value = _OLD_TITLE.match(line), _OLD_VALUE.match(line)
        if heading:
            title = _TITLES[heading.group(1)]
        elif value and title:
            kind, number, percent = value.groups()
            found.setdefault(title, []).append((kind, percent or "", number))
    return {name: _measure(values) for name, values in found.items()}


def _is_time(text: str) -> bool:
    try:
        return float(text) < _LONGEST_MS
    except ValueError:
        return False
