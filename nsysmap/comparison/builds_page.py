"""Lays out the comparison of several builds as text, Markdown, HTML or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsysmap.comparison.builds import Build, BuildGroup, Builds
from nsysmap.core.json_record import Declared, keys, record, record_schema
from nsysmap.core.json_schema import TEXTS, Schema, list_of, object_of
from nsysmap.inputs.engine.build_memory import BuildMemory
from nsysmap.text.page import Page, Section, grid_of, notes_section, tabled
from nsysmap.text.page_lines import page_text
from nsysmap.text.terminal import escaped, told_apart
from nsysmap.text.units import counted, microseconds, percent, range_of, rounded, size

SCHEMA = "nsysmap/builds/1"
_TOP = 30  # groups of nodes shown; JSON has all
_LONGEST_NAME = 24  # columns of a build's name, which heads a column of numbers
_EQUAL = 1.03
"""Layer times up to this factor apart count as equal: those of one engine differ that much from run
to run.
"""
_KEYS: Declared = {
    BuildMemory: keys("engine_bytes weight_bytes activation_bytes context_bytes"),
    Build: keys(
        "name time_ns low_ns high_ns traced layers_ns layers types memory peak_bytes live_bytes"
    ),
    BuildGroup: keys("title groups times_ns layers types best"),
}


def builds_json(found: Builds) -> dict[str, object]:
    """The builds as one JSON object; times in nanoseconds per inference, sizes in bytes."""
    return {
        "schema": SCHEMA,
        "builds": record(found.builds, _KEYS),
        "groups": record(found.groups, _KEYS),
        "best": found.best,
        "best_of_all_ns": found.best_of_all_ns,
        "notes": list(found.notes),
    }


def builds_schema() -> Schema:
    """The JSON Schema of what `builds_json` returns."""
    known: dict[object, Schema] = {BuildMemory: object_of(record_schema(BuildMemory, _KEYS))}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **object_of(
            {
                "schema": {"const": SCHEMA},
                "builds": list_of(object_of(record_schema(Build, _KEYS, known=known))),
                "groups": list_of(object_of(record_schema(BuildGroup, _KEYS))),
                "best": {"type": ["integer", "null"]},
                "best_of_all_ns": {"type": ["integer", "null"]},
                "notes": TEXTS,
            }
        ),
    }


def builds_text(found: Builds, width: int | None = None, *, colour: bool = False) -> str:
    """The builds for a terminal of ``width`` columns."""
    return page_text(page_of_builds(found), width, colour=colour)


def page_of_builds(found: Builds) -> Page:
    """The answer in words, the builds, and the groups with the best build of each."""
    names = told_apart([escaped(one.name) for one in found.builds], _LONGEST_NAME)
    return Page(
        f"{counted(len(found.builds), 'build')} side by side",
        tuple(_answer(found)),
        (
            *(one for one in (_builds(found, names), _groups(found, names)) if grid_of(one)),
            *notes_section(found.notes),
        ),
    )


def _answer(found: Builds) -> Iterator[str]:
    if found.best is None:
        yield "No build has a time: give a report of each, or trtexec --exportProfile."
        return
    best = found.builds[found.best]
    others = [one for one in found.builds if one is not best and one.time_ns is not None]
    told = f"{escaped(best.name)} is the fastest: {rounded(best.time_ns)} per inference"
    if others:
        second = min(others, key=lambda one: one.time_ns or 0)
        told += f", {escaped(second.name)} {rounded(second.time_ns)}"
    yield f"{told}."
    if found.best_of_all_ns is None or best.time_ns is None:
        return
    gain = best.time_ns - found.best_of_all_ns
    if gain > 0:
        yield (
            f"With the best build of each group it would take {rounded(found.best_of_all_ns)} at"
            f" best ({percent(gain, best.time_ns, 0)} less): conversions between the groups, and"
            " fusions across them, are not counted."
        )
    else:
        yield "No other build is better in any group by enough to gain anything."


def _builds(found: Builds, names: Sequence[str]) -> Section:
    header: tuple[str, ...] = ("build", "time", "layers", "products in")
    sizes = {
        "engine file": [one.memory.engine_bytes for one in found.builds],
        "weights": [one.memory.weight_bytes for one in found.builds],
        "activations": [one.memory.activation_bytes for one in found.builds],
        "alive at least": [one.live_bytes for one in found.builds],
        "context": [one.memory.context_bytes for one in found.builds],
        "device memory": [one.peak_bytes for one in found.builds],
    }
    shown = {name: values for name, values in sizes.items() if any(values)}
    rows = tuple(
        (
            name,
            _time(one),
            f"{one.layers}",
            "/".join(one.types),
            *("" if values[at] is None else size(values[at] or 0) for values in shown.values()),
        )
        for at, (name, one) in enumerate(zip(names, found.builds, strict=True))
    )
    return tabled(
        "builds",
        "Time per inference, and memory",
        (*header, *shown),
        rows,
        "lrrl" + "r" * len(shown),
    )


def _time(build: Build) -> str:
    if build.time_ns is None:
        return "unknown"
    if build.low_ns is None or build.high_ns is None:
        return rounded(build.time_ns)
    return str(range_of(build.time_ns, build.low_ns, build.high_ns))


def _best(group: BuildGroup, names: Sequence[str]) -> str:
    """The build with the shortest time, unless another one is about as fast."""
    if group.best is None:
        return ""
    shortest, *others = sorted(one for one in group.times_ns if one is not None)
    return "about equal" if others and others[0] <= _EQUAL * shortest else names[group.best]


def _groups(found: Builds, names: Sequence[str]) -> Section:
    shown = found.groups[:_TOP]
    rows = tuple(
        (
            *("–" if one is None else microseconds(one) for one in group.times_ns),
            _best(group, names),
            f"{group.groups}",
            escaped(group.title),
        )
        for group in shown
    )
    return tabled(
        "groups",
        "By group of ONNX nodes, layer time in µs (the most to gain first)",
        (*names, "best", "groups", "layers"),
        rows,
        "r" * len(names) + "lrn",
        more=len(found.groups) - len(shown),
    )
