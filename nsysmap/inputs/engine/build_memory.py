"""How much memory an engine needs, as the logs of TensorRT and trtexec say, and the size of its
file.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.plan_header import PLAN_MAGIC
from nsysmap.inputs.engine.tool_file import head_of, is_binary, text_of

_MEBIBYTE = 1 << 20  # bytes
_LINES = (
    # trtexec; TensorRT's own line is rounded to whole mebibytes
    ("engine_bytes", re.compile(r"Created engine with size: ([\d.]+) MiB"), _MEBIBYTE),
    ("engine_bytes", re.compile(r"Loaded engine size: ([\d.]+) MiB"), _MEBIBYTE),
    ("weight_bytes", re.compile(r"Total Weights Memory: (\d+)"), 1),
    ("activation_bytes", re.compile(r"Total Activation Memory: (\d+)"), 1),
    ("activation_bytes", re.compile(r"Allocated activation device memory of size (\d+)"), 1),
    (
        "context_bytes",
        re.compile(r"Created execution context with device memory size: ([\d.]+) MiB"),
        _MEBIBYTE,
    ),
    (
        "context_bytes",
        re.compile(
            r"TensorRT-managed allocation in IExecutionContext creation: CPU [+-]\d+, GPU"
            r" \+(\d+)"
        ),
        _MEBIBYTE,
    ),
)


@dataclass(frozen=True)
class BuildMemory:
    """Sizes in bytes; None where nothing says it."""

    engine_bytes: int | None = None  # the serialized engine
    weight_bytes: int | None = None
    activation_bytes: int | None = None
    context_bytes: int | None = None  # device memory that an execution context allocates

    def or_else(self, other: BuildMemory) -> BuildMemory:
        """These sizes, and those of the other where this one has none."""
        return BuildMemory(
            **{
                one.name: (
                    mine
                    if (mine := getattr(self, one.name)) is not None
                    else getattr(other, one.name)
                )
                for one in fields(BuildMemory)
            }
        )


def memory_in(text: str) -> BuildMemory:
    """The memory figures in a log; of several lines of a kind the first."""
    found: dict[str, int] = {}
    for name, line, unit in _LINES:
        told = line.search(text)
        if told is not None and name not in found:
            found[name] = round(float(told[1]) * unit)
    return BuildMemory(**found)


def memory_of_file(path: str | Path) -> BuildMemory:
    """The memory figures in a file that belongs to a build: a log, or a serialized engine by its
    size; nothing for other files.
    """
    file = Path(path)
    try:
        head = head_of(file)
        if head.startswith(PLAN_MAGIC) or (is_binary(head) and file.suffix in _PLANS):
            return BuildMemory(engine_bytes=file.stat().st_size)
        return BuildMemory() if is_binary(head) else memory_in(text_of(file))
    except (NsysmapError, OSError):
        return BuildMemory()


_PLANS = frozenset({".plan", ".engine", ".trt", ".rtx"})
