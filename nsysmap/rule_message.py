"""A rule's message: a template checked once, filled in for each finding, harmless whatever the names in the trace hold."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Mapping

from nsysmap.tables import Kind
from nsysmap.terminal import escaped, shortened
from nsysmap.units import duration, size

Shown = int | float | str | bool | None

_NUMBER = re.compile(r",?(\.\d)?[f%]|,?d|,")
_LONGEST = 120  # columns for one value: kernel names run to thousands


def check_template(template: str, columns: Mapping[str, Kind]) -> None:
    """ValueError, saying what is wrong, unless every field of the template is one of these columns, shown in a way that fits its kind."""
    for name, spec in _fields(template):
        if name not in columns:
            raise ValueError(f"{{{name}}} is no column of the SQL; it returns {', '.join(sorted(columns))}")
        if not spec:
            continue
        if spec not in ("ns", "bytes") and not _NUMBER.fullmatch(spec):
            raise ValueError(f"{{{name}:{spec}}} is no format; there are :ns, :bytes and number formats such as :.1f :, and :.0%")
        if columns[name] not in ("int", "float"):
            raise ValueError(f"{{{name}:{spec}}} formats a number, and {name} is {columns[name]}")


def fill(template: str, values: Mapping[str, Shown]) -> str:
    """The message for these values; a value that is not there reads "unknown", control characters are escaped."""
    parts = []
    for literal, name, spec, _ in string.Formatter().parse(template):
        parts.append(literal)
        if name is not None:
            parts.append(_shown(values[name], spec or ""))
    return " ".join("".join(parts).split())


def _fields(template: str) -> list[tuple[str, str]]:
    found = []
    for _, name, spec, conversion in string.Formatter().parse(template):  # ValueError of its own on a lone brace
        if name is None:
            continue
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"{{{name}}} is not a plain column name")
        if conversion:
            raise ValueError(f"{{{name}!{conversion}}}: conversions are not allowed")
        found.append((name, spec or ""))
    return found


def _shown(value: Shown, spec: str) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "unknown"
    if isinstance(value, str):
        return shortened(escaped(value), _LONGEST)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if spec == "ns":
        return duration(value)
    if spec == "bytes":
        return size(round(value))
    if spec in (",d", "d"):
        return format(round(value), spec)
    return format(value, spec) if spec or isinstance(value, int) else f"{value:g}"
