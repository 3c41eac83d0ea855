"""Describes an edit: what it does to which nodes, in which steps, and why one is not made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from nsysmap.core.records import dataclass

Gain = Literal["vanish", "join", "merge", "narrow", "align"]
"""How the time of an edit follows from that of the layers it is about: they vanish, become one
kernel, become one product, compute in a narrower type, or compute aligned channels.
"""


@dataclass(frozen=True)
class Call:
    """One call of the script: a function (``edit.add``, ``np.concatenate``), its arguments, which
    are plain values or calls themselves, and its named arguments.
    """

    function: str
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Edit:
    """One edit of the model."""

    kind: str  # name in the registry
    does: str  # in words
    nodes: tuple[str, ...]  # nodes of the model that it takes away or writes otherwise
    steps: tuple[Call, ...]
    proof: str  # why results stay as they were, in words
    gain: Gain
    # nodes besides that are not changed but no longer separated: they may become one kernel
    beside: tuple[str, ...] = ()
    opset: int = 0  # the least that its operators need
    # it takes away what moves data between nodes, which kept them from being one kernel
    unblocks: bool = False
    # nodes whose results a concatenation joined that the result no longer goes through: a kernel
    # that computed several of them may become several
    parted: tuple[str, ...] = ()
    # of the nodes those that are still computed afterwards: a kernel that computes one stays
    kept: tuple[str, ...] = ()
    # nodes that do afterwards what its nodes did
    instead: tuple[str, ...] = ()
    # products that kernels for tensor cores may not take in the narrower type: rows that do not
    # fill whole vectors, convolutions by groups
    uneven: tuple[str, ...] = ()
    # products of fewer rows than such a kernel computes at a time
    scant: tuple[str, ...] = ()
    growth: float = 1.0  # how many times more bytes and operations its nodes have then


@dataclass(frozen=True)
class Refusal:
    """A place where an edit is not made, and why."""

    kind: str
    nodes: tuple[str, ...]
    reason: str
    layer: str = ""  # of the engine, which the reason is about


@dataclass(frozen=True)
class Unwanted:
    """Why an edit is not worth making."""

    reason: str
    layer: str = ""  # of the engine, which the reason is about


def call(function: str, *arguments: Any, **options: Any) -> Call:
    """A call of the script."""
    return Call(function, arguments, options)
