"""Reads the annotations of CUDA graph nodes that PyTorch 2.12 and later collect while a graph is
captured (torch.cuda.graph_annotations), as JSON.

The format is that of torch.cuda._annotate_cuda_graph_trace: an object whose keys are the ids of
graph nodes (graph id times 2^32 plus the node's number, as in nsys's graphNodeId), each with a list
of annotations, the innermost first; an annotation is a text, or an object with a "name".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nsysmap.core.errors import NsysmapError
from nsysmap.core.plain_json import plain_json

_WRITE = (
    "write it with json.dump({str(node): held for node, held in get_kernel_annotations().items()},"
    " file)"
)
_MOST_BYTES = 256 << 20  # of a file that is read whole
_MOST_TEXT = 200  # characters of a name, and of what else is annotated
_PICKLES = (b"\x80", b"PK\x03\x04")  # of pickle from protocol 2 on, and of torch.save


@dataclass(frozen=True)
class NodeAnnotation:
    """The annotation of one graph node."""

    graph_node_id: int
    name: str
    rest: str  # its other keys, as JSON; empty if there are none


def read_annotations(path: Path) -> tuple[NodeAnnotation, ...]:
    """The annotated nodes of a file, in its order.

    Raises NsysmapError if it cannot be read or is something else.  A pickle is refused: loading it
    could run code.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise NsysmapError(str(path), f"is larger than {_MOST_BYTES >> 20} MiB", _WRITE)
        data = path.read_bytes()
    except OSError as error:
        raise NsysmapError(str(path), str(error.strerror), "give a file") from None
    if data.startswith(_PICKLES):
        raise NsysmapError(str(path), "is a pickle, which could run code when it is loaded", _WRITE)
    try:
        held = plain_json(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise NsysmapError(str(path), "is not JSON", _WRITE) from None
    if not isinstance(held, dict) or not all(key.isascii() and key.isdigit() for key in held):
        raise NsysmapError(
            str(path), "is not an object whose keys are the ids of graph nodes", _WRITE
        )
    return tuple(_node(int(key), value) for key, value in held.items() if int(key) < 1 << 63)


def _node(graph_node_id: int, value: object) -> NodeAnnotation:
    """Merges nested annotations as PyTorch does: a key of a later one replaces that of one before
    it.
    """
    merged: dict[str, object] = {}
    for one in value if isinstance(value, list) else [value]:
        merged |= one if isinstance(one, Mapping) else {"name": one}
    name = merged.pop("name", merged.pop("str", None))
    rest = json.dumps(merged, ensure_ascii=False, default=str) if merged else ""
    told = rest if name is None else name if isinstance(name, str) else json.dumps(name)
    return NodeAnnotation(graph_node_id, told[:_MOST_TEXT], rest[:_MOST_TEXT])
