"""Finds names of kernels, tactics and Myelin's layers inside lines of text, such as logs and
tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from nsysmap.core.records import dataclass
from nsysmap.names.decode import decode
from nsysmap.names.model import KernelName

_START = re.compile(r"(?<![\w/.:-])(?:void )?[A-Za-z_]")
_CLOSING = {")": "(", "]": "[", "}": "{", ">": "<"}
_TRAILING = ",;:.!?\"'`|"
_VAGUE = frozenset({"unknown", "cuda", "layer", "nvtx", "api"})
_UNTOLD = frozenset({"unknown", "layer", "other"})
_SHORTEST = 6  # characters: shorter words are anybody's
_LONGEST = 4096  # characters of a name in a line of text


@dataclass(frozen=True)
class NameInLine:
    """A name, and where in the line it stands."""

    start: int
    end: int
    decoded: KernelName


def is_name(line: str) -> bool:
    """Whether the line is nothing but one name: a meaningful word, or text that decodes completely
    as a kernel or layer.
    """
    text = line.strip()
    decoded = decode(text)
    if len(text.split()) == 1:
        return bool(decoded.ops) or decoded.family not in _UNTOLD
    return decoded.family not in _VAGUE - {"cuda"} and not decoded.rest


def names_in(line: str) -> Iterator[NameInLine]:
    """The names in the line that show who made them. Words that any text may contain, paths and
    ONNX nodes are left out.
    """
    at = 0
    while (found := _START.search(line, at)) is not None:
        start = found.start()
        end = _end_of(line, start + (5 if found.group().startswith("void ") else 0))
        at = end
        if (
            _SHORTEST <= end - start <= _LONGEST
            and (decoded := _known(line[start:end])) is not None
        ):
            yield NameInLine(start, end, decoded)


@lru_cache(maxsize=4096)
def _known(text: str) -> KernelName | None:
    decoded = decode(text)
    told = decoded.kind in ("kernel", "range") or decoded.family == "myelin"
    return decoded if told and decoded.family not in _VAGUE else None


def _end_of(line: str, start: int) -> int:
    """The position where a name that begins here ends: at a space outside of its brackets, or at a
    bracket that it did not open.
    """
    opened: list[str] = []
    end = start
    for end in range(start, min(len(line), start + _LONGEST)):
        char = line[end]
        if char in "(<[{":
            opened.append(char)
        elif char in _CLOSING and not (char == ">" and line[end - 1] == "-"):
            if not opened or opened.pop() != _CLOSING[char]:
                break
        elif not opened and (char.isspace() or char in "\"'`|,;="):
            break
    else:
        end = min(len(line), start + _LONGEST)
        if opened:  # brackets without an end: up to the first space
            end = next((at for at in range(start, end) if line[at].isspace()), end)
    while end > start + 1 and line[end - 1] in _TRAILING:
        end -= 1
    return end
