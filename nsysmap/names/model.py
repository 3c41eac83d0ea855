"""A decoded name: the values that every reader of names returns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

Fields = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class Op:
    """One operation in a name: the code as written, the ONNX operation, its class and how sure that
    is.
    """

    code: str
    op: str  # "unknown" where the tables do not have the code
    cls: str
    evidence: str  # confirmed, aligned, likely, guess, none

    @property
    def word(self) -> str:
        """The operation, or its code where the tables do not have it."""
        return self.op if self.op != "unknown" else self.code


@dataclass(frozen=True, slots=True)
class Pattern:
    """A recognised run of operations: ops[first] to ops[last], both included."""

    name: str
    first: int
    last: int
    text: str
    evidence: str


@dataclass(frozen=True, slots=True)
class KernelName:
    """A decoded name; ``pieces`` joined give back ``name``, ``rest`` is what was not understood."""

    name: str
    family: str
    kind: str  # kernel, layer, range, unknown
    ops: tuple[Op, ...]
    # letters of a Myelin op code: 3 (up to TensorRT 10.8), 4 (from 10.9), None: cannot tell
    generation: int | None
    patterns: tuple[Pattern, ...]
    fields: dict[str, str | int]
    tensor_cores: str  # yes, no, unknown
    rest: str
    pieces: tuple[str, ...]


class Reading(NamedTuple):
    """The reading of a kernel name: its pieces join to the name, and rest is what was not
    understood.
    """

    family: str
    fields: Fields
    tensor_cores: str
    rest: list[str]
    pieces: list[str]


@cache
def compiled(expression: str) -> re.Pattern[str]:
    """A regular expression, compiled when it is first needed: compiling all of them takes longer
    than decoding a name.
    """
    return re.compile(expression, re.ASCII)
