"""TensorRT's layer information, as the engine inspector and `trtexec --exportLayerInfo` write it,
read into an Engine.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from nsysmap.core.errors import NsysmapError
from nsysmap.core.note import Note
from nsysmap.core.plain_json import MOST_VALUES, plain_json, values_in
from nsysmap.core.records import dataclass, replaced
from nsysmap.inputs.engine.model import PROFILE, Engine, Layer, Tensor
from nsysmap.inputs.engine.tensor_formats import FLOATING, data_type, elements, layout
from nsysmap.names.decode import layer_kind
from nsysmap.names.match import NAMES_NO_KERNEL
from nsysmap.text.terminal import escaped

REBUILD = (
    "export it again with trtexec --loadEngine=… --profilingVerbosity=detailed"
    " --exportLayerInfo=FILE.json"
)

_LARGEST_EXTENT = 2**48
"""Elements: more than any memory holds, and sizes in bytes still fit 64 bits."""
_SMALL_EXTENT = 1 << 30  # elements: smaller ones need no closer look
_ONLY_WHOLE = {int}  # the types of numbers as JSON has them, no bool among them
_MOST_SYMBOLS = 10_000  # TensorRT numbers symbolic dimensions from -1 down
_MOST_VALUES = 1000  # engines in one file
_UNNAMED = re.compile(r"__mye(\d{1,9})_myl\d+_\d+$")
_REGION = re.compile(r"_myl(\d{1,18})_(\d{1,18})(?:\s*\[profile \d+\])?$")
_COPIED = re.compile(r"Reformatting CopyNode for (?:Input|Output) Tensor \d+ to (.*)")
_JOINED = re.compile(r"\]\s*\[")
_OF_ONNX = "[ONNX Layer: "
# …]__gemm_from_conv1x1
_WRAPPED = re.compile(r"\[[A-Za-z][\w .-]*? Layer: (.*)\](?:__\w+)?$", re.DOTALL)
_SEPARATED = re.compile(r"[,\s]*")
# text in JSON has no line breaks: a comma between one and a closing bracket is not in a name
_LAST_COMMA = re.compile(r",(\s{0,40}\n\s{0,40}[}\]])")
_BARE_NUMBER = re.compile(r"(:\s*)(-?(?:nan|inf))\b", re.IGNORECASE)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_OWN_KEYS = {
    "name", "layertype", "inputs", "outputs", "constants", "tacticname", "streamid", "metadata",
    "origin",
}  # fmt: skip
_NO_ARITHMETIC = {"shape", "signal", "noop", "constant", "reformat", "foreign_node", "loop"}
_ARITHMETIC = FLOATING | {"INT8", "INT4", "UINT8"}
_TEXT_SHOWN = 80  # characters of what stands in place of a layer


@dataclass(frozen=True)
class Document:
    """Layer information before it is interpreted: the rows, the bindings and the version in the
    file.
    """

    rows: Sequence[object]
    bindings: tuple[str, ...] = ()
    tensorrt_version: str | None = None
    notes: tuple[Note, ...] = ()


def parse_json(text: str, source: str) -> Any:
    """The JSON value that the text holds; NaN and infinities come as text, so that no number is
    one.

    Raises NsysmapError if it is no JSON, cut short, too deeply nested or holds a number of hundreds
    of digits.
    TensorRT writes C++'s bare `nan` and `inf` and, in old versions, unescaped control characters,
    and Torch-TensorRT a comma behind the last value of an object: all are read.
    """
    _check_values(text, source)
    for mended in (False, True):
        attempt = _LAST_COMMA.sub(r"\1", _BARE_NUMBER.sub(r'\1"\2"', text)) if mended else text
        try:
            return _without_lone_surrogates(plain_json(attempt, strict=False), attempt)
        except json.JSONDecodeError as error:
            failure = error
        except RecursionError:
            raise NsysmapError(
                source, "is nested too deeply to be TensorRT's layer information", REBUILD
            ) from None
        except ValueError:
            raise NsysmapError(source, "contains a number that is too long", REBUILD) from None
    if failure.pos >= len(failure.doc.rstrip()) or failure.msg.startswith("Unterminated string"):
        raise NsysmapError(
            source,
            f"is cut short: the JSON ends in the middle, at line {failure.lineno}",
            "copy or " + REBUILD,
        )
    raise NsysmapError(
        source,
        f"is not valid JSON ({failure.msg}, line {failure.lineno} column {failure.colno})",
        REBUILD,
    )


def parse_json_values(text: str, source: str) -> list[Any]:
    """The JSON values that stand in the text one after the other, mostly one; errors as
    :func:`parse_json`.
    """
    _check_values(text, source)
    try:
        return [parse_json(text, source)]
    except NsysmapError:
        ends = _ends_of_objects(text)
        if not ends:
            raise
    return [
        parse_json(text[begin:end].lstrip(", \t\r\n"), source)
        for begin, end in zip([0, *ends], ends, strict=False)
    ]


def _check_values(text: str, source: str) -> None:
    if values_in(text) > MOST_VALUES:
        raise NsysmapError(
            source,
            f"holds more than {MOST_VALUES:,} values",
            "give the file of one engine, from --exportLayerInfo",
        )


def _ends_of_objects(text: str) -> list[int]:
    """The positions where the JSON objects end that stand one after the other; none unless that is
    all of the text.
    """
    decoder = json.JSONDecoder(strict=False, parse_constant=str)
    ends: list[int] = []
    at = 0
    while at < len(text) and len(ends) < _MOST_VALUES:
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        ends.append(end)
        at = _SEPARATED.match(text, end).end()  # type: ignore[union-attr]  # it matches nothing too
    return ends if at >= len(text) else []


def _without_lone_surrogates(value: Any, text: str) -> Any:
    """The value with half characters (`"\\ud800"` alone), which no file or terminal can hold,
    replaced by question marks.
    """
    if not _SURROGATE.search(text):
        return value
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", errors="replace"))


def documents_of(value: Any, source: str) -> tuple[Document, ...]:
    """The engines in a parsed JSON value, mostly one: `{"Layers": […]}`, a bare list of layers,
    either one written into a JSON string.

    Several are a list of such objects, or an object that has them by name.
    """
    if isinstance(value, str):
        value = parse_json(value, source)
    if isinstance(value, (list, dict)) and value:
        held = value if isinstance(value, list) else list(value.values())
        if all(map(has_layers, held)):
            return tuple(_document_of(item, source) for item in held)
    return (_document_of(value, source),)


def _document_of(value: Any, source: str) -> Document:
    if isinstance(value, list):
        _refuse_other_lists(value, source)
        return Document(value)
    if not isinstance(value, dict):
        raise NsysmapError(source, f"holds {_described(value)}, not an engine's layers", REBUILD)
    keys = {key.lower(): key for key in value}
    if "layers" not in keys:
        if "name" in keys and "layertype" in keys:
            return Document([value])
        shown = ", ".join(_shown(key) for key in list(value)[:4]) or "no keys"
        raise NsysmapError(
            source,
            f"is other JSON (an object with {shown}), not TensorRT's layer information",
            REBUILD,
        )
    rows = value[keys["layers"]]
    if not isinstance(rows, list):
        raise NsysmapError(source, f'"Layers" is {_described(rows)}, not a list', REBUILD)
    bindings = texts_in(value[keys["bindings"]]) if "bindings" in keys else ()
    return Document(
        rows, bindings or (_names_in(value[keys["i/o tensors"]]) if "i/o tensors" in keys else ())
    )


def engine_of(document: Document, source: str) -> Engine:
    """The engine that the rows describe.  Raises NsysmapError if there is no layer or a row makes
    no sense.
    """
    if not document.rows:
        raise NsysmapError(
            source,
            "lists no layers (an engine built with profilingVerbosity=none hides them)",
            "rebuild it with --profilingVerbosity=detailed",
        )
    layers = [_layer(row, index, source) for index, row in enumerate(document.rows)]
    layers = _with_signals(_with_profiles(layers))
    unlisted = None if document.bindings else _unlisted(layers)
    detailed = any(layer.type is not None or layer.inputs or layer.outputs for layer in layers)
    return Engine(
        source=source,
        layers=tuple(layers),
        detailed=detailed,
        bindings=document.bindings,
        tensorrt_version=document.tensorrt_version,
        notes=(*document.notes, *_notes(layers, detailed, unlisted)),
        excerpt=unlisted is not None,
    )


def _with_signals(layers: list[Layer]) -> list[Layer]:
    """Classifies layers known only by a name such as ``__mye5395_myl0_3``: as signals and waits
    between streams, otherwise as products.

    Myelin numbers what it adds for streams last, in steps of two: in 60 engine files all 464 such
    layers have a neighbour, and none of nine products.
    """
    numbers = {
        int(found[1])
        for layer in layers
        if layer.type is None and (found := _UNNAMED.match(layer.name))
    }
    return [
        replaced(
            layer, kind="signal" if numbers & {int(found[1]) - 2, int(found[1]) + 2} else "gemm"
        )
        if layer.type is None and (found := _UNNAMED.match(layer.name))
        else layer
        for layer in layers
    ]


def _with_profiles(layers: list[Layer]) -> list[Layer]:
    """The layers with their optimization profiles, where there are several.

    A kernel that Myelin generated has no profile in its name (TensorRT 10.16): it is of the profile
    of its region, which other layers or their tensors name.
    """
    of_region: dict[int | None, int] = {}
    for layer in layers:
        if layer.region is None:
            continue
        told = [tensor.name for tensor in layer.inputs if "[profile " in tensor.name]
        told += [tensor.name for tensor in layer.outputs if "[profile " in tensor.name]
        if "[profile " in layer.name:
            told.insert(0, layer.name)
        for name in told:
            if (found := PROFILE.search(name)) is not None:
                of_region[layer.region] = int(found[1])
    if not of_region and all(layer.optimization_profile is None for layer in layers):
        return layers
    return [
        (
            layer
            if layer.optimization_profile is not None
            else replaced(layer, optimization_profile=of_region.get(layer.region, 0))
        )
        for layer in layers
    ]


def onnx_nodes(metadata: str | None) -> tuple[str, ...]:
    """The ONNX nodes that a layer's Metadata names, in its order, each once.

    U+001F stands between fused layers, U+001E inside a pair merged earlier; one-line dumps lose
    both and leave `][`.
    """
    text = metadata or ""
    if text.startswith(_OF_ONNX) and text.endswith("]") and "\x1e" not in text:
        plain = text[len(_OF_ONNX) : -1].split(f"]\x1f{_OF_ONNX}")  # nearly all are so
        if not any("[" in name or "\x1f" in name for name in plain):
            return tuple(dict.fromkeys(filter(None, plain)))
    names: dict[str, None] = {}
    if "[" in text[1:]:
        text = _JOINED.sub("]\x1f[", text)
    for part in text.replace("\x1e", "\x1f").split("\x1f"):
        piece = part.strip()
        if piece.startswith(_OF_ONNX) and piece.endswith("]"):
            name = piece[len(_OF_ONNX) : -1]
        else:
            wrapped = _WRAPPED.match(piece)
            name = wrapped.group(1) if wrapped else piece
        if name:
            names[name] = None
    return tuple(names)


def _unlisted(layers: Sequence[Layer]) -> str | None:
    """A layer that a reformat is named after but that is not listed; None if there is none, as in
    complete listings.

    Regions are named in their `{ForeignNode[…]}` form even where their layers are listed one by
    one.
    """
    bare = [
        PROFILE.sub("", layer.name) if "[profile " in layer.name else layer.name for layer in layers
    ]
    listed = set(bare)
    named = (_COPIED.match(name) for name in bare if name.startswith("R"))
    return next(
        (
            found[1]
            for found in named
            if found is not None and "{ForeignNode" not in found[1] and found[1] not in listed
        ),
        None,
    )


def dla_notes(layers: Iterable[Layer]) -> tuple[Note, ...]:
    """Notes about an engine that runs on a DLA, as far as names show it: TensorRT copies tensors
    `to nvm` and `from nvm` there.
    """
    if not any(layer.name.endswith(" from nvm") for layer in layers):
        return ()
    return (
        Note(
            "warning",
            "part of the engine runs on a DLA (deep learning accelerator), of which nsys reports"
            " have no rows; the times of layers named '... from nvm' include the wait for it",
            brief="part of the engine runs on a DLA, of which nsys has no rows",
        ),
    )


def _notes(layers: Sequence[Layer], detailed: bool, unlisted: str | None) -> Iterator[Note]:
    yield from dla_notes(layers)
    if unlisted is not None:
        yield Note(
            "warning",
            f"the file lists only part of the engine's layers: it refers to {_shown(unlisted)},"
            " which is not among them",
            brief="the engine file lists only part of the engine's layers",
        )
    if not detailed:
        yield Note(
            "warning",
            "the engine file has layer names only (no types, shapes or tactics); rebuild with"
            " --profilingVerbosity=detailed for more",
            brief="the engine file has only names (build: --profilingVerbosity=detailed)",
        )
    repeated = [
        name for name, count in Counter(layer.name for layer in layers).items() if count > 1
    ]
    if repeated:
        yield Note(
            "info",
            f"{len(repeated)} layer names occur more than once in the engine file, such as"
            f" {_shown(repeated[0])}",
        )


def _layer(row: object, index: int, source: str) -> Layer:
    where = f"layer {index}"
    if isinstance(row, str):
        return named_layer(row, index)
    if not isinstance(row, dict):
        raise NsysmapError(
            source, f"{where} is {_described(row)}, neither a name nor an object", REBUILD
        )
    keys = _lowered(tuple(row))
    held = dict(zip(keys, row.values(), strict=True))
    get = held.get
    name = get("name")
    if not isinstance(name, str):
        raise NsysmapError(source, f"{where} has no name", REBUILD)
    kind_of, tactic = _text(get("layertype")), _tactic(_text(get("tacticname")))
    kind = layer_kind(name, kind_of)
    inputs = _tensors(get("inputs"), where, "inputs", source)
    outputs = _tensors(get("outputs"), where, "outputs", source)
    constants = _tensors(get("constants"), where, "constants", source)
    parameters = (
        {}
        if _OWN_KEYS.issuperset(keys)
        else {
            str(key): value
            for key, lower, value in zip(row, keys, row.values(), strict=True)
            if lower not in _OWN_KEYS
        }
    )
    region, region_index, profile = _numbers_in(name)
    return Layer(
        index=index,
        name=name,
        kind=kind,
        type=kind_of,
        inputs=inputs,
        outputs=outputs,
        constants=constants,
        precision=_precision(kind, kind_of, (inputs, outputs), tactic, parameters),
        tactic=tactic,
        stream=_small(held.get("streamid")),
        region=region,
        region_index=region_index,
        optimization_profile=profile,
        onnx=onnx_nodes(_text(held.get("metadata"))),
        origin=_text(held.get("origin")),
        parameters=parameters,
    )


@lru_cache(maxsize=1 << 10)  # the rows of a file have few different sets of keys
def _lowered(keys: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(str(key).lower() for key in keys)


def _tactic(name: str | None) -> str | None:
    """The kernel that a TacticName names, None if it stands for one that is chosen at run time."""
    return None if name in NAMES_NO_KERNEL else name


def named_layer(name: str, index: int) -> Layer:
    """A layer of which only the name is known."""
    region, region_index, profile = _numbers_in(name)
    return Layer(
        index=index,
        name=name,
        kind=layer_kind(name, None),
        region=region,
        region_index=region_index,
        optimization_profile=profile,
    )


def _numbers_in(name: str) -> tuple[int | None, int | None, int | None]:
    """The Myelin region, the instruction in it and the optimization profile in a name."""
    region = _REGION.search(name, max(name.rfind("_myl"), 0)) if "_myl" in name else None
    profile = PROFILE.search(name) if "[profile " in name else None
    return (
        _small(int(region.group(1))) if region else None,
        _small(int(region.group(2))) if region else None,
        _small(int(profile.group(1))) if profile else None,
    )


def _precision(
    kind: str,
    kind_of: str | None,
    tensors: tuple[tuple[Tensor, ...], tuple[Tensor, ...]],
    tactic: str | None,
    parameters: Mapping[str, object],
) -> str | None:
    """The type of the weights, otherwise of the first floating or 8-bit input, otherwise of such an
    output; None if the layer does no arithmetic.

    A fused TF32 gemm shows FP32 tensors; only its tactic (…_tf32f32_…) tells.
    """
    if kind in _NO_ARITHMETIC or (kind == "quantize" and "reformat" in (kind_of or "").lower()):
        return None
    weights = parameters.get("Weights", parameters.get("weights"))
    declared = (
        data_type(_text(weights.get("Type", weights.get("type"))))
        if isinstance(weights, dict)
        else None
    )
    read, written = tensors
    if len(read) > 1 and kind in (
        "gemm",
        "convolution",
        "deconvolution",
    ):  # the operand, not a scale or a bias that is listed before it
        read = tuple(sorted(read, key=lambda tensor: -(elements(tensor) or 0)))
    found = (tensor.datatype for tensor in (*read, *written) if tensor.datatype in _ARITHMETIC)
    precision = declared if declared in _ARITHMETIC else next(found, None)
    if precision == "FP32" and tactic and "tf32" in tactic:
        return "TF32"
    return precision


def _tensors(value: object, layer: str, side: str, source: str) -> tuple[Tensor, ...]:
    if value is None or value == []:
        return ()
    where = f"{layer}, {side}"
    if not isinstance(value, list):
        raise NsysmapError(
            source, f"{where}: {_described(value)} instead of a list of tensors", REBUILD
        )
    return tuple(_tensor(item, where, source) for item in value)


def _tensor(value: object, where: str, source: str) -> Tensor:
    if isinstance(value, str):
        return Tensor(value)
    if not isinstance(value, dict):
        raise NsysmapError(source, f"{where}: {_described(value)} instead of a tensor", REBUILD)
    held: Mapping[str, object] = dict(zip(_lowered(tuple(value)), value.values(), strict=True))
    get = held.get
    name = get("name")
    if not isinstance(name, str):
        raise NsysmapError(source, f"{where}: a tensor has no name", REBUILD)
    both = _text(get("format/datatype"))
    extents = get("dimensions")
    shape = None
    if (
        isinstance(extents, list)
        and set(map(type, extents)) == _ONLY_WHOLE
        and min(extents) >= 0
        and max(extents) < _SMALL_EXTENT
    ):
        shape = tuple(extents)  # nearly all are so
    elif extents is not None:
        shape = _extents(extents, f"{where}, tensor {_shown(name)}", source)
    strides = get("strides")
    known = isinstance(strides, list) and set(map(type, strides)) <= _ONLY_WHOLE
    datatype, form = _type_and_layout(_text(get("datatype")), _text(get("format")), both)
    return _known_tensor(
        name,
        shape,
        datatype,
        form,
        tuple(strides) if known and isinstance(strides, list) else None,
        _text(get("location")),
    )


@lru_cache(maxsize=1 << 10)  # the tensors of a file have few different types and formats
def _type_and_layout(
    told: str | None, form: str | None, both: str | None
) -> tuple[str | None, str | None]:
    return data_type(told) or data_type(both), layout(form or both)


_known_tensor = lru_cache(maxsize=1 << 14)(Tensor)
"""Returns an equal tensor seen before: what one layer writes others read, mostly soon after."""


def _extents(value: object, where: str, source: str) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise NsysmapError(
            source, f"{where}: dimensions are {_described(value)}, not a list", REBUILD
        )
    extents: list[int] = []
    for item in value:
        extent = int(item) if isinstance(item, float) and item.is_integer() else item
        if (
            isinstance(extent, bool)
            or not isinstance(extent, int)
            or not -_MOST_SYMBOLS <= extent <= _LARGEST_EXTENT
        ):
            raise NsysmapError(
                source, f"{where}: impossible dimension {_shown(str(item))}", REBUILD
            )
        extents.append(max(extent, -1))  # old builders number the dynamic ones -2, -3, …
    return tuple(extents)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _small(value: object) -> int | None:
    """The value where it is a whole number that a table can hold."""
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62
        else None
    )


def _refuse_other_lists(rows: list[Any], source: str) -> None:
    """Raises NsysmapError if the list is another file of trtexec, or a list of something else."""
    objects = [row for row in rows if isinstance(row, dict)]
    if any("startComputeMs" in row or "computeMs" in row for row in objects):
        remedy = "give the --exportLayerInfo file, and this one with --times"
        raise NsysmapError(
            source, "is a trtexec --exportTimes file, not an engine's layers", remedy
        )
    if objects and all("values" in row and "dimensions" in row for row in objects):
        raise NsysmapError(
            source,
            "is a trtexec --exportOutput file (what the network computed), not an engine's layers",
            "give the --exportLayerInfo file",
        )
    if objects and is_profile(rows):
        raise NsysmapError(
            source,
            "is a trtexec --exportProfile file, not an engine's layers",
            "give the --exportLayerInfo file, and this one with --profile",
        )
    strange = next((row for row in rows if not isinstance(row, (str, dict))), None)
    if strange is not None or any("Name" not in row and "name" not in row for row in objects):
        raise NsysmapError(source, "is other JSON, not TensorRT's layer information", REBUILD)


def texts_in(value: object) -> tuple[str, ...]:
    """The texts in a list; none for anything else."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _names_in(value: object) -> tuple[str, ...]:
    """The names of a list of tensors, as TensorRT for RTX lists an engine's inputs and outputs
    since 1.5; 1.4 writes `Bindings`.
    """
    rows = value if isinstance(value, list) else []
    return texts_in([row.get("Name") for row in rows if isinstance(row, dict)])


def has_layers(value: object) -> bool:
    """Whether a parsed JSON value is an object with an engine's layers."""
    return isinstance(value, dict) and any(str(key).lower() == "layers" for key in value)


def is_profile(value: Any) -> bool:
    """Whether a parsed JSON value has the form of a trtexec --exportProfile file."""
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return any(("timeMs" in row or "averageMs" in row) and "name" in row for row in rows) or (
        len(rows) == 1 and set(rows[0]) == {"count"}
    )


def _described(value: object) -> str:
    return {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        type(None): "null",
    }.get(type(value), "a number")


def _shown(text: str) -> str:
    """The text for one line of a message: control characters escaped, cut to a readable length."""
    plain = escaped(text)
    return plain if len(plain) <= _TEXT_SHOWN else plain[: _TEXT_SHOWN - 1] + "…"
