"""What CPU samples show a host thread to have been in: which library, or the program's own code.

nsys takes them of threads that run, with the functions on their stacks.  Modules are told by the
names of their files, never by the paths.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray
from nsysmap.inputs.nsys.tables import SAMPLES_TAKEN, NsysTables

MPI, PYTHON, JULIA, CUDA, PROFILER, LIBRARY, PROGRAM, GENERATED, SYSTEM, UNKNOWN = (
    "mpi",
    "python",
    "julia",
    "cuda",
    "profiler",
    "library",
    "program",
    "generated",
    "system",
    "unknown",
)
OWNERS = (MPI, PYTHON, JULIA, CUDA, PROFILER, LIBRARY, PROGRAM, GENERATED, SYSTEM, UNKNOWN)
"""Whose code a thread was in."""

# of which the stacks are read, spread evenly: the standard error of a share is then at most 1.6
# points, and there may be millions
_MOST_STACKS = 1000
_MOST_THREADS = 8  # whose samples are looked for: those with most of the time
_MOST_TIMES = 100_000  # of samples from which the usual distance of two is told

# file names of modules, without what follows ".so"
_OWN_MODULES = (
    (MPI, re.compile(r"lib(mpi(ch|fort|_.*)?|p?mpi\w*|open-(pal|rte)|uc[pstm]\w*|psm2|fabric)")),
    (PROFILER, re.compile(r"lib(ToolsInjection\w*|cupti|nvperf\w*)")),
    (CUDA, re.compile(r"lib(cuda|cudart|nvidia-\w*)|nvcuda|nvcuda64|cudart64\w*")),
    (JULIA, re.compile(r"libjulia[\w-]*|libLLVM-?\d*jl|sys|julia")),
    (PYTHON, re.compile(r"libpython[\d.]*\w*|i?python[\d.]*|python\d+")),
)
# of the system, and of compilers: what they do is done for the function that called them
_CALLED = re.compile(
    r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gfortran|quadmath|imf|svml|intlc|nvc|nvf|nvcpumath\S*)"
    r"(-[\d.]+)?|ld(-[\w.-]+)?|\[(?!Unknown).*\]|ntdll|kernel32|kernelbase|ucrtbase|vcruntime\d+"
)
# memory without a file, and files of compilers that run with the program: Julia's, Numba's
_MADE_AT_RUN_TIME = re.compile(r"anon|memfd:.*|perf-\d+\.map|jitted-.*|\[anon.*\]")
_SUFFIX = re.compile(r"\.(so|dll|exe|dylib)([.\d].*)?$", re.IGNORECASE)
_LIBRARY = re.compile(r"\.(so|dll|dylib)([.\d]|$)|^lib", re.IGNORECASE)
# MPI_Barrier, its profiled form PMPI_Barrier, Fortran's mpi_barrier_ and ompi_barrier_f
_MPI_FUNCTION = re.compile(r"(?:P?MPI|p?mpi|ompi)_([A-Za-z]\w*?)(?:_f(?:08)?|_{1,2})?")
_UNKNOWN = re.compile(r"0x[0-9a-fA-F]+|\[.*\]")
_ADDED = re.compile(r"\[(Max depth|Broken backtraces)\]")  # by nsys, where a stack is cut off


@dataclass(frozen=True)
class HostCode:
    """Code that a thread was in when samples were taken."""

    owner: str  # of OWNERS
    library: str | None  # the file's name; None if it is not known
    function: str | None  # None where nsys has no name for it
    samples: int


@dataclass(frozen=True)
class SampledTime:
    """What samples show of some stretches of time of some threads."""

    code: tuple[HostCode, ...] = ()  # of the samples whose stacks were read, most first
    samples: int = 0  # within those stretches
    period_ns: int = 0  # of the time that a thread runs, from one sample to the next

    @property
    def read(self) -> int:
        """The samples whose stacks were read."""
        return sum(one.samples for one in self.code)


@dataclass(frozen=True)
class CpuSamples:
    """The CPU samples of a trace, read when they are asked for: there may be millions, with some
    fifty functions each.
    """

    tables: NsysTables | None = None  # None: there are none

    def during(self, thread: IntArray, start_ns: IntArray, end_ns: IntArray) -> SampledTime:
        """What these threads were in within these stretches of time, those of one thread apart from
        each other; nothing where the samples cannot be read.
        """
        if self.tables is None or not len(thread):
            return SampledTime()
        try:
            return self._during(self.tables, thread, start_ns, end_ns)
        except (NsysmapError, OSError):  # all else of the trace was read, and stands
            return SampledTime()

    @staticmethod
    def _during(
        tables: NsysTables, thread: IntArray, start_ns: IntArray, end_ns: IntArray
    ) -> SampledTime:
        within = _Stretches.of(thread, start_ns, end_ns)
        found: list[IntArray] = [np.empty(0, np.int64)]
        apart: list[IntArray] = [np.empty(0, np.int64)]
        for block in tables.blocks("COMPOSITE_EVENTS", SAMPLES_TAKEN):
            taken, at, of = (block[name] for name in SAMPLES_TAKEN)
            for number, starts, ends in within.each():
                mine = np.flatnonzero((of == number) & (at != MISSING))
                times = at[mine]
                if sum(map(len, apart)) < _MOST_TIMES:
                    apart.append(np.diff(times))
                place = np.searchsorted(starts, times, side="right") - 1
                inside = (place >= 0) & (times < ends[np.maximum(place, 0)])
                found.append(taken[mine[inside]])
        ids = np.sort(np.concatenate(found))
        between = np.concatenate(apart)
        between = between[between > 0]
        period = int(np.median(between)) if len(between) else 0
        chosen = ids[np.linspace(0, len(ids) - 1, min(len(ids), _MOST_STACKS)).astype(np.int64)]
        return SampledTime(_code(tables, chosen), len(ids), period)


def has_samples(tables: NsysTables) -> bool:
    """Whether CPU samples were taken, with the functions on the stacks."""
    return tables.has("COMPOSITE_EVENTS", "globalTid") and tables.has(
        "SAMPLING_CALLCHAINS", "module"
    )


@dataclass(frozen=True)
class _Stretches:
    """Stretches of time, those of one thread one after the other."""

    threads: tuple[int, ...]
    thread: IntArray
    start_ns: IntArray
    end_ns: IntArray

    @staticmethod
    def of(thread: IntArray, start_ns: IntArray, end_ns: IntArray) -> _Stretches:
        order = np.lexsort((start_ns, thread))
        thread, start_ns, end_ns = thread[order], start_ns[order], end_ns[order]
        which, inverse = np.unique(thread, return_inverse=True)
        spent = np.bincount(inverse, weights=end_ns - start_ns)
        most = which[np.argsort(-spent, kind="stable")[:_MOST_THREADS]]
        return _Stretches(tuple(most.tolist()), thread, start_ns, end_ns)

    def each(self) -> Iterator[tuple[int, IntArray, IntArray]]:
        """The stretches of each thread."""
        for number in self.threads:
            here = slice(*np.searchsorted(self.thread, (number, number + 1)))
            yield number, self.start_ns[here], self.end_ns[here]


def _code(tables: NsysTables, ids: IntArray) -> tuple[HostCode, ...]:
    """What the samples of these numbers were in, most first."""
    from nsysmap.trace.raw_rows import Strings  # which imports the model, and that this module

    if not len(ids):
        return ()
    raw = tables.stacks(ids)
    order = np.lexsort((raw["stackDepth"], raw["id"]))
    raw = {name: column[order] for name, column in raw.items()}
    strings = Strings.read(tables)
    functions, modules = (strings.text(raw[name]).list() for name in ("symbol", "module"))
    borders = np.flatnonzero(np.diff(raw["id"])) + 1
    ends = [*borders.tolist(), len(raw["id"])] if len(raw["id"]) else []
    counts: Counter[HostCode] = Counter()
    begin = 0
    for end in ends:
        frames = [
            Frame(function or "", module or "")
            for function, module in zip(functions[begin:end], modules[begin:end], strict=True)
        ]
        counts[code_of(frames)] += 1
        begin = end
    return tuple(
        HostCode(one.owner, one.library, one.function, samples)
        for one, samples in counts.most_common()
    )


@dataclass(frozen=True)
class Frame:
    """A function on a stack, and the path of the file that it is in."""

    function: str
    module: str

    @property
    def file(self) -> str:
        """The file's own name."""
        return re.split(r"[/\\]", self.module)[-1]


def code_of(frames: Sequence[Frame]) -> HostCode:
    """Whose code a stack is in, its innermost function first: MPI's if one of its functions is,
    whatever that calls; else that of the innermost function of no system and no compiler's library.
    """
    known = [(frame, _owner(frame.file)) for frame in frames if not _ADDED.match(frame.function)]
    call = next(
        (told for frame, _ in reversed(known) if (told := _mpi_call(frame.function)) is not None),
        None,
    )
    if call is not None or any(owner == MPI for _, owner in known):
        library = next((frame.file for frame, owner in known if owner == MPI), None)
        return HostCode(MPI, library, call, 0)
    for frame, owner in known:
        if owner not in (SYSTEM, UNKNOWN):
            library = None if owner == GENERATED else frame.file
            return HostCode(owner, library, _named(frame.function), 0)
    calls = [_named(frame.function) for frame, owner in known if owner == SYSTEM]
    return HostCode(SYSTEM, None, calls[0], 0) if calls else HostCode(UNKNOWN, None, None, 0)


def _mpi_call(function: str) -> str | None:
    """MPI's name of a function of its, MPI_Barrier."""
    found = _MPI_FUNCTION.fullmatch(function)
    return None if found is None else f"MPI_{found.group(1).capitalize()}"


def _owner(file: str) -> str:
    stem = _SUFFIX.sub("", file)
    if not file or file == "[Unknown]":
        return UNKNOWN
    if _MADE_AT_RUN_TIME.fullmatch(file):
        return GENERATED
    if _CALLED.fullmatch(stem):
        return SYSTEM
    for owner, pattern in _OWN_MODULES:
        if pattern.fullmatch(stem):
            return owner
    return LIBRARY if _LIBRARY.search(file) else PROGRAM


def _named(function: str) -> str | None:
    return None if not function or _UNKNOWN.fullmatch(function) else function
