"""Layers printed by users' own scripts: JSON in the middle of a log, `--- Layer N ---` dumps, and
Polygraphy's listing of an engine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from nsysmap.inputs.engine.layer_info import Document, texts_in

Line = Callable[[str], dict[str, object] | None]
"""Reads a one-line layer of TensorRT's text form; None if the line is not one."""

_OBJECT = re.compile(r'\{\s*"(Layers|Bindings|Name)"\s*:')
_HEADING = re.compile(
    r"^[ \t]*(?:[-=#*][ \t]*){2,}Layer[ \t]*#?(\d{1,9})\b[^\n]{0,40}?[-=#*]{2,}[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_FIELD = re.compile(r"^\s*([A-Z][A-Za-z/]*)\s*:\s*(.*)$")
_POLYGRAPHY = re.compile(
    r"^(?P<indent>[ \t]*)Layer (?P<number>\d{1,9}) +\| (?P<name>.*) \[Op: (?P<op>[\w.]+)\][ \t]*$",
    re.MULTILINE,
)
_BLACK = re.compile(r"\S")
_TENSOR = re.compile(
    r"\s*(?P<name>.+?) \[(?:dtype=(?P<dtype>\w+), )?shape=\((?P<shape>[-\d, ]*)\)(?:, Format:"
    r" (?P<format>[^\]\n]*))?\](?:,|$)"
)
_TACTIC = re.compile(r"^[ \t]*Tactic(?:Name)? = (\S.*)$", re.MULTILINE)
_MOST_FAILURES = 100  # objects that do not parse, each of which may be as long as the file


def documents_in(text: str, line_layer: Line) -> list[Document]:
    """Every listing of an engine's layers in these forms, in the order of the text; ``line_layer``
    reads a one-line layer.
    """
    found = [
        *_json_documents(text),
        *_headed_documents(text, line_layer),
        *_polygraphy_documents(text),
    ]
    return [document for _, document in sorted(found, key=lambda one: one[0])]


def _json_documents(text: str) -> Iterator[tuple[int, Document]]:
    """JSON objects with Layers, and rows of layers one after the other with nothing but separators
    between.
    """
    decoder = json.JSONDecoder(strict=False, parse_constant=str)
    headed = {_first_after(text, heading.end()) for heading in _HEADING.finditer(text)}
    at = failures = 0
    rows: list[object] = []
    begin = end = 0
    while failures < _MOST_FAILURES and (match := _OBJECT.search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            if (
                match.group(1) != "Name"
            ):  # cut short, or damaged: what is inside is not all of an engine
                break
            failures += 1
            at = match.end()
            continue
        if isinstance(value.get("Layers"), list):
            yield match.start(), Document(value["Layers"], texts_in(value.get("Bindings")))
        elif "LayerType" in value and match.start() not in headed:
            if rows and text[end : match.start()].strip(", \t\r\n[]"):
                yield begin, Document(rows)
                rows = []
            begin = begin if rows else match.start()
            rows.append(value)
            end = at
    if rows:
        yield begin, Document(rows)


def _first_after(text: str, at: int) -> int:
    """The position of the first character that is no white space."""
    found = _BLACK.search(text, at)
    return found.start() if found else len(text)


def _headed_documents(text: str, line_layer: Line) -> Iterator[tuple[int, Document]]:
    """`--- Layer N ---` with what the engine inspector said of it below; a number that does not
    rise begins another engine.
    """
    headings = list(_HEADING.finditer(text))
    rows: list[object] = []
    last = begin = -1
    for number, heading in enumerate(headings):
        end = headings[number + 1].start() if number + 1 < len(headings) else len(text)
        row = _headed_row(text[heading.end() : end], line_layer)
        if row is None:
            continue
        if int(heading.group(1)) <= last and rows:
            yield begin, Document(rows)
            rows = []
        begin = begin if rows else heading.start()
        last = int(heading.group(1))
        rows.append(row)
    if rows:
        yield begin, Document(rows)


def _headed_row(body: str, line_layer: Line) -> object:
    """One layer: JSON, a one-line layer, `Key: value` lines, or a name alone; None for anything
    else.
    """
    stripped = body.strip()
    if stripped[:1] in ("{", '"'):
        try:
            value, _ = json.JSONDecoder(strict=False, parse_constant=str).raw_decode(stripped)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, (dict, str)) else None
    lines = [line for line in stripped.split("\n") if line.strip()]
    if not lines:
        return None
    row = line_layer(lines[0])
    if row is not None:
        return row
    fields = {
        match.group(1): match.group(2).strip()
        for line in lines
        if (match := _FIELD.match(line)) is not None
    }
    if "Name" in fields:
        return {
            key: value
            for key, value in fields.items()
            if key in ("Name", "LayerType", "TacticName", "TacticValue", "StreamId", "Metadata")
        }
    return lines[0].strip() if len(lines) == 1 else None


def _polygraphy_documents(text: str) -> Iterator[tuple[int, Document]]:
    """`polygraphy inspect model ENGINE --show layers attrs`; its listing of a network, whose ops
    are `LayerType.X`, is no engine's.
    """
    found = [match for match in _POLYGRAPHY.finditer(text) if "." not in match["op"]]
    rows: list[object] = []
    begin = 0
    for number, match in enumerate(found):
        if int(match["number"]) == 0 and rows:
            yield begin, Document(rows)
            rows = []
        begin = begin if rows else match.start()
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        rows.append(_polygraphy_row(match["name"], match["op"], text[match.end() : end]))
    if rows:
        yield begin, Document(rows)


def _polygraphy_row(name: str, op: str, body: str) -> dict[str, object]:
    row: dict[str, object] = {"Name": name, "LayerType": op, "Inputs": [], "Outputs": []}
    listed, _, attributes = body.partition("---- Attributes ----")
    at = 0
    for side in ("Inputs", "Outputs"):
        begin = listed.find("{", at)
        at = listed.find("}\n", begin)
        if begin < 0 or at < 0:
            break
        row[side] = list(_polygraphy_tensors(listed[begin + 1 : at]))
    tactic = _TACTIC.search(attributes)
    if tactic:
        value = tactic.group(1).strip()
        row["TacticValue" if value.startswith("0x") else "TacticName"] = value
    return row


def _polygraphy_tensors(text: str) -> Iterator[dict[str, object]]:
    at = 0
    while (
        match := _TENSOR.match(text, at)
    ) is not None:  # where none begins here, none does later: a name may be anything
        at = match.end()
        yield _polygraphy_tensor(match)


def _polygraphy_tensor(match: re.Match[str]) -> dict[str, object]:
    shape = [
        max(int(item), -1)
        for item in match["shape"].replace(" ", "").split(",")
        if re.fullmatch(r"-?\d{1,18}", item)
    ]
    tensor: dict[str, object] = {"Name": match["name"].strip(), "Dimensions": shape}
    if match["dtype"] is not None:
        tensor["Datatype"] = match["dtype"]
    if match["format"] is not None:
        tensor["Format"] = match["format"]
    return tensor
