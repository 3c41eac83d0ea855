"""The engine as read: its layers, their tensors, and what the file says about each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from nsysmap.core.note import Note
from nsysmap.core.records import dataclass

if TYPE_CHECKING:
    import networkx

    from nsysmap.inputs.engine.dataflow import Flow

PROFILE = re.compile(r" ?\[profile (\d{1,18})\]")
"""The suffix that TensorRT adds to the names of layers and tensors of the second and later
optimization profiles.
"""

Link = tuple["Layer", "Layer", "Tensor"]

LAYER_KINDS = (
    "convolution", "deconvolution", "gemm", "attention", "foreign_node", "myelin_kernel",
    "pointwise", "activation", "scale", "softmax",
    "normalization", "reduce", "pooling", "reformat", "shuffle", "slice", "concat", "gather",
    "scatter", "resize", "topk", "nms", "cast",
    "quantize", "constant", "plugin", "shape", "signal", "loop", "noop", "other", "unknown",
)  # fmt: skip
"""What ``Layer.kind`` can be.  ``foreign_node`` is an opaque region; ``myelin_kernel`` one kernel
that Myelin generated (kgen, fusion, runtime_fusion) and that holds no product: one with a product
is of that product's kind; ``signal`` also a jump between instructions; ``other`` a type that we do
not class; ``unknown`` a layer of which the file gives the name only and the name does not tell.
"""


@dataclass(frozen=True)
class Tensor:
    """A tensor that a layer reads or writes."""

    name: str
    dimensions: tuple[int, ...] | None = None  # -1 is a dynamic extent
    datatype: str | None = None  # see engine.tensor_formats.TYPE_BITS
    format: str | None = None  # the layout, as the file says it
    strides: tuple[int, ...] | None = None
    location: str | None = None  # Device or Host, where the file tells


@dataclass(frozen=True)
class Layer:
    """One row of an engine file."""

    index: int
    name: str
    kind: str
    type: str | None = None
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    # weights and the like, where the file lists them apart (TensorRT 11.3)
    constants: tuple[Tensor, ...] = ()
    precision: str | None = None  # data type it computes in, where the file tells
    tactic: str | None = None
    stream: int | None = None
    region: int | None = None  # R of _myl<R>_<i>
    region_index: int | None = None  # i of _myl<R>_<i>
    optimization_profile: int | None = None
    onnx: tuple[str, ...] = ()  # ONNX nodes, from Metadata
    origin: str | None = None  # of a reformat
    # everything else the row holds, as in the file
    parameters: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Engine:
    """The layers of one TensorRT engine."""

    source: str  # file name, for messages
    layers: tuple[Layer, ...]
    detailed: bool  # False: names only
    bindings: tuple[str, ...] = ()  # names of the engine's inputs and outputs
    tensorrt_version: str | None = None
    trtexec_ns: tuple[int | None, ...] = ()  # per layer, median time from --exportProfile
    notes: tuple[Note, ...] = ()  # what the reader must know about this file
    among: str = ""  # the file, where it lists several engines
    # it names layers that it does not list, so what nothing in it writes may yet be no input
    excerpt: bool = False

    def binds(self, tensor: str) -> bool:
        """Whether a tensor of this name is an input or an output of the engine, in any optimization
        profile.
        """
        return tensor in self._bound or PROFILE.sub("", tensor) in self._bound

    @cached_property
    def _bound(self) -> frozenset[str]:
        return frozenset(self.bindings)

    @cached_property
    def flow(self) -> Flow:
        """The layer that writes each tensor, and the layers that read it (see dataflow.flow_of)."""
        from nsysmap.inputs.engine.dataflow import flow_of

        return flow_of(self)

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Producer, consumer and the tensor that passes between them (see dataflow.links)."""
        from nsysmap.inputs.engine.dataflow import links

        return tuple(links(self))

    def to_networkx(self) -> networkx.DiGraph[int]:
        """The dataflow as a networkx graph: nodes are layers by index, edges the tensors between
        them (see dataflow.engine_graph).
        """
        from nsysmap.inputs.engine.dataflow import engine_graph

        return engine_graph(self)

    def __repr__(self) -> str:
        return f"<Engine {self.source}: {len(self.layers):,} layers>"


def first_layers(engines: Sequence[Engine]) -> list[int]:
    """The layer_id of each engine's first layer (layers are numbered over all engines), and last
    the number of all layers.
    """
    return [0, *accumulate(len(engine.layers) for engine in engines)]


def numbered_engines(engines: Sequence[Engine]) -> Iterator[tuple[int, int, Engine]]:
    """Each engine after its number and the layer_id of its first layer."""
    return zip(range(len(engines)), first_layers(engines), engines, strict=False)
