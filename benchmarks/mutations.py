"""Changes one expression of nsysmap at a time, and counts the changes that no test notices.

    python benchmarks/mutations.py --sample 30 --seed 1            # a sample of all rooms below
    python benchmarks/mutations.py nsysmap/whatif/replay.py        # every mutation of a module
    python benchmarks/mutations.py nsysmap/timing --list           # what would be changed

Each mutation is made in a copy of the working tree, and the tests of its module's room run there
until one fails or the time limit is over: it is killed, or it survived.  The tests run in a process
that is forked off this one, which has imported what they need beside nsysmap.  Exit status 1 if the
share killed is below `--at-least`.

    python benchmarks/mutations.py --sample 24 --seed 28 --near --limit-s 40

runs only the tests that are near the module: its own and those that import it.  What survives those
may be killed by the others, so that the share is a lower bound.

    python benchmarks/mutations.py --trace traced.json          # once: which tests run which lines
    python benchmarks/mutations.py --trace traced.json tests/whatif      # … of these anew
    python benchmarks/mutations.py --sample 50 --seed 3 --traced traced.json

runs, of all tests that were traced, those that run the changed lines, the fastest first.  Others
can hardly notice the change, so that the survivors cost the least time.  The share is a lower bound
all the same: a test that uses what another test has made (a fixture of the whole module or session,
or a cached function) is not seen to run those lines, though it may notice.
"""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import MISSING, dataclass
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

# imported before the forks, so that no run of the tests has to
import duckdb  # noqa: F401
import hypothesis  # noqa: F401
import numpy  # noqa: F401  # noqa: ICN001
import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parents[1]

TESTS = {
    "nsysmap/mapping": ("tests/mapping",),
    "nsysmap/timing": ("tests/timing",),
    "nsysmap/timing/idle": ("tests/timing/test_idle.py", "tests/timing"),
    "nsysmap/whatif": ("tests/whatif/test_replay.py", "tests/whatif"),
    "nsysmap/inputs/nsys": (
        "tests/nsys/test_own_reader.py",
        "tests/nsys",
        "tests/trace/test_open_report.py",
    ),
}
"""The tests of each room, the likeliest to notice and the fastest first; a module's own,
`test_MODULE.py`, run before them.
"""
_ALL_TESTS = (
    *("tests/mapping", "tests/timing", "tests/whatif", "tests/nsys", "tests/trace"),
    *("tests/captures", "tests/summary", "tests/test_analysis.py"),
)
"""What is traced: the rooms, and the rooms that run whole analyses."""

_OPPOSITE: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_OTHER = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "fmin": "fmax",
    "fmax": "fmin",
    "any": "all",
    "all": "any",
}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/"}
_MEASURED = {
    "nsysmap/timing/shape_rates.py": "rates of products as measured: other figures are no fault",
}
"""Modules that hold figures and no behaviour, and why no test holds them."""


@dataclass(frozen=True)
class Equivalent:
    """A mutation that changes nothing that anybody could see."""

    module: str
    line: str  # without the spaces around it
    becomes: str
    reason: str


EQUIVALENT = (
    Equivalent(
        "nsysmap/inputs/nsys/program.py",
        "if told is None or version is None:",
        "((version is None))",
        "no version is asked for where nothing was found; it says so to the type checker",
    ),
    Equivalent(
        "nsysmap/inputs/nsys/report_wire.py",
        "_WINDOW_BYTES = 1 << 20"
        "  # in which messages are looked for at a time: a byte takes up to 60",
        "40",
        "a bound of memory: windows of any size find the same messages",
    ),
    Equivalent(
        "nsysmap/inputs/nsys/json_lines.py",
        "_LONGEST_LINE = 1 << 30  # bytes: no row of an export comes near",
        "2",
        "a bound of memory, of which any above a gigabyte would do",
    ),
    Equivalent(
        "nsysmap/whatif/changes.py",
        "numbers = 1 + max((work.number for work in all_works(timeline)), default=0)",
        "1",
        "the default is for a timeline without work, which then has no numbers to be added to",
    ),
    Equivalent(
        "nsysmap/whatif/changes.py",
        "if len(works) < len(step.works) or any(work.after for work in works)",
        "((len(works)) <= (len(step.works)))",
        "it spares a copy of a step that stays as it is",
    ),
    Equivalent(
        "nsysmap/inputs/nsys/report_container.py",
        "head = _read(file, at, max(0, min(20, end - at)))",
        "40",
        "more bytes are read than the two numbers at the head of a block can have",
    ),
    Equivalent(
        "nsysmap/inputs/nsys/report_wire.py",
        "fits = (length <= np.uint64(end - begin)) & (first <= end)",
        "((length) < (np.uint64(end - begin)))",
        "a message of that length ends behind the end, as its tag comes before it",
    ),
    Equivalent(
        "nsysmap/inputs/nsys/sqlite_pages.py",
        "size = np.where(types < 12, _LENGTH[np.minimum(types, 12)], (types - 12) >> 1)",
        "((types) <= (12))",
        "type 12 is a blob of no bytes, by the table as by the formula",
    ),
    Equivalent(
        "nsysmap/inputs/nsys/sqlite_pages.py",
        "if len(level) > pages.number or level.min() < 1 or level.max() > pages.number:",
        "((level.min()) <= (1))",
        "page 1 begins with the head of the file, and is refused as no page of a tree all the same",
    ),
    Equivalent(
        "nsysmap/timing/headroom.py",
        'return bound if reached >= NEAR / 3 else "latency-bound"',
        "((reached) > (NEAR / 3))",
        "a measured share that is the limit to the last bit",
    ),
    Equivalent(
        "nsysmap/timing/idle/causes.py",
        "touched = (at < len(left)) & (left[np.minimum(at, len(left) - 1)] < pieces.end_ns)",
        "((left[np.minimum(at, len(left) - 1)]) <= (pieces.end_ns))",
        "what begins where the piece ends has no time in it",
    ),
    Equivalent(
        "nsysmap/timing/idle/causes.py",
        "touched = (at < len(left)) & (left[np.minimum(at, len(left) - 1)] < pieces.end_ns)",
        "((at) <= (len(left)))",
        "behind all stops of the profiler nothing is found that would be replaced",
    ),
    Equivalent(
        "nsysmap/timing/idle/causes.py",
        "if len(self.overheads) == 0 or len(pieces.owner) == 0:",
        "((len(self.overheads) == 0))",
        "of no pieces none is replaced",
    ),
    Equivalent(
        "nsysmap/inputs/nsys/report_wire.py",
        "if low.max(initial=0) < 0x80:",
        "1",
        "the largest of bytes of which one is 0x80 or more is the same",
    ),
    Equivalent(
        "nsysmap/whatif/model.py",
        "else (np.zeros(0, np.int64),) * 3",
        "1",
        "an inference of no length has no part in any share",
    ),
    Equivalent(
        "nsysmap/whatif/calibration.py",
        "if len(ends) == 0 or len(rows) == 0:",
        "((len(ends) == 0))",
        "of no waits none is taken",
    ),
    Equivalent(
        "nsysmap/whatif/calibration.py",
        "& (neighbours.latency_ns < _LATE_NS)",
        "((neighbours.latency_ns) <= (_LATE_NS))",
        "a median over hundreds of launches, of which hardly one takes the limit to a nanosecond",
    ),
    Equivalent(
        "nsysmap/whatif/calibration.py",
        "restart_ns=0,",
        "1",
        "a nanosecond of a launch that takes thousands",
    ),
    Equivalent(
        "nsysmap/mapping/streams/repeats.py",
        "if not 0 < _listed(lane) < len(lane.layers) or len(mine) < 2 * LEAST_ALIKE:",
        "((not 0 < _listed(lane) < len(lane.layers)))",
        "it spares a look at runs of which too few are whole, or repetitions, all the same",
    ),
    Equivalent(
        "nsysmap/mapping/streams/repeats.py",
        "if not 0 < _listed(lane) < len(lane.layers) or len(mine) < 2 * LEAST_ALIKE:",
        "((2) / (LEAST_ALIKE))",
        "it spares a look at runs of which too few are whole, or repetitions, all the same",
    ),
    Equivalent(
        "nsysmap/mapping/streams/stream_alignment.py",
        "until[number, slots + 1 :] = until[number, slots]",
        "2",
        "of the slots behind the last one of a track, which match nothing",
    ),
    Equivalent(
        "nsysmap/mapping/streams/stream_alignment.py",
        "if valued and stream.value is not None:",
        "((valued))",
        "it says to the type checker what the other condition holds",
    ),
    Equivalent(
        "nsysmap/mapping/order/launch_shapes.py",
        "divides = any(one < 0 and blocks % -one == 0 for one in needed)",
        "((one) <= (0))",
        "no number of blocks is 0",
    ),
    Equivalent(
        "nsysmap/mapping/order/launch_shapes.py",
        "a_wave = persistent and blocks >= _WAVE and max(needed) > blocks",
        "((max(needed)) >= (blocks))",
        "as many blocks as are needed are told before that is asked",
    ),
    Equivalent(
        "nsysmap/mapping/ranges/launch_ranges.py",
        "if len(nodes) == 0 or len(graph_node) == 0:",
        "((len(nodes) == 0))",
        "of no node asked for nothing is found all the same",
    ),
    Equivalent(
        "nsysmap/mapping/ranges/launch_ranges.py",
        "(root >= 0) & ~is_root[np.where(root >= 0, root, 0)],",
        "(root >= 0)",
        "the first node of a chain leads to itself",
    ),
    Equivalent(
        "nsysmap/mapping/ranges/launch_ranges.py",
        "found = (at >= 0) & (ids[np.maximum(at, 0)] == graph_node[asked])",
        "(ids[np.maximum(at, 0)] == graph_node[asked])",
        "where it is before the first one it is not equal to it either",
    ),
    Equivalent(
        "nsysmap/mapping/order/launch_shapes.py",
        "if len(shape) > 2 and whole > 0 and not (image and layer.kind in _ON_IMAGES):",
        "((whole) >= (0))",
        "how many numbers there are is never 0: it is -1 where that is not known",
    ),
)
"""Mutations that are not tried, and why no test could notice them."""

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_HANGS = 5  # times as long as without a mutation: the tests no longer end
_NOT_CHANGED = 97  # our own: a process ended before it had changed the module
_WAITS = 4  # times as long by the clock as by the processor: it waits for what does not come
_NOTICES = "tests/captures/test_figures.py"
_NEWER_S = 0.1  # of processor time, of a test that is newer than the trace
_START_S = 30  # of processor time, for the imports of the tests
_FAILED = 1  # pytest's status if a test failed; others are mistakes of the run itself
_INTERRUPTED = 2  # … if a module could not be imported: the mutation is noticed too


@dataclass(frozen=True)
class Mutation:
    """One expression of a module, and what takes its place."""

    module: str  # path from the root
    line: int
    begin: int  # bytes of the module
    end: int
    was: str
    becomes: str

    def __str__(self) -> str:
        was, becomes = (" ".join(text.split()) for text in (self.was, self.becomes))
        return f"{self.module}:{self.line}  {_short(was)}  ->  {_short(becomes)}"


def _short(text: str) -> str:
    return text if len(text) <= 70 else text[:34] + " … " + text[-33:]


def mutations(module: str, source: str) -> list[Mutation]:
    """Every mutation of a module, in the order of its lines."""
    lines = source.encode().splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    same = {(one.module, one.line, one.becomes) for one in EQUIVALENT}
    found: list[Mutation] = []
    for node, texts in _changes(ast.parse(source)):
        begin = offsets[node.lineno - 1] + node.col_offset
        end = offsets[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        was = source.encode()[begin:end].decode()
        text_of_line = lines[node.lineno - 1].decode().strip()
        found.extend(
            Mutation(module, node.lineno, begin, end, was, text)
            for text in texts
            if (module, text_of_line, text) not in same
        )
    return sorted(found, key=lambda one: (one.begin, one.end, one.becomes))


def _changes(tree: ast.AST) -> Iterator[tuple[ast.expr, list[str]]]:
    """The expressions that can be changed, each with the texts to put in its place.

    Types, strings, decorators and what only a type checker runs are left as they are, and so is
    the ``strict`` of a zip, which asserts what holds and says nothing of what the program does.
    """
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, (ast.JoinedStr, ast.Raise)):
                continue
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            if (
                isinstance(tree, ast.Module)
                and isinstance(node, ast.Assign)
                and _is_type(node.value)
            ):
                continue
            if isinstance(node, ast.keyword) and node.arg == "strict":
                continue
            if isinstance(node, ast.expr):
                texts = _instead(node)
                if texts:
                    yield node, texts
                if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
                    continue  # a negative number is one
            yield from _changes(node)


def _is_type(node: ast.expr) -> bool:
    """Whether an expression is one type or another, by the letters with which types begin."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _is_type(node.left) and _is_type(node.right)
    if isinstance(node, ast.Subscript):
        return _is_type(node.value)  # of what
    name = node.id if isinstance(node, ast.Name) else ""
    return name in {"int", "float", "str", "bytes"} or (name[:1].isupper() and not name.isupper())


def _instead(node: ast.expr) -> list[str]:
    """What an expression becomes: other comparisons, constants, minima for maxima, a condition left
    out or turned round, the other sign.
    """
    match node:
        case ast.Constant(value=bool() as value):
            return [str(not value)]
        case ast.Constant(value=int() as number):
            return [str(number + 1 if number < 10 else 2 * number)]
        case ast.Constant(value=float() as real):
            return [repr(real * 2 + (0.5 if real == 0 else 0))]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as operand):
            return [ast.unparse(operand)]
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=condition):
            return [_whole(condition)]
        case ast.Compare(left=left, ops=[comparison], comparators=[right]):
            return [
                f"({_whole(left)} {other} {_whole(right)})" for other in _OPPOSITE[type(comparison)]
            ]
        case ast.BoolOp(values=values):
            word = " and " if isinstance(node.op, ast.And) else " or "
            return [
                f"({word.join(_whole(one) for one in values if one is not dropped)})"
                for dropped in values
            ]
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            return [_whole(left), _whole(right)]
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
            return [f"({_whole(left)} {_ARITHMETIC[type(operator)]} {_whole(right)})"]
        case ast.Call(func=ast.Name(id=name) as function) if name in _OTHER:
            return [ast.unparse(_called(node, ast.Name(_OTHER[name], function.ctx)))]
        case ast.Call(func=ast.Attribute(attr=name) as method) if name in _OTHER:
            other = ast.Attribute(method.value, _OTHER[name], method.ctx)
            return [ast.unparse(_called(node, other))]
    return []


def _whole(node: ast.expr) -> str:
    """The expression in brackets, so that it stays one wherever it stands."""
    return f"({ast.unparse(node)})"


def _called(call: ast.Call, function: ast.expr) -> ast.Call:
    return ast.Call(function, call.args, call.keywords)


def modules(names: list[str]) -> list[str]:
    """The modules of these rooms and files, all rooms that have tests named by default."""
    found: set[str] = set()
    for name in names or list(TESTS):
        path = ROOT / name
        paths = path.rglob("*.py") if path.is_dir() else [path]
        found.update(
            module
            for one in paths
            for module in (str(one.relative_to(ROOT)),)
            if module not in _MEASURED or not path.is_dir()
        )
    return sorted(found)


def sample(every: Sequence[Mutation], count: int, seed: int) -> list[Mutation]:
    """So many of them by lot, which falls by what each changes: where other lines change, nearly
    the same are drawn again.
    """
    seen: Counter[str] = Counter()
    lots: list[tuple[bytes, Mutation]] = []
    for one in every:
        what = f"{seed} {one.module} {one.was} {one.becomes}"
        seen[what] += 1
        lots.append((hashlib.sha256(f"{what} {seen[what]}".encode()).digest(), one))
    drawn = [one for _, one in sorted(lots, key=lambda lot: lot[0])[:count]]
    return sorted(drawn, key=lambda one: (one.module, one.begin, one.becomes))


def room_of(module: str) -> str:
    """The room of TESTS that a module is in, the innermost."""
    rooms = [room for room in TESTS if module.startswith(f"{room}/")]
    if not rooms:
        raise SystemExit(f"{module}: no tests are named for it in TESTS of {Path(__file__).name}")
    return max(rooms, key=len)


def tests_of(module: str) -> tuple[str, ...]:
    """The tests of a module's room."""
    return TESTS[room_of(module)]


def own_tests(module: str) -> list[str]:
    """The tests of the module itself, which are the likeliest to notice: they run first."""
    folders = [path for path in tests_of(module) if not path.endswith(".py")]
    paths = [f"{folder}/test_{Path(module).stem}.py" for folder in folders]
    return [path for path in paths if (ROOT / path).exists()]


def near_tests(module: str) -> list[str]:
    """The test files that import the module, those of its room first; its own come before them.  Of
    a module that none imports, those that import the modules that do.
    """
    found = _importing(module, "tests")
    if not any(Path(path).name.startswith("test_") for path in found):
        found = [
            test for user in _importing(module, "nsysmap") for test in _importing(user, "tests")
        ]
    room = tests_of(module)
    return sorted(
        {path for path in found if Path(path).name.startswith("test_")},
        key=lambda path: (not path.startswith(tuple(room)), path),
    )


def _importing(module: str, folder: str) -> list[str]:
    """The files in that folder that import the module."""
    dotted = module.removesuffix(".py").replace("/", ".")
    package, _, name = dotted.rpartition(".")
    ways = (f"from {dotted} import", f"import {dotted}", f"from {package} import {name}")
    return [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / folder).rglob("*.py"))
        if any(way in path.read_text() for way in ways)
    ]


@dataclass(frozen=True)
class Traced:
    """Which tests run which lines, as one run of them without any mutation told."""

    seconds: Mapping[str, float]  # processor time of each test
    lines: Mapping[str, Mapping[int, Sequence[str]]]  # the tests by module and line

    @classmethod
    def read(cls, path: Path) -> Traced:
        """What :func:`traced` wrote."""
        data = json.loads(path.read_text())
        names = list(data["seconds"])
        return cls(
            data["seconds"],
            {
                module: {int(line): [names[at] for at in tests] for line, tests in lines.items()}
                for module, lines in data["lines"].items()
            },
        )

    def tests(self, mutation: Mutation, source: str) -> list[str]:
        """The tests that run the changed expression: those of the module itself, then the files
        near it, then all others; of each the fastest first.
        """
        by_line = self.lines.get(mutation.module, {})
        found = {
            test for line in statement_lines(source, mutation) for test in by_line.get(line, ())
        }
        first = [*own_tests(mutation.module), *near_tests(mutation.module)]
        place = {path: at for at, path in enumerate(dict.fromkeys(first))}
        return sorted(
            found,
            key=lambda test: (place.get(test.partition("::")[0], len(place)), self.seconds[test]),
        )

    def within(self, tests: Sequence[str], limit_s: float) -> list[str]:
        """Those of the tests that take no longer than that together, the first ones first."""
        found, left = [], limit_s
        for test in tests:
            left -= self.seconds.get(test, _NEWER_S)
            if left < 0:
                break
            found.append(test)
        return found


def statement_lines(source: str, mutation: Mutation) -> set[int]:
    """The lines that run if, and only if, the changed expression is used.

    Those of its statement; of a default those of its function; of a constant of the module those
    of all statements that name it; of a class all of the module.
    """
    tree = ast.parse(source)
    way = list(_way_to(tree, mutation.line))
    innermost = way[-1]
    if isinstance(innermost, _FUNCTION):  # a default
        return set(range(innermost.body[0].lineno, (innermost.end_lineno or 0) + 1))
    if any(isinstance(node, _FUNCTION) for node in way):
        return _header_lines(innermost)
    names = set() if isinstance(way[0], ast.ClassDef) else _constants_of(tree, way[0])
    if not names:
        return set(range(1, source.count("\n") + 2))
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and names & _loaded(node)
        for line in _header_lines(node)
    }


def _way_to(tree: ast.AST, line: int) -> Iterator[ast.stmt]:
    """The statements around a line, the outermost first."""
    for node in ast.iter_child_nodes(tree):
        begin, end = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if begin is None or end is None:
            yield from _way_to(node, line)
        elif begin <= line <= end:
            if isinstance(node, ast.stmt):
                yield node
            yield from _way_to(node, line)


def _loaded(node: ast.stmt) -> set[str]:
    """The names that a statement reads, without the statements inside it."""
    inside = (ast.stmt, ast.ExceptHandler, ast.match_case)
    return {
        name
        for child in ast.iter_child_nodes(node)
        if not isinstance(child, inside)
        for name in _names(child, ast.Load)
    }


def _header_lines(node: ast.stmt) -> set[int]:
    """The lines of a statement without those of the statements inside it."""
    body: list[ast.stmt] = getattr(node, "body", [])
    last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return set(range(node.lineno, max(last, node.lineno) + 1))


class _Recorder:
    """Pytest's plugin that tells the coverage which test runs, and takes its time."""

    def __init__(self, coverage: object) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Called by pytest around each test."""
        self.coverage.switch_context(item.nodeid)  # type: ignore[attr-defined]
        began = time.process_time()
        result = yield
        self.seconds[item.nodeid] = round(time.process_time() - began, 3)
        return result


def trace(path: Path, tests: Sequence[str]) -> None:
    """Run these tests once, and write which of them runs which line of the modules to change."""
    from coverage import Coverage  # noqa: PLC0415  # the package is needed for nothing else

    os.environ["CI"] = "1"  # the examples that the mutations are tried with
    coverage = Coverage(data_file=None, include=[f"{ROOT}/{room}/*" for room in TESTS])
    recorder = _Recorder(coverage)
    coverage.start()
    status = pytest.main(["-q", "-p", "no:cacheprovider", *tests], plugins=[recorder])
    coverage.stop()
    if status != 0:
        raise SystemExit("a test fails without a mutation")
    found = coverage.get_data()
    lines: dict[str, dict[int, set[str]]] = defaultdict(dict)
    for name in found.measured_files():
        module = str(Path(name).relative_to(ROOT))
        for line, running in found.contexts_by_lineno(name).items():
            lines[module][line] = recorder.seconds.keys() & set(running)
    write_traced(path, recorder.seconds, lines)


def write_traced(
    path: Path, seconds: Mapping[str, float], lines: Mapping[str, Mapping[int, set[str]]]
) -> None:
    """As JSON: the time of each test, and by module and line the numbers of the tests.

    What the file says of other tests stays there.
    """
    before = Traced.read(path) if path.exists() else Traced({}, {})
    all_seconds = {**before.seconds, **seconds}
    numbers = {test: at for at, test in enumerate(all_seconds)}
    merged: dict[str, dict[int, list[int]]] = {}
    for module in sorted(before.lines.keys() | lines.keys()):
        old, new = before.lines.get(module, {}), lines.get(module, {})
        merged[module] = {
            line: sorted(
                numbers[test]
                for test in {*new.get(line, ()), *(set(old.get(line, ())) - seconds.keys())}
            )
            for line in sorted(old.keys() | new.keys())
        }
    path.write_text(json.dumps({"seconds": all_seconds, "lines": merged}))


def copied(folder: Path) -> None:
    """A copy of what mutations change and tests read; the rest are links."""
    for name in ("nsysmap", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if not path.name.startswith(".") and not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)


def survives(mutation: Mutation, folder: Path, batches: Sequence[Batch], *, timed: bool) -> bool:
    """Whether every test passes in spite of the mutation.

    Tests that no longer end notice it, if they are known to end without it (``timed``); else what
    they would have noticed is not known, and counts as nothing.
    """
    path = folder / mutation.module
    source = path.read_bytes()
    changed = source[: mutation.begin] + mutation.becomes.encode() + source[mutation.end :]
    path.write_bytes(changed)
    try:
        for batch in batches:
            status = run_tests(batch.tests, folder, batch.limit_s)
            if status not in (0, _FAILED, _INTERRUPTED, None):
                raise SystemExit(f"{mutation}: pytest ended with status {status}")
            if status is None and not timed:
                return True
            if status != 0:
                return False
    finally:
        path.write_bytes(source)
    return True


@dataclass(frozen=True)
class Batch:
    """Tests that run in one process, and the processor time that they may take."""

    tests: Sequence[str]
    limit_s: float


def batches(mutation: Mutation, limit_s: Mapping[str, float]) -> list[Batch]:
    """The tests of its room, the likeliest to notice it first; ``limit_s`` is by room."""
    closest = [*own_tests(mutation.module), *near_tests(mutation.module)]
    tests = list(dict.fromkeys((*closest, *tests_of(mutation.module))))
    return [Batch(tests, limit_s[room_of(mutation.module)])]


def run_tests(tests: Sequence[str], folder: Path, limit_s: float) -> int | None:
    """The exit status of the tests, None if they took more than the limit of processor time."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
    status = 3
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s), int(limit_s) + 5))
        os.chdir(folder)
        sys.path[:] = [str(folder), *(one for one in sys.path if one != str(ROOT))]
        sys.dont_write_bytecode = True
        with tempfile.TemporaryDirectory() as cache:
            os.environ |= {
                "PYTHONPATH": str(folder),
                "NSYSMAP_CACHE": cache,
                "PYTHONDONTWRITEBYTECODE": "1",
                "CI": "1",  # the same examples each time
            }
            status = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
    finally:
        os._exit(status)


def _tried(
    chosen: Sequence[Mutation], limit_s: Mapping[str, float], *, timed: bool
) -> list[tuple[str, bool]]:
    """Of each mutation its room and whether it was killed, printed as they come."""
    found = []
    with tempfile.TemporaryDirectory(prefix="mutations-") as place:
        folder = Path(place)
        copied(folder)
        for mutation in chosen:
            began, room = _children_s(), room_of(mutation.module)
            survived = survives(mutation, folder, batches(mutation, limit_s), timed=timed)
            word = "SURVIVED" if survived else "killed  "
            print(f"{word} {_children_s() - began:5.0f} s  {mutation}", flush=True)
            found.append((room, not survived))
    return found


def in_place(
    chosen: Sequence[Mutation], traced: Traced, limit_s: float, workers: int
) -> list[tuple[str, bool]]:
    """Of each mutation its room and whether it was killed, by the traced tests that run its lines.

    The tests are collected once, by a process that forks one for each mutation, which puts the
    changed code into the module that the tests have imported already.
    """
    asked = {
        one: [
            test
            for test in traced.tests(one, (ROOT / one.module).read_text())
            if (ROOT / test.partition("::")[0]).exists()
        ]
        for one in chosen
    }
    loop = _Loop(asked, traced, limit_s, workers)
    files = sorted(
        {test.partition("::")[0] for tests in asked.values() for test in tests}
        | {path for one in chosen for path in near_tests(one.module)}
    )
    os.environ["CI"] = "1"  # the same examples each time
    os.chdir(ROOT)
    if files:
        pytest.main(["-q", "-q", "--capture=no", "-p", "no:cacheprovider", *files], plugins=[loop])
    if len(loop.found) < len(chosen):
        raise SystemExit("the tests could not be collected")
    return loop.found


class _Loop:
    """Pytest's plugin that tries mutations in place of running the tests once."""

    def __init__(
        self,
        asked: Mapping[Mutation, Sequence[str]],
        traced: Traced,
        limit_s: float,
        workers: int,
    ) -> None:
        self.asked, self.traced, self.limit_s, self.workers = asked, traced, limit_s, workers
        self.found: list[tuple[str, bool]] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Called by pytest when all tests are collected; each worker is forked off then."""
        items = {item.nodeid: item for item in session.items}
        with tempfile.TemporaryDirectory(prefix="mutations-") as place:
            children = []
            for worker in range(self.workers):
                child = os.fork()
                if child:
                    children.append(child)
                    continue
                try:
                    mine = list(self.asked)[worker :: self.workers]
                    found = [(room_of(one.module), self._killed(one, items)) for one in mine]
                    (Path(place) / str(worker)).write_text(json.dumps(found))
                finally:
                    os._exit(0)
            for child in children:
                os.waitpid(child, 0)
            for path in Path(place).iterdir():
                self.found += [(room, killed) for room, killed in json.loads(path.read_text())]
        return True

    def _killed(self, mutation: Mutation, items: Mapping[str, pytest.Item]) -> bool:
        names = self._chosen(mutation, list(items))
        tests = [name for name in names if name in items]
        seconds = sum(self.traced.seconds.get(name, _NEWER_S) for name in tests)
        began = _children_s()
        killed = bool(tests) and not _passed(
            mutation, [items[name] for name in tests], int(_START_S + _HANGS * seconds)
        )
        word = "killed  " if killed else "SURVIVED"
        left = len(self.asked[mutation]) - sum(name in self.traced.seconds for name in tests)
        took = f"{_children_s() - began:5.0f} s {len(tests):4} tests, {left} not run"
        print(f"{word} {took}  {mutation}", flush=True)
        return killed

    def _chosen(self, mutation: Mutation, collected: Sequence[str]) -> list[str]:
        """The tests to run: as many of those near the module as half the limit allows, and then as
        many of the others.

        A test that the trace does not know may run what others of its file run; and a constant of a
        module may be read where no line of the module runs.
        """
        near = set(near_tests(mutation.module))
        way = _way_to(ast.parse((ROOT / mutation.module).read_text()), mutation.line)
        anywhere = not any(isinstance(node, _FUNCTION) for node in way)
        traced = self.asked[mutation]
        newer = [
            name
            for name in collected
            if (anywhere or name not in self.traced.seconds)
            and name.partition("::")[0] in near
            and name not in traced
        ]
        mine = [*(name for name in traced if name.partition("::")[0] in near), *newer]
        own = set(own_tests(mutation.module))  # of those that were not timed they come first
        untimed = {name: 0.0 if name.partition("::")[0] in own else _NEWER_S for name in mine}
        mine.sort(key=lambda name: self.traced.seconds.get(name, untimed[name]))
        others = [name for name in traced if name.partition("::")[0] not in near]
        # whole analyses notice most, each something else
        others.sort(key=lambda name: (not name.startswith(_NOTICES), self.traced.seconds[name]))
        half = self.limit_s / 2
        return [*self.traced.within(mine, half), *self.traced.within(others, half)]


def _passed(mutation: Mutation, items: Sequence[pytest.Item], limit_s: int) -> bool:
    """Whether the tests pass, and end, in a process in which the module is changed."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as place:
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _NOT_CHANGED:
                print(f"the module could not be changed: {mutation}", flush=True)
                return True  # not tried, and so not killed
            return status == 0
        status = _NOT_CHANGED
        try:
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 5))
            signal.alarm(_WAITS * limit_s)  # of what waits and takes no processor time
            os.environ["PYTEST_DEBUG_TEMPROOT"] = place
            try:
                change_in_place(mutation)
            except (ArithmeticError, LookupError, TypeError, ValueError, AssertionError):
                os._exit(_FAILED)  # it cannot be imported any more
            status = _FAILED
            for item, after in zip(items, [*items[1:], None], strict=True):
                if any(report.failed for report in runtestprotocol(item, False, after)):
                    os._exit(_FAILED)
            status = 0
        finally:
            os._exit(status)


def change_in_place(mutation: Mutation) -> None:
    """Give the functions of the imported module their changed code, its constants and defaults
    their changed values.
    """
    path = ROOT / mutation.module
    source = path.read_bytes()
    changed = source[: mutation.begin] + mutation.becomes.encode() + source[mutation.end :]
    code = compile(changed, str(path), "exec")
    tree = ast.parse(source)
    way = list(_way_to(tree, mutation.line))
    dotted = mutation.module.removesuffix(".py").replace("/", ".")
    module = importlib.import_module(dotted)
    function = next((one for one in way if isinstance(one, _FUNCTION)), None)
    if function is not None and way[-1] is not function:
        begin = min(one.lineno for one in (function, *function.decorator_list))
        new = next(
            one
            for one in _codes_in(code)
            if one.co_firstlineno == begin and one.co_name == function.name
        )
        done = [one for one in _functions_of(str(path)) if one.__code__.co_firstlineno == begin]
        for one in done:
            if one.__code__.co_qualname == new.co_qualname:
                one.__code__ = new
    else:
        fresh = ModuleType(dotted)
        fresh.__dict__.update({"__package__": module.__package__, "__file__": str(path)})
        sys.modules[dotted] = fresh
        exec(code, fresh.__dict__)
        sys.modules[dotted] = module
        if function is not None:
            done = _with_defaults(module, fresh, way)
        elif isinstance(way[0], ast.ClassDef):
            done = _with_fields(vars(module)[way[0].name], vars(fresh)[way[0].name])
        else:
            done = _with_constants(module, fresh, _constants_of(tree, way[0]))
    if not done:
        raise RuntimeError(f"nothing of {mutation} is in the module")


def _with_defaults(module: ModuleType, fresh: ModuleType, way: Sequence[ast.stmt]) -> list[Any]:
    """The function at the end of the way, with the defaults of that in the fresh module."""
    name = ".".join(one.name for one in way if isinstance(one, (ast.ClassDef, *_FUNCTION)))
    both = _functions_of(str(module.__file__))
    mine, its = (
        [one for one in both if one.__globals__ is vars(of) and one.__qualname__ == name]
        for of in (module, fresh)
    )
    for one, other in zip(mine, its, strict=True):
        one.__defaults__, one.__kwdefaults__ = other.__defaults__, other.__kwdefaults__
    return mine


def _with_fields(class_: Any, fresh: Any) -> list[Any]:
    """The fields of a dataclass with the defaults of the fresh one."""
    for name, field in fresh.__dataclass_fields__.items():
        class_.__dataclass_fields__[name].default = field.default
        if field.default is not MISSING:
            setattr(class_, name, field.default)
    class_.__init__ = fresh.__init__
    return list(fresh.__dataclass_fields__)


def _with_constants(module: ModuleType, fresh: ModuleType, names: set[str]) -> list[Any]:
    """The constants of that name, in whichever modules there are, with the fresh values."""
    done = []
    ours = [one for name, one in sys.modules.items() if name.startswith(("nsysmap", "tests"))]
    for name in names & vars(fresh).keys():
        was = vars(module)[name]
        for one in ours:
            if name in vars(one) and vars(one)[name] is was:
                setattr(one, name, vars(fresh)[name])
                done.append(name)
    return done


def _constants_of(tree: ast.Module, statement: ast.stmt) -> set[str]:
    """The names that a statement of a module sets, and those that are worked out of them."""
    names = _names(statement, ast.Store)
    for other in tree.body:
        if isinstance(other, (ast.Assign, ast.AnnAssign)) and names & _names(other, ast.Load):
            names |= _names(other, ast.Store)
    return names


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, context)
    }


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes_in(one)


def _functions_of(path: str) -> list[FunctionType]:
    """The functions of a module that there are, also those that a decorator wraps."""
    return [
        one
        for one in gc.get_objects()
        if isinstance(one, FunctionType) and one.__code__.co_filename == path
    ]


def _children_s() -> float:
    """The processor time of all test runs so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Prints each mutation with what became of it, and the share killed by room."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("modules", nargs="*", help="modules or rooms; all of TESTS by default")
    parser.add_argument("--sample", type=int, help="so many mutations, drawn by lot")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--limit-s", type=float, default=1800, help="of processor time, for the tests of a room"
    )
    parser.add_argument(
        "--near", action="store_true", help="run the module's own tests and those that import it"
    )
    parser.add_argument("--at-least", type=float, default=0, help="the share killed, in percent")
    parser.add_argument(
        "--untried", action="store_true", help="do not run the tests without a mutation first"
    )
    parser.add_argument("--workers", type=int, default=1, help="mutations tried at the same time")
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="run the tests, all or those named, and write which run what",
    )
    parser.add_argument("--traced", type=Path, metavar="FILE", help="run the tests that it says")
    parser.add_argument("--list", action="store_true", help="print the mutations only")
    asked = parser.parse_args()
    if asked.trace:
        trace(asked.trace, asked.modules or _ALL_TESTS)
        return
    every = [
        mutation
        for module in modules(asked.modules)
        for mutation in mutations(module, (ROOT / module).read_text())
    ]
    chosen = every
    if asked.sample is not None and asked.sample < len(every):
        chosen = sample(every, asked.sample, asked.seed)
    print(f"{len(chosen)} of {len(every)} mutations", flush=True)
    if asked.list:
        print(*chosen, sep="\n")
        return
    limit_s = dict.fromkeys(TESTS, asked.limit_s)
    in_one = asked.traced is not None or asked.near
    if not asked.untried and not in_one:
        with tempfile.TemporaryDirectory(prefix="mutations-") as place:
            copied(Path(place))
            for room in sorted({room_of(one.module) for one in chosen}):
                began = _children_s()
                if run_tests(TESTS[room], Path(place), asked.limit_s) != 0:
                    raise SystemExit(f"{room}: a test fails, or hangs, without a mutation")
                limit_s[room] = _HANGS * (_children_s() - began)
    timed = not asked.untried
    killed: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    if in_one:
        traced = Traced.read(asked.traced) if asked.traced else Traced({}, {})
        for room, was_killed in in_place(chosen, traced, asked.limit_s, asked.workers):
            tried[room] += 1
            killed[room] += was_killed
        _print_shares(killed, tried, asked.at_least)
        return
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("fork")) as workers:
        parts = [chosen[first :: asked.workers] for first in range(asked.workers)]
        runs = [workers.submit(_tried, part, limit_s, timed=timed) for part in parts]
        for run in runs:
            for room, was_killed in run.result():
                tried[room] += 1
                killed[room] += was_killed
    _print_shares(killed, tried, asked.at_least)


def _print_shares(killed: Counter[str], tried: Counter[str], at_least: float) -> None:
    """Ends with exit status 1 if fewer percent were killed."""
    for room, count in tried.items():
        print(f"{room}: {killed[room]} of {count} killed")
    share = 100 * killed.total() / max(tried.total(), 1)
    print(f"all: {killed.total()} of {tried.total()} killed, {share:.0f} %")
    if share < at_least:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
