"""Divides kernel time into rows that add up: layers that are alike, and kernels without a layer;
also what runs inside regions, and what to call kernels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from nsysmap.answer.model import (
    Answer,
    LayerGroup,
    OtherKernels,
)
from nsysmap.core.records import dataclass
from nsysmap.names.decode import decode
from nsysmap.text.terminal import columns, escaped, told_apart
from nsysmap.text.units import counted, percent, rounded

_LEAST_NAME = 16  # width of a kernel's name if it is shown
_FAMILIES = 3  # of kernels without a layer that are named
_PARTS = 5  # of a region
_SHORT = 48  # characters of a function with template arguments that is shown whole
_TELLING = 2  # words of longer ones
_WORD = re.compile(r"[A-Za-z_]\w+(?!\w*::)")
# Julia's compiler puts a word before a function's name and a number behind it
_JULIA = re.compile(r"^julia_(\w+?)_+\d+$")
_CPP = frozenset(
    {
        "const",
        "operator",
        "lambda",
        "instance",
        "unsigned",
        "void",
        "int",
        "bool",
        "char",
        "long",
        "TensorIteratorBase",
    }
)
_UNKNOWN = "unknown"  # what is said of a name that tells nothing else


@dataclass(frozen=True)
class Cost:
    """Repeated layers, or kernels of one family without a layer: a row of the table of kernel
    time.
    """

    share: float  # of all kernel time
    time_ns: int
    layers: int | None
    what: str  # the layers' kind, or what they compute
    engine: int | None
    name: str  # what they are called
    group: LayerGroup | None  # None for kernels without a layer
    family: str = ""  # of kernels without a layer, where they are of one


def costs_heading(summary: Answer, room: int | None = None) -> str:
    """The heading of `cost_rows`, in at most that many columns."""
    forms = [f"costliest layers, {one}" for one in costs_forms(summary)]
    return next((one for one in forms if room is None or columns(one) <= room), forms[-1])


def costs_of(summary: Answer) -> str:
    """What the shares and times of `cost_rows` refer to."""
    return costs_forms(summary)[0]


def costs_forms(summary: Answer) -> list[str]:
    """The forms of `costs_of`, the longest first."""
    return [f"of {one}" for one in whole_forms(summary)]


def whole_forms(summary: Answer) -> list[str]:
    """The kernel time that they are of, and per what, the longest form first."""
    what = (
        f"{rounded(summary.kernel_ns)} {'visible kernel time' if summary.hidden else 'kernel time'}"
    )
    per = f"per {summary.unit_of_time.short}"
    whose = f"per {whose_unit(summary)}"
    if not summary.kernel_units:
        per = whose = whole_part(summary)
    kinds = (
        sum(kind.mean_ns is not None and kind.told_by_kernels_alone for kind in summary.kinds)
        if summary.kernel_units
        else 0
    )
    if kinds > 1:  # whose rows none of them may have
        both = "both kinds" if kinds == 2 else f"{kinds} kinds"
        forms = [f"{told}, mean over {both}" for told in (f"{what} {whose}", f"{what} {per}")]
        forms.append(f"{rounded(summary.kernel_ns)} mean over {both}")
    else:
        forms = [f"{what} {whose}", f"{what} {per}"]
    forms += [f"{rounded(summary.kernel_ns)}{end}" for end in (f" {per}", "")]
    return forms


def whose_unit(summary: Answer) -> str:
    """The unit of the answer, and where several processes or engines ran, that it is no inference
    of a certain one.
    """
    if processes := several_processes(summary):
        return f"{summary.unit} of {'either' if processes == 2 else 'any'} process"
    engines = {group.engine for group in summary.layers} - {None}
    several = len(engines) > 1 and not summary.unit_of_time.is_pass
    return f"{summary.unit}{' of any engine' if several else ''}"


def several_processes(summary: Answer) -> int:
    """How many processes ran the inferences that have a time; 0 if that is one."""
    timed = [kind.place.process for kind in summary.kinds if kind.mean_ns is not None]
    processes = {one for one in timed if one is not None}
    return len(processes) if len(processes) > 1 else 0


def whole_part(summary: Answer) -> str:
    """What the times of kernels are summed over, if they are not means."""
    return (
        f"in {counted(summary.steady, 'steady inference')}" if summary.units else "over the trace"
    )


def other_costs(summary: Answer, shown: Sequence[Cost]) -> tuple[float, int, int] | None:
    """Share, time and number of layers of all rows of `cost_rows` but these."""
    rest = [cost for cost in cost_rows(summary) if cost not in shown]
    if not rest:
        return None
    return (
        sum(cost.share for cost in rest),
        sum(cost.time_ns for cost in rest),
        sum(cost.layers or 0 for cost in rest),
    )


def cost_rows(summary: Answer, *, families: bool = False) -> list[Cost]:
    """The rows of kernel time, the largest share first; the shares add up to 1. No rows if no layer
    is known.

    Kernels without a layer are one row, or one for each of their ``families``.
    """
    if not summary.layers:
        return []
    found = [
        Cost(
            one.share_of_all_kernel_time,
            one.time_ns,
            one.layers,
            one.does or one.kind,
            one.engine,
            one.title,
            one,
        )
        for one in summary.layers
    ]
    for others in (
        [(one,) for one in summary.other_kernels]
        if families
        else [summary.other_kernels]
        if summary.other_kernels
        else []
    ):
        share, time_ns = (
            sum(one.share_of_all_kernel_time for one in others),
            sum(one.time_ns for one in others),
        )
        found.append(
            Cost(
                share,
                time_ns,
                None,
                f"{others[0].family} kernel" if len(others) == 1 else "",
                None,
                others_name(others),
                None,
                others[0].family if len(others) == 1 else "",
            )
        )
    return sorted(found, key=lambda one: -one.share)


def others_name(others: Sequence[OtherKernels]) -> str:
    """The name of the row of kernels without a layer: their families, the one with the most time
    first.
    """
    if len(others) == 1:
        return (
            f"({others[0].family} kernels without a"
            f" layer{f', {others[0].names} names' if others[0].names > 1 else ''})"
        )
    more = f" and {len(others) - _FAMILIES} more" if len(others) > _FAMILIES else ""
    return f"(without a layer: {', '.join(one.family for one in others[:_FAMILIES])}{more})"


def inside(summary: Answer) -> str:
    """The work of the opaque region, by part; for several regions as shares of all kernel time."""
    if len(summary.regions) > 1:
        return _inside_all(summary)
    told = [
        f"{percent(part.share_of_region_time, 1, 0)}"
        f" {part.name.removeprefix('$$myelin$$')}{f' x {part.parts}' if part.parts > 1 else ''}"
        for region in summary.regions
        for part in region.parts[:_PARTS]
    ]
    return ", ".join(told)


def _inside_all(summary: Answer) -> str:
    shares: dict[str, float] = {}
    parts: Counter[str] = Counter()
    for region in summary.regions:
        for part in region.parts:
            what = " + ".join(part.does_each) or part.name.removeprefix("$$myelin$$")
            shares[what] = (
                shares.get(what, 0.0) + region.share_of_all_kernel_time * part.share_of_region_time
            )
            parts[what] += part.parts
    largest = sorted(shares.items(), key=lambda one: -one[1])
    told = [
        f"{percent(share, 1, 1)} {what}{f' x {parts[what]}' if parts[what] > 1 else ''}"
        for what, share in largest[:_PARTS]
    ]
    more = f" and {len(shares) - _PARTS} more" if len(shares) > _PARTS else ""
    share = percent(sum(region.share_of_all_kernel_time for region in summary.regions), 1, 1)
    return f"{len(summary.regions)} regions, {share} of all kernel time: {', '.join(told)}{more}"


def functions(names: Sequence[str]) -> list[str]:
    """Names of kernels without namespaces, parameters and template arguments, except where only
    these distinguish them; long template arguments are reduced to words that no other kernel of the
    same function has.
    """
    fields = [decode(name).fields for name in names]
    short = [
        _JULIA.sub(r"\1", str(mine.get("function", name)))
        for mine, name in zip(fields, names, strict=True)
    ]
    full = [
        f"{one}<{mine['template']}>" if "template" in mine else one
        for one, mine in zip(short, fields, strict=True)
    ]
    words = [
        [word for word in dict.fromkeys(_WORD.findall(one)) if word not in _CPP] for one in full
    ]
    different = dict(zip(names, zip(short, words, strict=True), strict=True)).values()
    of_function = Counter(one for one, _ in different)
    having = Counter((one, word) for one, mine in different for word in mine)
    told = []
    for one, whole, mine in zip(short, full, words, strict=True):
        own = sorted((word for word in mine if having[one, word] == 1), key=len)[-_TELLING:]
        long = len(whole) > _SHORT and bool(own)
        more = f"{one} … {' '.join(word for word in mine if word in own)}" if long else whole
        told.append(one if of_function[one] == 1 else more)
    meant = Counter(dict(zip(names, told, strict=True)).values())
    return [one if meant[one] == 1 else name for one, name in zip(told, names, strict=True)]


def kernel_titles(kernels: Sequence[tuple[str, str]], room: int) -> list[str]:
    """A title for each kernel, from pairs of its description and its name, in about that many
    columns; kernels of equal descriptions are shown with their names.
    """
    alike: dict[str, list[str]] = {}
    for what, name in kernels:
        alike.setdefault(what, []).append(name)
    named: dict[tuple[str, str], str] = {}
    called = dict(
        zip([name for _, name in kernels], functions([name for _, name in kernels]), strict=True)
    )
    for what, names in alike.items():
        if len(set(names)) > 1 or what == _UNKNOWN:
            short = told_apart(
                [escaped(called[name]) for name in names],
                max(room - columns(what) - 3, _LEAST_NAME),
            )
            named |= {
                (what, name): _titled(what, told) for name, told in zip(names, short, strict=True)
            }
    return [escaped(named.get(kernel, kernel[0])) for kernel in kernels]


def _titled(what: str, called: str) -> str:
    """A kernel's description with its name beside it; the name alone where nothing else is known of
    it.
    """
    if called.startswith("("):
        return f"{what} {called}"
    return f"cuda kernel: {called}" if what == _UNKNOWN else f"{what} ({called})"
