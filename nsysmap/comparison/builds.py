"""Several builds of one model side by side: the time of each group of ONNX nodes in each build, the
best build of each group, and what the best of all would take; and their memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nsysmap.comparison.joined import joined_groups
from nsysmap.comparison.runs import runs_in, together
from nsysmap.comparison.side import Given, Side, read_on_one_gpu
from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.build_memory import BuildMemory, memory_of_file
from nsysmap.inputs.engine.model import Layer
from nsysmap.inputs.engine.onnx_model import OnnxModel
from nsysmap.inputs.engine.profile import profile_engine
from nsysmap.inputs.engine.reader import read_engines_in
from nsysmap.mapping.given_files import is_likely_report
from nsysmap.network.live_tensors import activation_bytes, weight_bytes
from nsysmap.network.matched_groups import POSITION
from nsysmap.text.units import percent
from nsysmap.timing.layer_sums import common_name, unnumbered
from nsysmap.trace.device_memory import peak_device_memory
from nsysmap.trace.open_report import Progress, Reader

_QUANTIZERS = ("quantizelinear", "dequantizelinear")
_WITHOUT_NODES = "layers that are in no group"
_ENGINE_ENDS = (".engine.json", ".json", ".plan", ".engine", ".trt", ".rtx", ".log", ".txt")
_SHARED = 0.8
"""Share of each build's time that must be in groups which all builds have."""
_NO_WORK = frozenset({"shape", "signal", "noop", "constant", "loop"})


@dataclass(frozen=True)
class BuildFiles:
    """The files of one build, and what it is called."""

    name: str
    reports: tuple[str, ...]
    engines: tuple[str, ...]
    profile: str | None
    others: tuple[str, ...]  # logs and serialized engines


@dataclass(frozen=True)
class Build:
    """One build: its time per inference, and its memory."""

    name: str
    # without the profiler where a report shows it, as recorded where that traces whole CUDA graphs;
    # otherwise the sum of its layers
    time_ns: int | None
    low_ns: int | None
    high_ns: int | None
    traced: bool
    layers_ns: int | None  # of all layers together
    layers: int
    types: tuple[str, ...]  # that its products compute in, the most time first
    memory: BuildMemory
    peak_bytes: int | None  # device memory that the program held at most, where it was traced
    live_bytes: int | None  # activations alive at a time, at least, by the engine file


@dataclass(frozen=True)
class BuildGroup:
    """Layers of all builds that compute the same ONNX nodes; repeated blocks are one."""

    title: str
    groups: int  # how many such groups
    times_ns: tuple[int | None, ...]  # by build; None where it has no layer of it
    layers: tuple[int, ...]
    types: tuple[str, ...]  # by build
    best: int | None  # the build with the shortest time, where all have one

    @property
    def gain_ns(self) -> int:
        """How much shorter the best is than the longest."""
        known = [one for one in self.times_ns if one is not None]
        return max(known) - min(known) if known else 0


@dataclass(frozen=True)
class Builds:
    """Builds of one model side by side; times are per inference."""

    builds: tuple[Build, ...]
    groups: tuple[BuildGroup, ...]  # the most to gain first
    best: int | None  # the build with the shortest time
    # the best build of each group, with the shortest time of what is outside the layers; None
    # where a time is missing, or the layers do not name the same nodes
    best_of_all_ns: int | None
    notes: tuple[str, ...]


def builds_in(paths: Sequence[str]) -> tuple[BuildFiles, ...]:
    """The builds among these files and folders.

    Several paths are one build each, a file or a folder with all of it; a single folder holds one
    build in each of its folders, or files whose names begin alike (``NAME.engine.json``,
    ``NAME.profile.json``, ``NAME.nsys-rep``).
    """
    if len(paths) == 1 and Path(paths[0]).is_dir():
        found = _in_folder(Path(paths[0]))
    else:
        found = [_build(_called(path), _files_of(path)) for path in paths]
    if len(found) < 2:
        raise NsysmapError(
            " ".join(paths),
            f"has {len(found)} build{'' if len(found) == 1 else 's'}",
            "give two builds or more: files or folders, or a folder that contains them",
        )
    return tuple(found)


def build_of(name: str, files: Sequence[str]) -> BuildFiles:
    """Makes one build of these files."""
    return _build(name, [one for path in files for one in _files_of(path)])


def _called(path: str) -> str:
    name = Path(path).name
    end = next((one for one in (*_ENGINE_ENDS, ".nsys-rep", ".sqlite") if name.endswith(one)), "")
    return name.removesuffix(end).removesuffix(".profile") or name


def _files_of(path: str) -> list[str]:
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    return [str(one) for one in sorted(folder.iterdir()) if one.is_file()]


def _in_folder(folder: Path) -> list[BuildFiles]:
    inner = [one for one in sorted(folder.iterdir()) if one.is_dir()]
    found = [
        build
        for one in inner
        if (build := _build(one.name, _files_of(str(one)))).engines or build.reports
    ]
    names: dict[str, list[str]] = {}
    for path in _files_of(str(folder)):
        names.setdefault(_called(path), []).append(path)
    built = {stem: _build(stem, files) for stem, files in names.items()}
    held = {stem: build for stem, build in built.items() if build.engines}
    stems = sorted(held, key=len, reverse=True)
    for name, build in built.items():
        if name not in held and (stem := next((s for s in stems if name.startswith(s)), None)):
            held[stem] = _with(held[stem], build)
    return [*found, *(held[stem] for stem in sorted(held))]


def _with(build: BuildFiles, more: BuildFiles) -> BuildFiles:
    """A build with further files of it, among which is no engine file."""
    return replace(
        build,
        reports=build.reports + more.reports,
        profile=build.profile or more.profile,
        others=build.others + more.others,
    )


def _build(name: str, files: Sequence[str]) -> BuildFiles:
    reports = [one for one in files if is_likely_report(one)]
    profiles: list[str] = []
    engines: list[str] = []
    others: list[str] = []
    for one in files:
        if one in reports:
            continue
        if one.endswith(".json"):
            (profiles if is_profile(one) else engines if _is_engine(one) else others).append(one)
        else:
            others.append(one)
    if not engines:
        logs = [one for one in others if one.endswith((".log", ".txt"))]
        plans = [one for one in others if one.endswith((".plan", ".engine", ".trt", ".rtx"))]
        engines = logs[:1] or plans[:1]
    return BuildFiles(
        name, tuple(reports), tuple(engines), profiles[0] if profiles else None, tuple(others)
    )


def is_profile(path: str) -> bool:
    """Whether the file has times of layers, from trtexec --exportProfile or --dumpProfile."""
    try:
        return profile_engine(Path(path)) is not None
    except NsysmapError:
        return False


def _is_engine(path: str) -> bool:
    try:
        read_engines_in(Path(path))
    except NsysmapError:
        return False
    return True


def compare_builds(
    files: Sequence[BuildFiles],
    *,
    model: OnnxModel | None = None,
    reader: Reader = "auto",
    progress: Progress | None = None,
) -> Builds:
    """The builds side by side.  Raises NsysmapError for files that cannot be used."""
    sides = [_side(one, model, reader, progress) for one in files]
    layers = [_timed(side) for side in sides]
    groups = _groups(sides, layers)
    builds = tuple(
        _told(one, side, times) for one, side, times in zip(files, sides, layers, strict=True)
    )
    known = [(one.time_ns, at) for at, one in enumerate(builds) if one.time_ns is not None]
    outside = [
        one.time_ns - one.layers_ns
        for one in builds
        if one.time_ns is not None and one.layers_ns is not None
    ]
    best = sum(min(t or 0 for t in one.times_ns) for one in groups)
    shared = [
        sum(one.times_ns[at] or 0 for one in groups if None not in one.times_ns)
        / max(sum(spent.values()), 1)
        for at, spent in enumerate(layers)
    ]
    other = min(range(len(sides)), key=lambda at: shared[at])
    alike = shared[other] >= _SHARED or not layers[other]
    complete = len(outside) == len(builds) and alike
    notes = []
    if not alike:
        notes.append(
            f"{percent(1 - shared[other], 1, 0)} of the time of {files[other].name} is in layers"
            " that not every build has: what the best of all would take cannot be told"
        )
    if len({one.traced for one in builds}) > 1:
        notes.append("times of reports and of engine files alone are not measured alike")
    return Builds(
        builds=builds,
        groups=groups,
        best=min(known)[1] if known else None,
        best_of_all_ns=best + min(outside) if complete else None,
        notes=tuple(notes),
    )


def _side(
    files: BuildFiles, model: OnnxModel | None, reader: Reader, progress: Progress | None
) -> Side:
    if files.reports:
        given = [
            Given(run, files.engines, reader) for path in files.reports for run in runs_in(path)
        ]
        return together(read_on_one_gpu(given, model=model, progress=progress))
    if not files.engines:
        raise NsysmapError(
            files.name, "has neither a report nor an engine file", "give one of each build"
        )
    engine = files.engines[0]
    given = [Given(files.profile, (engine,)) if files.profile else Given(engine)]
    return read_on_one_gpu(given, model=model, progress=progress)[0]


def _timed(side: Side) -> dict[int, int]:
    """The time of each layer, per inference."""
    return {
        row.integer("layer_id"): time_ns
        for row in side.tables["layers"]
        if (time_ns := row.maybe_integer("time_ns"))
    }


def _told(files: BuildFiles, side: Side, times: Mapping[int, int]) -> Build:
    time_ns = low = high = None
    if side.traced and side.pace.known:
        time_ns, low, high = (
            round(one) for one in (side.pace.likely, side.pace.quick, side.pace.slow)
        )
    elif times:
        time_ns = side.compute_ns or sum(times.values())
    memory = BuildMemory()
    for path in (*files.others, *files.engines):
        memory = memory.or_else(memory_of_file(path))
    weights = weight_bytes(
        [row.maybe_integer("weight_bytes") for row in side.tables["work"]]
        if "work" in side.tables
        else []
    )
    peaks = [one for path in files.reports if (one := peak_device_memory(path)) is not None]
    live = [one for engine in side.engines if (one := activation_bytes(engine)) is not None]
    return Build(
        name=files.name,
        time_ns=time_ns,
        low_ns=low,
        high_ns=high,
        traced=side.traced,
        layers_ns=sum(times.values()) if times else None,
        layers=len(side.layers),
        types=_types(side, times),
        memory=memory.or_else(BuildMemory(weight_bytes=weights)),
        peak_bytes=max(peaks) if peaks else None,
        live_bytes=max(live) if live else None,
    )


def _types(side: Side, times: Mapping[int, int]) -> tuple[str, ...]:
    """The types that the products compute in, the most time first."""
    spent: dict[str, int] = {}
    for row in side.tables["precision"]:
        type_, layer = row.maybe_text("datatype"), row.maybe_integer("layer_id")
        if row.text("work") == "product" and type_ and layer is not None:
            spent[type_] = spent.get(type_, 0) + (times.get(layer, 0) or 1)
    return tuple(sorted(spent, key=lambda one: -spent[one]))


# --- groups of ONNX nodes
# ---------------------------------------------------------------------------------------


class _Joined:
    """Nodes that one layer of any build computes together, joined into sets."""

    def __init__(self) -> None:
        """Without any node."""
        self._of: dict[str, str] = {}

    def root(self, node: str) -> str:
        """The node that stands for all that are joined with this one."""
        above = self._of.setdefault(node, node)
        while above != node:
            self._of[node] = self._of[above]
            node, above = above, self._of[above]
        return node

    def join(self, nodes: Sequence[str]) -> None:
        """Makes these nodes one set."""
        for node in nodes[1:]:
            self._of[self.root(node)] = self.root(nodes[0])


def nodes_of(layer: Layer) -> tuple[str, ...]:
    """The ONNX nodes that identify a layer's computation: without quantizers, which a build in
    another type lacks, unless the layer computes nothing else.
    """
    others = tuple(one for one in layer.onnx if not one.lower().endswith(_QUANTIZERS))
    return others or layer.onnx


def _groups(sides: Sequence[Side], times: Sequence[Mapping[int, int]]) -> tuple[BuildGroup, ...]:
    joined = _Joined()
    keys = _keys(sides)
    for side, named in zip(sides, keys, strict=True):
        for layer, nodes in zip(side.layers, named, strict=True):
            if layer.kind not in _NO_WORK:
                joined.join(nodes)
    held: dict[str, list[list[int]]] = {}
    for at, spent in enumerate(times):
        for place, nodes in enumerate(keys[at]):
            if place not in spent:
                continue
            key = joined.root(nodes[0]) if nodes else _WITHOUT_NODES
            held.setdefault(key, [[] for _ in sides])[at].append(place)
    alike: dict[str, list[tuple[str, list[list[int]]]]] = {}
    for key, places in held.items():
        title = key if key == _WITHOUT_NODES else _title(sides, places)
        alike.setdefault(unnumbered(title), []).append((title, places))
    found = [_group(sides, times, mine) for mine in alike.values()]
    return tuple(sorted(found, key=lambda one: (-one.gain_ns, one.title)))


def _keys(sides: Sequence[Side]) -> list[list[tuple[str, ...]]]:
    """For each layer of each build, the ONNX nodes that it computes.

    Engine files of TensorRT 8 name none.  A build without any has in their place the layers of the
    first build (of those with nodes, if there are such) that its own are joined with as `compare`
    joins them: by names, tensors and structure, not by position alone.
    """
    keys = [[nodes_of(layer) for layer in side.layers] for side in sides]
    named = [any(mine) for mine in keys]
    first = named.index(True) if True in named else 0
    if not named[first]:
        keys[first] = [(f"{place}",) for place in range(len(keys[first]))]
    for at, side in enumerate(sides):
        if at == first or named[at]:
            continue
        for group in joined_groups(sides[first], side):
            if group.joined_by != POSITION:
                mine = tuple(key for place in group.before for key in keys[first][place])
                for place in group.after:
                    keys[at][place] = mine
    return keys


def _title(sides: Sequence[Side], places: Sequence[Sequence[int]]) -> str:
    """The layers' title in the build that needs the fewest layers for them."""
    at = min(
        (at for at, mine in enumerate(places) if mine), key=lambda one: (len(places[one]), one)
    )
    names = dict.fromkeys(sides[at].titles[one] for one in places[at])
    return "; ".join(names)


def _group(
    sides: Sequence[Side],
    times: Sequence[Mapping[int, int]],
    mine: Sequence[tuple[str, list[list[int]]]],
) -> BuildGroup:
    spent = tuple(
        _sum(times[at][one] for _, places in mine for one in places[at]) for at in range(len(sides))
    )
    complete = None not in spent
    return BuildGroup(
        title=common_name([title for title, _ in mine]),
        groups=len(mine),
        times_ns=spent,
        layers=tuple(sum(len(places[at]) for _, places in mine) for at in range(len(sides))),
        types=tuple(
            _type_of(sides[at], times[at], [one for _, places in mine for one in places[at]])
            for at in range(len(sides))
        ),
        best=(min(range(len(sides)), key=lambda at: spent[at] or 0) if complete else None),
    )


def _type_of(side: Side, times: Mapping[int, int], places: Sequence[int]) -> str:
    """The type of the layer with most of the time."""
    longest: Callable[[int], int] = lambda one: times.get(one, 0)  # noqa: E731
    if not places:
        return ""
    return side.layers[max(places, key=longest)].precision or ""


def _sum(values: Iterable[int]) -> int | None:
    held = list(values)
    return sum(held) if held else None
