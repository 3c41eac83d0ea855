"""One side of a comparison: a capture with its engines, or an engine file or a profile of trtexec
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from nsysmap.analysis import Analysis, analyze_mapped, engine_outcomes, engine_tables_with_profile
from nsysmap.comparison.noise import FEWEST
from nsysmap.comparison.pace import Pace, pace_of
from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, Table, Text
from nsysmap.inputs.engine.model import Engine, Layer, first_layers
from nsysmap.inputs.engine.onnx_model import OnnxModel
from nsysmap.inputs.engine.profile import profile_engine
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.inputs.engine.trtexec_times import times_in
from nsysmap.mapping.given_files import is_likely_report
from nsysmap.mapping.mapped_trace import Progress, map_report, read_engines
from nsysmap.network.model_nodes import of_model, with_model_nodes
from nsysmap.network.tables import engine_titles
from nsysmap.network.titles import called
from nsysmap.rules.finding import Outcome
from nsysmap.trace.open_report import Reader


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    source: str
    engines: tuple[Engine, ...]
    # of the analysis; for an engine file alone only those that need no trace
    tables: Mapping[str, Table]
    outcomes: tuple[Outcome, ...]
    traced: bool
    # the source of all of it (the first capture's if there are several); None for an engine file
    # alone
    analysis: Analysis | None = None
    of_model: bool = False  # whether the layers' nodes are those of the ONNX model that was given
    by_kernel: bool = False  # kernel names stand in for its layers
    gpus: tuple[str, ...] = ()  # if the side has several captures that differ in it
    merged: Pace | None = None  # of several captures
    # the GPU whose inferences are compared, if that is not the one with the most
    device: int | None = None
    # median GPU compute time of a query in trtexec's log, for an engine file alone
    compute_ns: int | None = None

    @cached_property
    def pace(self) -> Pace:
        """Its time per inference; only for captures."""
        return self.merged or pace_of(dict(self.tables), device=self.device)

    def is_capture_of(self, other: Side) -> bool:
        """Whether both sides are the same capture or modified copies of it: their first kernel was
        launched at the same time.
        """
        first = [side.first_launch for side in (self, other)]
        return self is other or (first[0] is not None and first[0] == first[1])

    @cached_property
    def first_launch(self) -> tuple[int, int] | None:
        """The process and the time (ns) of the launch of the first kernel; None for several
        captures, and without kernels.
        """
        kernels = self.tables["kernels"]
        if self.merged is not None or not len(kernels):
            return None
        return int(kernels.ints("process")[0]), int(kernels.ints("launch_start_ns")[0])

    @property
    def gpu_note(self) -> str:
        """That its time is not of the GPU that it is of by itself; empty if it is."""
        if self.device is None:
            return ""
        return (
            f"{self.source}: times are of GPU {self.device}, as the other side's are; analyze"
            " predicts those of another GPU."
        )

    @property
    def cuda_graphs(self) -> bool:
        """Whether inferences are replayed from CUDA graphs."""
        return bool(self.tables["inferences"].bools("cuda_graph").any())

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Its layers by id: those of the engine files, then those that only ranges of the trace
        name.
        """
        known = [layer for engine in self.engines for layer in engine.layers]
        rows = list(self.tables["layers"])[len(known) :]
        return (
            *known,
            *(
                Layer(len(known) + at, row.text("name"), row.text("kind"))
                for at, row in enumerate(rows)
            ),
        )

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """The titles of its layers, by id."""
        return tuple(called(row) for row in self.tables["layers"])

    @cached_property
    def layer_ids(self) -> tuple[tuple[int, ...], ...]:
        """Layer ids by engine; those that only ranges name come last."""
        bounds = [*first_layers(self.engines), len(self.tables["layers"])]
        return tuple(tuple(range(first, end)) for first, end in pairwise(bounds) if first < end)


@dataclass(frozen=True)
class Given:
    """The files of one side."""

    path: str
    engines: tuple[str, ...] = ()
    reader: Reader = "auto"


def read_side(
    given: Given,
    *,
    model: OnnxModel | None = None,
    device: int | None = None,
    progress: Progress | None = None,
) -> Side:
    """The side that consists of these files; its time is that of the inferences on ``device``, or
    on the GPU with the most.
    """
    if is_likely_report(given.path):
        engines = read_engines(given.engines)
        mapped = map_report(
            given.path, engines, model=model, reader=given.reader, progress=progress
        )
        return _with_nodes(
            replace(
                side_of(analyze_mapped(mapped, device=device, progress=progress)), device=device
            ),
            model,
        )
    return _with_nodes(_engine_side(given), model)


def read_on_one_gpu(
    given: Sequence[Given], *, model: OnnxModel | None = None, progress: Progress | None = None
) -> list[Side]:
    """These sides or runs; if by themselves their times are of different GPUs, those of one on
    which all of them run inferences.
    """
    found = [read_side(one, model=model, progress=progress) for one in given]
    device = _shared_device(found)
    if device is None:
        return found
    return [
        (
            side
            if side.pace.device == device
            else read_side(one, model=model, device=device, progress=progress)
        )
        for one, side in zip(given, found, strict=True)
    ]


def _with_nodes(side: Side, model: OnnxModel | None) -> Side:
    """The side, with the model's nodes added to the layers that compute them."""
    if model is None:
        return side
    if not side.traced:
        titles = Text.of(title for engine in side.engines for title in engine_titles(engine, model))
        side = replace(
            side,
            tables={
                **side.tables,
                "layers": side.tables["layers"].with_columns(LAYERS, {"title": titles}),
            },
        )
    fits = all(of_model(one.layers, model) for one in side.engines)
    return replace(
        side,
        engines=tuple(
            replace(one, layers=with_model_nodes(one.layers, model)) for one in side.engines
        ),
        of_model=fits,
    )


def side_of(analysis: Analysis) -> Side:
    """The side that consists of an analysis."""
    return Side(
        analysis.source,
        analysis.engines,
        analysis.tables.by_name(),
        analysis.outcomes,
        traced=True,
        analysis=analysis,
    )


def _engine_side(given: Given) -> Side:
    """An engine file, or a trtexec profile with or without its engine file."""
    path = Path(given.path)
    if len(given.engines) > 1:
        raise NsysmapError(
            given.path,
            "is not a capture, but several engines are given with it",
            "give the one engine to which it belongs",
        )
    alone = profile_engine(path)
    if given.engines and alone is None:
        raise NsysmapError(
            given.path,
            "is neither a capture nor a profile",
            "give a report, or leave out the engine",
        )
    engine = (
        alone
        if alone is not None and not given.engines
        else read_engine(given.engines[0] if given.engines else path)
    )
    if given.engines:
        engine = read_engine(given.engines[0], profile=path)
    engine = replace(engine, source=Path(engine.source).name)
    outcomes = engine_outcomes(engine) if engine.detailed else ()
    return Side(
        path.name,
        (engine,),
        engine_tables_with_profile(engine),
        outcomes,
        traced=False,
        compute_ns=_compute_ns(path),
    )


def _compute_ns(path: Path) -> int | None:
    times = times_in(path)
    measure = None if times is None or times.by_layer else times.measures.get("gpu_compute")
    return None if measure is None else measure.median_ns


def _shared_device(sides: Sequence[Side]) -> int | None:
    """The GPU whose inferences are to be compared, if the sides' own choices differ and all of them
    have enough on another.

    It is the one on which the side with the smallest share of its inferences has the most.
    """
    if (
        not all(side.traced and side.pace.known for side in sides)
        or len({side.pace.device for side in sides}) == 1
    ):
        return None
    counts: list[dict[int, int]] = []
    for side in sides:
        loops = side.tables["inference_loops"]
        counts.append({})
        for device, steady in zip(
            loops.ints("device").tolist(), loops.ints("steady").tolist(), strict=True
        ):
            counts[-1][device] = counts[-1].get(device, 0) + steady
    common = [
        device
        for device in counts[0]
        if device != MISSING and all(held.get(device, 0) >= FEWEST for held in counts)
    ]
    return max(
        common,
        key=lambda device: min(held[device] / max(held.values()) for held in counts),
        default=None,
    )


def named_apart(sides: Sequence[Side], given: Sequence[Given]) -> list[Side]:
    """The sides, named after their files without the folder; equal names are numbered in the order
    given.
    """
    names = [Path(one.path).name for one in given]
    called = [
        f"{name} ({names[:at].count(name) + 1})" if names.count(name) > 1 else name
        for at, name in enumerate(names)
    ]
    return [replace(side, source=name) for side, name in zip(sides, called, strict=True)]
