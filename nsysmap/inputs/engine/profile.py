"""The times per layer that trtexec measured (`--exportProfile`, or `--dumpProfile` in its log),
matched to an engine's layers.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from dataclasses import replace
from pathlib import Path
from typing import Any

from nsysmap.core.errors import NsysmapError
from nsysmap.core.note import Note
from nsysmap.inputs.engine.layer_info import (
    dla_notes,
    has_layers,
    is_profile,
    named_layer,
    parse_json,
)
from nsysmap.inputs.engine.log import documents_in_log, tensorrt_version
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.tool_file import (
    begins_json_list,
    head_of,
    is_binary,
    refuse_other_files,
    text_of,
)

_NAMES_SHOWN = 3  # in an error
_MEASURE = "measure again with trtexec --exportProfile=FILE"
_EXPECTED = (
    "give the file that trtexec --exportProfile=FILE wrote, or the log of trtexec --dumpProfile"
)
# [I] === Profile (18362 iterations ) ===, then a heading and a row for each layer, and one for
# their total
_TABLE = re.compile(
    r"=== Profile \(\d+ iterations ?\) ===[^\n]*\n[^\n]*\] +Time\(ms\) +Avg\.\(ms\)("
    r" +Median\(ms\))? +Time\(%\) +Layer *\r?\n"
)
# up to TensorRT 8.2 with the layer first: Layer   Time (ms)   Avg. Time (ms)   Time %
_OLD_TABLE = re.compile(
    r"=== Profile \(\d+ iterations ?\) ===[^\n]*\n[^\n]*\] +Layer +Time \(ms\) +Avg\. Time \(ms\)("
    r" +Median Time \(ms\))? +Time %[^\n]*\n"
)
_STAMPED = re.compile(r"\[\d\d/|\[[A-Z]\]|&&&&")  # the first line of a log
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_OLD_TABLE_ROW = re.compile(
    rf"[^\n]*?\[I\] +(?P<name>[^ \r\n][^\r\n]*?) +(?P<numbers>{_NUMBER}(?: +{_NUMBER}){{2,3}})"
    r" *\r?(?:\n|$)"
)
_TABLE_ROW = re.compile(
    rf"[^\n]*?\[I\] +(?P<numbers>{_NUMBER}(?: +{_NUMBER}){{2,3}}) +(?P<name>[^ \r\n][^\r\n]*?)"
    r" *\r?(?:\n|$)"
)


def with_profile(engine: Engine, path: str | Path) -> Engine:
    """The engine with `trtexec_ns` filled from a `--exportProfile` file, matched by name; names
    that repeat are matched in order.

    Rows whose name the engine does not have are counted in a note; where none matches, the profile
    is of another engine: NsysmapError.
    """
    file = Path(path)
    rows = _profile_rows(file)
    times: dict[str, deque[int]] = defaultdict(deque)
    for name, time_ns in rows:
        times[name].append(time_ns)
    filled: list[int | None] = [
        times[layer.name].popleft() if times.get(layer.name) else None for layer in engine.layers
    ]
    left = [name for name, rest in times.items() for _ in rest]
    if rows and len(left) == len(rows):
        raise NsysmapError(
            str(file),
            f"none of its {len(rows)} layers is in {engine.source}",
            "give the profile of the same engine",
        )
    notes = engine.notes
    if left:
        shown = ", ".join(left[:_NAMES_SHOWN]) + (", …" if len(left) > _NAMES_SHOWN else "")
        notes = (
            *notes,
            Note(
                "warning",
                f"{len(left)} of {len(rows)} rows of the profile {file.name} do not match any layer"
                f" of the engine: {shown}",
                brief=f"{len(left)} of {len(rows)} rows of {file.name} match no layer",
            ),
        )
    return replace(engine, trtexec_ns=tuple(filled), notes=notes)


def profile_engine(path: str | Path) -> Engine | None:
    """The layers that a `--exportProfile` file (or the table of `--dumpProfile` in a log that lists
    no layers otherwise) names, with their times, as an engine known by names only; None if it is no
    such file.
    """
    file = Path(path)
    head = head_of(file)
    if is_binary(head):
        return None
    text = text_of(file).strip()
    if not begins_json_list(text) or not is_profile(parse_json(text, str(file))):
        return None if documents_in_log(text) else logged_profile(text, file.name)
    return _named_engine(_profile_rows(file), file.name)


def logged_profile(text: str, source: str) -> Engine | None:
    """The layers of trtexec --dumpProfile's table, with their times, as an engine known by names
    only; None if the text has none.
    """
    rows = _table_rows(text)
    if not rows:
        return None
    note = Note(
        "info",
        "the log lists layers only in its table of times: their names, and no types, tensors or"
        " tactics",
    )
    engine = _named_engine(rows, source)
    return replace(engine, tensorrt_version=tensorrt_version(text), notes=(note, *engine.notes))


def _named_engine(rows: list[tuple[str, int]], source: str) -> Engine:
    layers = tuple(named_layer(name, at) for at, (name, _) in enumerate(rows))
    times = tuple(time for _, time in rows)
    return Engine(source, layers, detailed=False, trtexec_ns=times, notes=dla_notes(layers))


def _table_rows(text: str) -> list[tuple[str, int]] | None:
    """Name and nanoseconds of each layer in the last table of `--dumpProfile`; None if there is
    none.
    """
    found = [
        (list(heading.finditer(text)), row)
        for heading, row in ((_TABLE, _TABLE_ROW), (_OLD_TABLE, _OLD_TABLE_ROW))
    ]
    headings, expression = found[0] if found[0][0] else found[1]
    if not headings:
        return None
    at, median = headings[-1].end(), headings[-1][1] is not None
    rows: list[tuple[str, int]] = []
    while (row := expression.match(text, at)) is not None and row["name"] != "Total":
        rows.append((row["name"], round(float(row["numbers"].split()[2 if median else 1]) * 1e6)))
        at = row.end()
    return rows


def _profile_rows(file: Path) -> list[tuple[str, int]]:
    head = head_of(file)
    refuse_other_files(file, head, "a profile", _MEASURE)
    if is_binary(head):
        raise NsysmapError(str(file), "is a binary file, not a profile", _EXPECTED)
    text = text_of(file).strip()
    if (table := _table_rows(text)) is not None:
        return table
    if _STAMPED.match(text):
        raise NsysmapError(str(file), "has no times of layers", _EXPECTED)
    value = parse_json(text, str(file))
    if has_layers(value):
        raise NsysmapError(str(file), "is an engine's layers, not a profile", _EXPECTED)
    if not is_profile(value):
        raise NsysmapError(str(file), "is not a trtexec --exportProfile file", _EXPECTED)
    runs = next((row["count"] for row in value if isinstance(row, dict) and "count" in row), None)
    if runs is not None and (isinstance(runs, bool) or not isinstance(runs, int) or runs <= 0):
        raise NsysmapError(
            str(file), f"has a count of {str(runs)[:20]} inferences, which is impossible", _MEASURE
        )
    return [
        _profile_row(row, runs, file) for row in value if isinstance(row, dict) and "name" in row
    ]


def _profile_row(row: dict[str, Any], runs: int | None, file: Path) -> tuple[str, int]:
    """Name and nanoseconds per inference; files older than TensorRT 8.4 have no median."""
    for key, divisor in (("medianMs", 1), ("averageMs", 1), ("timeMs", runs)):
        if key in row and divisor is None:
            raise NsysmapError(
                str(file),
                "has total times but no count of the inferences that they cover",
                _MEASURE,
            )
        if key in row and divisor is not None:
            time = row[key]
            if isinstance(time, bool) or not isinstance(time, (int, float)) or not 0 <= time < 1e9:
                raise NsysmapError(str(file), f"the {key} of a layer is not a time", _MEASURE)
            return str(row["name"]), round(time / divisor * 1e6)
    raise NsysmapError(str(file), "a layer has no time", _MEASURE)
