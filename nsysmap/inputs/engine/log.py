"""Layer information inside a log: the one-line layers that trtexec and the builder print, as rows
of the same form as the JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from nsysmap.core.plain_json import plain_json
from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.layer_dumps import documents_in
from nsysmap.inputs.engine.layer_info import Document

# [01/10/2024-21:55:13] [I] [TRT] …, [TensorRT] VERBOSE: …, [TRT] [V] …, # …
_STAMP = re.compile(r"^\s*(?:#\s*)?(?:\[[^\]\n]*\]\s*)*(?:(?:VERBOSE|INFO|WARNING):\s*)?")
_STAMPED = re.compile(r"^\s*\[(?:\d\d/\d\d/\d{4}-|[VIWEF]\]|TRT\]|TensorRT\])")
_DETAILED = re.compile(
    r"Name: (?P<name>.*?), LayerType: (?P<type>[^,]*), Inputs: \[(?P<rest>.*)$", re.DOTALL
)
_TENSOR = re.compile(
    r"\{ Name: (?P<name>.*?)(?:, Location: (?P<location>\w+))?, Dimensions: \[(?P<dimensions>[-\d,"
    r" ]*)\]"
    r"(?:, Strides: \[(?P<strides>[-\d, ]*)\])?(?:, StrideOrder: \[[-\d, ]*\])?"
    r"(?:, Format/Datatype: (?P<both>.{0,512}?)|, Datatype: (?P<datatype>.{0,64}?), Format:"
    r" (?P<format>.{0,512}?))? \}(?=\s*[,\]])"
)
_SIDE = re.compile(r"\], (Outputs|Constants): \[")
_FIELD = re.compile(r", ([A-Z][A-Za-z/]*): ")
_BRIEF = re.compile(r"Layer\((?P<type>\w+)\): (?P<body>.*)$")
_TACTIC = re.compile(r", Tactic: (?P<value>-?\w+)(?: \((?P<name>[^()]*)\))?, ")
_BRIEF_TENSOR = re.compile(
    r"(?P<name>.*?)(?:"
    r" \((?P<type>\w+)\[(?P<square>[-\d,:]*)\]\)|\[(?P<type2>\w+)\((?P<round>[-\d,:]*)\)\])(?:, |$)"
)
_VECTOR = re.compile(r":(\d+)")  # 1,3:4,224,224: channels by four
_VERSION = re.compile(r"\[TensorRT v(\d{4,6})\]|TensorRT version: (\d+(?:\.\d+)+)")


@dataclass
class _Block:
    """The layers printed under one heading."""

    rows: list[object] = field(default_factory=list)
    bindings: list[str] = field(default_factory=list)
    detail: int = 0  # 0 names, 1 brief, 2 detailed


def documents_in_log(text: str) -> list[Document]:
    """The engines whose layers a text lists, in its order; none if it lists none.

    A log may list an engine several times (the builder, then `--dumpLayerInfo`), more or less
    finely: taken are the listings of the finest kind, each once.
    """
    version = tensorrt_version(text)
    found = [
        (block.detail, Document(block.rows, tuple(block.bindings)))
        for block in _blocks(text.split("\n"))
        if block.rows
    ]
    # not splitlines: U+001E and U+001F stand inside lines
    found += [
        (2 if _has_types(document) else 0, document) for document in documents_in(text, _detailed)
    ]
    finest = max((detail for detail, _ in found), default=0)
    different: dict[tuple[str, ...], Document] = {}
    for detail, document in found:
        names = _layer_names(document)
        if detail == finest:
            # the last listing of an engine counts, and is where it stands
            before = different.pop(names, document)
            different[names] = replace(
                document, bindings=document.bindings or before.bindings, tensorrt_version=version
            )
    return list(different.values())


def _has_types(document: Document) -> bool:
    return any(isinstance(row, dict) and "LayerType" in row for row in document.rows)


def _layer_names(document: Document) -> tuple[str, ...]:
    return tuple(str(row.get("Name") if isinstance(row, dict) else row) for row in document.rows)


def tensorrt_version(text: str) -> str | None:
    """TensorRT's version as trtexec's log names it: `v8503` is 8.5.3, `v100900` is 10.9.0."""
    found = _VERSION.search(text)
    if not found:
        return None
    if found.group(2):
        return found.group(2)
    digits = found.group(1)
    major, minor, patch = (
        (digits[:2], digits[2:4], digits[4:])
        if len(digits) == 6
        else (digits[0], digits[1], digits[2:])
    )
    return f"{int(major)}.{int(minor)}.{int(patch or '0')}"


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    block, reading = _Block(), ""
    for line in lines:
        bare = _STAMP.sub("", line.rstrip("\r"), count=1)
        if bare.endswith("Layers:") or bare.endswith("Engine Layer Information:"):
            yield block
            block, reading = _Block(), "layers"
        elif bare.startswith("Bindings:"):
            reading = "bindings"
        elif (row := _detailed(bare)) is not None:
            if block.detail < 2 or reading.endswith("bindings"):
                yield block
                block, reading = _Block(detail=2), "layers"
            block.rows.append(row)
        elif (row := _brief(bare)) is not None:
            if block.detail != 1 or reading.endswith("bindings"):
                yield block
                block, reading = _Block(detail=1), "layers"
            block.rows.append(row)
        elif _STAMPED.match(line):
            reading = ""
        elif reading and bare.strip():
            _plain(block, reading, bare.strip())
        elif reading == "bindings" and block.bindings:
            reading = "after the bindings"
    yield block


def _plain(block: _Block, reading: str, line: str) -> None:
    """A line with a name alone: a layer of a names-only list, or a binding."""
    if reading == "bindings":
        block.bindings.append(line)
    elif reading == "layers" and block.detail == 0:
        block.rows.append(line)


def _detailed(line: str) -> dict[str, object] | None:
    match = _DETAILED.match(line)
    if not match:
        return None
    row: dict[str, object] = {"Name": match["name"], "LayerType": match["type"].strip()}
    rest, metadata = match["rest"], ""
    at = rest.find(", Metadata: ")
    if at >= 0:
        rest, metadata = rest[:at], rest[at + len(", Metadata: ") :]
    elif rest.endswith(", Metadata:"):
        rest = rest[: -len(", Metadata:")]
    side = "Inputs"
    while True:
        turn = _SIDE.search(rest)
        if turn is None:
            break
        row[side] = _tensors(rest[: turn.start() + 1])
        side, rest = turn.group(1), rest[turn.end() :]
    end = _end_of_list(rest)
    row[side] = _tensors(rest[: end + 1])
    row.setdefault("Outputs", [])
    row.update(_fields(rest[end + 1 :]))
    row["Metadata"] = metadata.strip(" ")
    return row


def _end_of_list(text: str) -> int:
    """The position of the `]` that closes a list of tensors whose `[` has been read."""
    at = 0
    for tensor in _found(text):
        if text[at : tensor.start()].strip(" ,").startswith("]"):
            break
        at = tensor.end()
    end = text.find("]", at)
    return end if end >= 0 else len(text)


def _found(text: str) -> Iterator[re.Match[str]]:
    """The matches of `_TENSOR.finditer`, in linear time: a name may be anything, so if none begins
    at the first brace, none does later.
    """
    at = text.find("{ Name: ")
    while at >= 0 and (match := _TENSOR.match(text, at)) is not None:
        yield match
        at = text.find("{ Name: ", match.end())


def _tensors(text: str) -> list[object]:
    tensors: list[object] = []
    for match in _found(text):
        tensor: dict[str, object] = {
            "Name": match["name"],
            "Dimensions": _numbers(match["dimensions"]),
        }
        for key, group in (
            ("Location", "location"),
            ("Format/Datatype", "both"),
            ("Datatype", "datatype"),
            ("Format", "format"),
        ):
            if match[group] is not None:
                tensor[key] = match[group]
        if match["strides"] is not None:
            tensor["Strides"] = _integers(match["strides"])
        tensors.append(tensor)
    return tensors


def _numbers(text: str) -> list[int]:
    """The extents of a tensor; old builders number the dynamic ones -2, -3, …: all become -1."""
    return [max(number, -1) for number in _integers(text)]


def _integers(text: str) -> list[int]:
    return [
        int(item) for item in text.replace(" ", "").split(",") if re.fullmatch(r"-?\d{1,18}", item)
    ]


def _fields(text: str) -> dict[str, object]:
    parts = _FIELD.split(text)
    return {key: _value(value) for key, value in zip(parts[1::2], parts[2::2], strict=True)}


def _value(text: str) -> object:
    """A number, list or object if the text is one in JSON, otherwise the text."""
    text = text.strip()
    if text[:1] in "[{-0123456789" and not text.startswith("0x"):
        try:
            return plain_json(text)
        except (ValueError, RecursionError):
            return text
    return text


def _brief(line: str) -> dict[str, object] | None:
    """`Layer(Type): name, Tactic: 0x…, in[Float(1,3)] -> out[Float(1,3)]`, or with `in
    (Float[1,3])` from TensorRT 8.5 on.
    """
    match = _BRIEF.match(line)
    if not match:
        return None
    body = match["body"]
    row: dict[str, object] = {"LayerType": match["type"]}
    tactic = _TACTIC.search(body)
    if tactic:
        name, rest = body[: tactic.start()], body[tactic.end() :]
        row["TacticValue"] = tactic["value"]
        if tactic["name"]:
            row["TacticName"] = tactic["name"]
    else:
        name, _, rest = body.partition(", ")
    before, _, after = rest.rpartition("-> ")
    row.update(
        {
            "Name": name,
            "Inputs": _brief_tensors(before.strip(" ")),
            "Outputs": _brief_tensors(after.strip(" ")),
        }
    )
    return row


def _brief_tensors(text: str) -> list[object]:
    tensors: list[object] = []
    at = 0
    while (
        match := _BRIEF_TENSOR.match(text, at)
    ) is not None:  # where none begins here, none does later: a name may be anything
        at = match.end()
        shape, datatype = (
            match["square"] if match["square"] is not None else match["round"],
            match["type"] or match["type2"],
        )
        vector = _VECTOR.search(shape)
        form = (
            f"{vector[1]} wide channel vectorized {datatype} format"
            if vector is not None
            else datatype
        )
        tensors.append(
            {
                "Name": match["name"],
                "Dimensions": _numbers(_VECTOR.sub("", shape)),
                "Format/Datatype": form,
            }
        )
    return tensors
