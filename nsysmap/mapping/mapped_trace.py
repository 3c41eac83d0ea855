"""A trace with every kernel's inference and layer, from a report and engine files: what `nsysmap
map` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap.core.errors import NsysmapError
from nsysmap.core.memory import Narrow
from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import KERNELS
from nsysmap.core.table import Held, IntArray, Table
from nsysmap.core.trace_schema import INFERENCES
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.onnx_model import OnnxModel
from nsysmap.inputs.engine.reader import read_engines_in
from nsysmap.mapping.engine_match import CANNOT_TELL, RAN
from nsysmap.mapping.map_kernels import Mapped, map_kernels
from nsysmap.mapping.order.by_order import inferences_of
from nsysmap.text.units import counted
from nsysmap.trace.inferences.find import Inferences
from nsysmap.trace.inferences.steady import steady_inferences
from nsysmap.trace.inferences.tensorrt_ranges import TensorRtRanges, tensorrt_ranges
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import Reader, open_trace

if TYPE_CHECKING:
    from nsysmap.mapping.selection import Selected, Selection

Given = Engine | str | Path
"""An engine, or the file of one."""

Progress = Callable[[str], None]
"""Receives a short description of the current step."""


@dataclass(frozen=True)
class MappedTrace:
    """A trace with every kernel's inference and layer: what `nsysmap map` writes."""

    trace: Trace
    tensorrt: TensorRtRanges
    engines: tuple[Engine, ...]
    found: Inferences
    mapped: Mapped
    selected: Selected | None = None  # where `trace` is a part of the report only

    def __repr__(self) -> str:
        engines = (
            f" with {', '.join(engine.source for engine in self.engines)}" if self.engines else ""
        )
        counts = (
            f"{counted(len(self.found.table), 'inference')},"
            f" {counted(len(self.trace.kernels), 'kernel')}"
        )
        return f"<MappedTrace of {self.trace.source}{engines}: {counts}>"

    def as_in_report(self, table: Table) -> Table:
        """Converts the table to the report's own numbers of inferences and kernels; they differ if
        only a part of the report was selected.
        """
        return table if self.selected is None else self.selected.as_in_the_whole(table)

    @cached_property
    def kernels(self) -> Table:
        """schema.KERNELS: every kernel with its launch, inference and layer."""
        ran = self.trace.kernels
        beside = {**self.found.membership.columns, **self.mapped.table.columns}
        return ran.with_columns(KERNELS, {**beside, "duration_ns": durations(ran)})

    @cached_property
    def inferences(self) -> Table:
        """schema.INFERENCES, with the engine that ran each."""
        mapped = self.mapped
        return self.found.table.with_columns(
            INFERENCES, {"engine": mapped.engine_of_inference, "engine_doubt": mapped.engine_doubt}
        )

    @cached_property
    def steady(self) -> IntArray:
        """Numbers of the inferences that layer medians are taken over: complete, after the warm-up,
        and with their kernels in the trace.
        """
        shown = self.found.table.ints("kernels") > 0
        steady = steady_inferences(self.found.table)
        return steady[shown[steady]]


def durations(kernels: Table) -> Held:
    """Each kernel's duration. If ends are stored relative to starts, that memory is returned
    without a copy.
    """
    end = kernels.columns["end_ns"]
    if isinstance(end, Narrow) and end.near is not None:
        return replace(end, near=None)
    return kernels.ints("end_ns") - kernels.ints("start_ns")


def read_engines(paths: Sequence[str | Path], *, profile: str | Path | None = None) -> list[Engine]:
    """Reads the engines and names each by as much of its path as distinguishes it from the others;
    a report never names folders otherwise.
    """
    if profile is not None and len(paths) != 1:
        raise NsysmapError(
            str(profile),
            "a profile needs exactly one engine file",
            "give one engine file, or omit the profile",
        )
    names = [Path(path).parts[-1:] for path in paths]
    while len(set(names)) < len(names):
        longer = [
            Path(path).parts[-len(name) - 1 :] if names.count(name) > 1 else name
            for path, name in zip(paths, names, strict=True)
        ]
        if longer == names:
            raise NsysmapError(str(paths[-1]), "is given twice", "give each engine file once")
        names = longer
    return [
        engine
        for path, name in zip(paths, names, strict=True)
        for engine in _engines_in(Path(path), "/".join(name), profile)
    ]


def _engines_in(path: Path, name: str, profile: str | Path | None) -> list[Engine]:
    """The engines that a file lists, mostly one. If there are several, each has its number in its
    name.
    """
    found = read_engines_in(path)
    if profile is not None:
        from nsysmap.inputs.engine.profile import with_profile

        found = (with_profile(found[-1], profile),)
    if len(found) == 1:
        return [replace(found[0], source=name, among="")]
    return [
        replace(one, source=f"{name} (engine {number} of {len(found)})", among=name)
        for number, one in enumerate(found, 1)
    ]


def map_report(  # one parameter an option
    report: str | Path,
    engines: Given | Sequence[Given] = (),
    *,
    model: OnnxModel | None = None,
    reader: Reader = "auto",
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> MappedTrace:
    """Opens a report and maps each of its kernels to an inference and to a layer of these engines
    or engine files.

    ``model`` (from onnx_model.read_model) names the parts of opaque regions.  ``selection``
    restricts the result to a part of the report. Raises NsysmapError for a file that cannot be
    read, and for a selection that is empty.
    """
    given = [engines] if isinstance(engines, (str, Path, Engine)) else engines
    opened = [one for one in given if isinstance(one, Engine)]
    opened += read_engines([one for one in given if not isinstance(one, Engine)])
    trace = open_trace(report, reader=reader, progress=progress)
    return map_trace(trace, opened, model=model, selection=selection, progress=progress)


def map_trace(
    trace: Trace,
    engines: Sequence[Engine],
    *,
    model: OnnxModel | None = None,
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> MappedTrace:
    """Does the same for a trace that was already read. If one file lists several engines, those
    that ran are used.
    """
    tell = progress or silent
    result = _mapped(trace, engines, model, selection, tell)
    ran = _that_ran(result)
    return (
        replace(result, engines=tuple(ran))
        if len(ran) == len(engines)
        else _mapped(trace, ran, model, selection, tell)
    )


def _mapped(
    trace: Trace,
    engines: Sequence[Engine],
    model: OnnxModel | None,
    selection: Selection | None,
    tell: Progress,
) -> MappedTrace:
    tell("finding inferences")
    tensorrt = tensorrt_ranges(trace.nvtx_ranges)
    found, streams = inferences_of(trace, tensorrt, engines)
    selected = None
    if selection is not None:
        from nsysmap.mapping.selection import select

        tell("selecting a part of the report")
        selected = select(trace, tensorrt, found, selection)
        trace, found = selected.trace, selected.found
        tensorrt = tensorrt_ranges(trace.nvtx_ranges)
        streams = streams.of_part(trace.kernels.ints("kernel_id"))
    tell("mapping kernels to layers")
    mapped = map_kernels(trace, tensorrt, found, streams, engines, model)
    return MappedTrace(trace, tensorrt, tuple(engines), found, mapped, selected)


def _that_ran(result: MappedTrace) -> list[Engine]:
    """Every engine given by itself, and of each file that lists several the engines that ran; if
    none is known to have run, those that may have.
    """
    verdicts = result.mapped.engine_fits.text("verdict").list()
    verdict_of = {
        engine.source: verdict for engine, verdict in zip(result.engines, verdicts, strict=True)
    }
    kept = []
    for engine in result.engines:
        like = [
            other.source for other in result.engines if engine.among and other.among == engine.among
        ]
        ran = [source for source in like if verdict_of[source] == RAN]
        perhaps = [source for source in like if verdict_of[source] == CANNOT_TELL]
        if not like:
            kept.append(engine)
        elif engine.source in (ran or perhaps or like):
            note = Note(
                "info",
                f"{engine.among} lists {len(like)} engines: {engine.source} ran in the trace.",
            )
            if not ran:
                note = Note(
                    "warning",
                    f"{engine.among} lists {len(like)} engines, but none of them is known to have"
                    " run in the trace.",
                    brief=f"of {len(like)} engines in {engine.among}, none is known to have run",
                )
            told = () if not ran and engine.source != (perhaps or like)[0] else (note,)
            kept.append(replace(engine, notes=(*engine.notes, *told), among=""))
    return kept


def silent(_text: str) -> None:
    """A Progress that shows nothing."""
