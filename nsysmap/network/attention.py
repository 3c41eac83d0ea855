"""Finds the attention blocks of an engine: fused into one kernel, or split over several, and
possible reasons why.

The conditions for TensorRT's fused attention are those of its developer guide ("MHA fusion") and of
the answers in NVIDIA/TensorRT's issue 2981: compute capability 7.5 or newer; FP16, BF16, INT8 or
FP8; a head size of 16 to 256 that is a multiple of 8; for INT8 a head size of 16, 32 or 64, at most
512 positions, and quantisation before the first product, after the softmax and after the second
product.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from nsysmap.core.engine_schema import ATTENTION, ATTENTION_LAYERS
from nsysmap.core.records import dataclass
from nsysmap.core.table import Table
from nsysmap.inputs.engine.dataflow import Flow, common_path, nearest
from nsysmap.inputs.engine.model import Engine, Layer, Tensor, numbered_engines
from nsysmap.inputs.engine.tensor_formats import elements
from nsysmap.names.decode import decode
from nsysmap.network.operations import operations
from nsysmap.network.work import product_extent

_STEPS = 5  # layers between a product and the softmax: scale, mask, cast, layout
_TYPES = ("FP16", "BF16", "INT8", "FP8")


@dataclass(frozen=True)
class FusionConditions:
    """The known conditions for fusing, by what the files say about each."""

    met: tuple[str, ...]
    unmet: tuple[str, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class AttentionBlock:
    """One attention block; `layers` are (index in the file, role) in the order of the file."""

    layers: tuple[tuple[int, str], ...]
    softmax: int
    fused: bool
    heads: int | None = None
    head_size: int | None = None
    query_length: int | None = None
    key_length: int | None = None
    datatype: str | None = None
    score_bytes: int | None = None
    reference_layer: int | None = None  # index of a fused block with a result of the same size
    conditions: FusionConditions = FusionConditions((), (), ())


def attention_tables(
    engines: Sequence[Engine], *, compute: tuple[int, int] | None = None
) -> tuple[Table, Table]:
    """The tables `attention` and `attention_layers`; `compute` is the device's compute capability
    if the trace gives it.
    """
    blocks: list[dict[str, object]] = []
    members: list[dict[str, object]] = []
    for number, first_id, engine in numbered_engines(engines):
        for block in attention_blocks(engine, compute=compute):
            indices = [index for index, _ in block.layers]
            nodes = dict.fromkeys(node for index in indices for node in engine.layers[index].onnx)
            for position, (index, role) in enumerate(block.layers):
                members.append(
                    {
                        "block_id": len(blocks),
                        "position": position,
                        "layer_id": first_id + index,
                        "role": role,
                    }
                )
            blocks.append(
                {
                    "block_id": len(blocks),
                    "engine": number,
                    "fused": block.fused,
                    "first_layer": first_id + indices[0],
                    "last_layer": first_id + indices[-1],
                    "softmax_layer": first_id + block.softmax,
                    "layers": len(indices),
                    "heads": block.heads,
                    "head_size": block.head_size,
                    "query_length": block.query_length,
                    "key_length": block.key_length,
                    "datatype": block.datatype,
                    "score_bytes": block.score_bytes,
                    "reference_layer": (
                        None if block.reference_layer is None else first_id + block.reference_layer
                    ),
                    "met": "; ".join(block.conditions.met) or None,
                    "unmet": "; ".join(block.conditions.unmet) or None,
                    "unknown": "; ".join(block.conditions.unknown) or None,
                    "place": common_path(nodes),
                    "onnx": ",".join(nodes) or None,
                }
            )
    return Table.of_rows(ATTENTION, blocks), Table.of_rows(ATTENTION_LAYERS, members)


def attention_blocks(
    engine: Engine, *, compute: tuple[int, int] | None = None
) -> list[AttentionBlock]:
    """The blocks in the order of the file; without tensors (a names-only file) only the fused ones
    can be seen.
    """
    flow = engine.flow
    compute = compute or _built_for(engine)
    blocks = [
        AttentionBlock(((layer.index, "fused"),), layer.index, fused=True)
        for layer in engine.layers
        if layer.kind == "attention"
    ]
    taken: set[int] = set()
    for layer in engine.layers:
        if layer.index in taken or layer.kind == "attention" or not operations(layer).softmax:
            continue
        block = _block(engine, flow, layer, compute)
        if block is not None and taken.isdisjoint(index for index, _ in block.layers):
            taken.update(index for index, _ in block.layers)
            blocks.append(block)
    fused: dict[int, list[int]] = {}
    for layer in engine.layers:
        if layer.kind == "attention":
            fused.setdefault(_size(layer), []).append(layer.index)
    return sorted(
        (_with_peer(engine, block, fused) for block in blocks),
        key=lambda block: block.layers[0][0],
    )


def _with_peer(
    engine: Engine, block: AttentionBlock, fused: Mapping[int, Sequence[int]]
) -> AttentionBlock:
    """Adds the nearest fused block whose result has as many elements; ``fused`` has the blocks by
    that number.
    """
    if block.fused:
        return block
    values = next(index for index, role in block.layers if role == "values")
    wanted = {_size(engine.layers[values]), _size(engine.layers[block.layers[-1][0]])} - {0}
    found = (nearest(fused.get(size, ()), values) for size in wanted)
    peers = sorted(index for index in found if index is not None)
    return replace(block, reference_layer=nearest(peers, values))


def _built_for(engine: Engine) -> tuple[int, int] | None:
    """The newest compute capability that a tactic was made for, which the device has at least; None
    if no tactic shows one.
    """
    told = [
        str(decode(layer.tactic).fields.get("arch", "")) for layer in engine.layers if layer.tactic
    ]
    numbers = [
        int(found.group(1)) for arch in told if (found := re.fullmatch(r"sm(\d{2,3})[a-z]?", arch))
    ]
    return divmod(max(numbers), 10) if numbers else None


def _block(
    engine: Engine, flow: Flow, softmax: Layer, compute: tuple[int, int] | None
) -> AttentionBlock | None:
    """The block around a softmax, with the products that write its scores and read its
    probabilities; None if one is missing.
    """
    before = _towards_product(engine, flow.writers, softmax)
    after = _towards_product(engine, flow.readers, softmax)
    if before is None or after is None or before[-1] == after[-1]:
        return None
    scores, values = engine.layers[before[-1]], engine.layers[after[-1]]
    if not _two_operands(scores) or not _carries(engine, before, after):
        return None
    roles = {softmax.index: "softmax", scores.index: "scores", values.index: "values"}
    for index in (*before[:-1], *after[:-1]):
        done = operations(engine.layers[index])
        roles[index] = (
            "movement"
            if done.movement or done.cast
            else "softmax"
            if "softmax-normalize" in done.patterns
            else "pointwise"
        )
    for index in flow.readers.get(
        values.index, ()
    ):  # a division by the sums of the softmax that was put off until after the product
        if (
            index in flow.readers.get(softmax.index, ())
            and not operations(engine.layers[index]).product
        ):
            roles.setdefault(index, "softmax")
    core = set(roles)
    for index in _movers_around(engine, flow, scores, values):
        roles.setdefault(index, "movement")
    shape = scores.outputs[0].dimensions if scores.outputs else None
    head = _head_size(engine, flow, scores, values)
    datatype = scores.inputs[0].datatype if scores.inputs else None
    rows, columns = shape[-2:] if shape is not None and len(shape) > 1 else (-1, -1)
    known = len(shape or ()) > 1 and elements(scores.outputs[0]) is not None
    block = AttentionBlock(
        layers=tuple(sorted(roles.items())),
        softmax=softmax.index,
        fused=False,
        heads=prod(shape[:-2]) if known and shape is not None else None,
        head_size=head,
        query_length=rows if rows >= 0 else None,
        key_length=columns if columns >= 0 else None,
        datatype=datatype,
        score_bytes=flow.bytes_kept(core),
    )
    inner = core - {
        values.index,
        *(index for index in core if index in flow.readers.get(values.index, ())),
    }
    inside_only = not any(
        _reads_scores(engine.layers[index], engine.layers[reader], scores)
        for index in inner
        for reader in flow.readers.get(index, ())
        if reader not in core
    )
    conditions = _conditions(
        block, engine, compute, scores_stay_inside=inside_only and not flow.leaves & inner
    )
    return replace(block, conditions=conditions)


def _reads_scores(writer: Layer, reader: Layer, scores: Layer) -> bool:
    """Whether a reader takes scores or probabilities from a layer, not only something smaller that
    it computes besides, such as a mask.
    """
    size = elements(scores.outputs[0]) if scores.outputs else None
    read = {tensor.name for tensor in reader.inputs}
    taken = [tensor for tensor in writer.outputs if tensor.name in read]
    return not taken or size is None or any(elements(tensor) in (None, size) for tensor in taken)


def _towards_product(
    engine: Engine, neighbours: dict[int, tuple[int, ...]], softmax: Layer
) -> list[int] | None:
    """The way from the softmax to the nearest product, the product last; passes only layers that a
    fused kernel could take in.
    """
    if operations(softmax).product:
        return [softmax.index]
    ways: list[list[int]] = [[index] for index in neighbours.get(softmax.index, ())]
    for _ in range(_STEPS):
        longer: list[list[int]] = []
        for way in sorted(ways, key=lambda path: -_size(engine.layers[path[-1]])):
            layer = engine.layers[way[-1]]
            if operations(layer).product and layer.kind != "convolution":
                return way
            if operations(layer).fusable or layer.kind in ("reformat", "quantize", "noop"):
                longer += [
                    [*way, index] for index in neighbours.get(layer.index, ()) if index not in way
                ]
        ways = longer
    return None


def _size(layer: Layer) -> int:
    return max((elements(tensor) or 0 for tensor in layer.outputs), default=0)


def _two_operands(product: Layer) -> bool:
    """Whether a product multiplies two activations, as far as the file shows; a layer with weights
    does not.

    Files that list a fused operand once show one input: a batch of products (heads) then tells it
    from a linear layer.
    """
    if "Weights" in product.parameters:
        return False
    if any(
        len(tensor.dimensions or ()) > 1 and (elements(tensor) or 0) > 1 and not _scalar(tensor)
        for tensor in product.constants
    ):
        return len(product.inputs) > 1
    operands = [
        tensor
        for tensor in product.inputs
        if len(tensor.dimensions or ()) > 1 and not tensor.name.endswith("_dconst")
    ]
    if len(operands) > 1:
        return True
    shape = product.outputs[0].dimensions if product.outputs else None
    return shape is not None and len(shape) > 3 and prod(shape[:-2]) != 1


def _scalar(tensor: Tensor) -> bool:
    return tensor.dimensions is not None and prod(tensor.dimensions) == 1


def _carries(engine: Engine, before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether scores and probabilities keep their number of elements from product to product, as
    far as the file shows.
    """
    sizes: set[int] = set()
    for index in (*before, *after[:-1]):
        outputs = engine.layers[index].outputs
        size = elements(outputs[0]) if outputs else None
        if size is not None:
            sizes.add(size)
    return len(sizes) <= 1


def _movers_around(engine: Engine, flow: Flow, scores: Layer, values: Layer) -> Iterable[int]:
    """Layers that do nothing but move data into the two products, or out of the second, for no
    other reader.
    """
    products = {scores.index, values.index}
    for index in dict.fromkeys(
        (*flow.writers.get(scores.index, ()), *flow.writers.get(values.index, ()))
    ):
        done = operations(engine.layers[index])
        if (done.movement or done.cast) and set(flow.readers.get(index, ())) <= products:
            yield index
    after = flow.only_reader(values.index)
    if after is not None and (
        operations(engine.layers[after]).movement or operations(engine.layers[after]).cast
    ):
        yield after


def _head_size(engine: Engine, flow: Flow, scores: Layer, values: Layer) -> int | None:
    """The extent that the scores sum over: from the dimensions of the first product, otherwise the
    columns of the second; a dynamic batch does not matter.
    """
    shape = scores.outputs[0].dimensions if scores.outputs else None
    if shape is None or not scores.inputs:
        return None
    written = [
        tensor.dimensions
        for index in flow.writers.get(scores.index, ())
        for tensor in engine.layers[index].outputs
    ]
    read = [tensor.dimensions for tensor in scores.inputs if len(tensor.dimensions or ()) > 1]
    left = [dims for dims in (*read[:1], *written[:1]) if dims]
    if elements(scores.outputs[0]) is not None:
        whole = [dims for dims in left if min(dims) >= 0]
        summed = product_extent(
            shape, whole, [dims for dims in read[1:] if dims is not None and min(dims) >= 0]
        )
        if summed is not None:
            return summed
    result = values.outputs[0].dimensions if values.outputs else None
    lined_up = [
        dims[-1]
        for dims in (*left, result)
        if dims and len(dims) == len(shape) and dims[:-1] == shape[:-1] and dims[-1] > 0
    ]
    return lined_up[0] if lined_up else None


def _conditions(
    block: AttentionBlock,
    engine: Engine,
    compute: tuple[int, int] | None,
    *,
    scores_stay_inside: bool,
) -> FusionConditions:
    held: dict[str, bool | None] = {
        "compute capability 7.5 or newer": None if compute is None else compute >= (7, 5),
        f"data type FP16, BF16, INT8 or FP8 (here {block.datatype or 'not in the file'})": (
            None if block.datatype is None else block.datatype in _TYPES
        ),
        f"head size 16 to 256 (here {_told(block.head_size)})": (
            None if block.head_size is None else 16 <= block.head_size <= 256
        ),
        f"head size a multiple of 8 (here {_told(block.head_size)})": (
            None if block.head_size is None else block.head_size % 8 == 0
        ),
        "nothing else reads the scores": scores_stay_inside,
    }
    if block.datatype == "INT8":
        held |= _int8_conditions(block, engine)
    return FusionConditions(
        *(
            tuple(text for text, state in held.items() if state is wanted)
            for wanted in (True, False, None)
        )
    )


def _int8_conditions(block: AttentionBlock, engine: Engine) -> dict[str, bool | None]:
    longest = (
        None
        if block.query_length is None or block.key_length is None
        else max(block.query_length, block.key_length)
    )
    values = next(engine.layers[index] for index, role in block.layers if role == "values")
    read = values.inputs[0].datatype if values.inputs else None
    wrote = values.outputs[0].datatype if values.outputs else None
    return {
        f"INT8: head size 16, 32 or 64 (here {_told(block.head_size)})": (
            None if block.head_size is None else block.head_size in (16, 32, 64)
        ),
        f"INT8: at most 512 positions (here {_told(longest)})": (
            None if longest is None else longest <= 512
        ),
        "INT8: quantised before the first product": True,
        "INT8: quantised after the softmax": None if read is None else read == "INT8",
        "INT8: quantised after the second product": None if wrote is None else wrote == "INT8",
    }


def _told(number: int | None) -> str:
    return "not in the file" if number is None else str(number)
