"""Changes one expression of nsysmap at a time, and counts the changes that no test notices.

    python benchmarks/mutations.py --sample 30 --seed 1            # a sample of all rooms below
    python benchmarks/mutations.py nsysmap/whatif/replay.py        # every mutation of a module
    python benchmarks/mutations.py nsysmap/timing --list           # what would be changed

Each mutation is made in a copy of the working tree, and the tests of its module's room run there
until one fails or the time limit is over: it is killed, or it survived.  The tests run in a process
that is forked off this one, which has imported what they need beside nsysmap.  Exit status 1 if the
share killed is below `--at-least`.

    python benchmarks/mutations.py --sample 66 --seed 3 --near --limit-s 60 --untried

runs only the tests that are near the module: its own and those of the room that import it.  What
survives those may be killed by the others, so that the share is a lower bound.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import resource
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

# imported before the forks, so that no run of the tests has to
import duckdb  # noqa: F401
import hypothesis  # noqa: F401
import numpy  # noqa: F401  # noqa: ICN001
import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pytest

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
)
"""Mutations that are not tried, and why no test could notice them."""

_HANGS = 5  # times as long as without a mutation: the tests no longer end
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

    Types, strings, decorators and what only a type checker runs are left as they are.
    """
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, (ast.JoinedStr, ast.Raise)):
                continue
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            if isinstance(node, ast.expr):
                texts = _instead(node)
                if texts:
                    yield node, texts
                if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
                    continue  # a negative number is one
            yield from _changes(node)


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
    """The test files that import the module, those of its room first; its own come before them."""
    dotted = module.removesuffix(".py").replace("/", ".")
    package, _, name = dotted.rpartition(".")
    ways = (f"from {dotted} import", f"import {dotted}", f"from {package} import {name}")
    room = tests_of(module)
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if any(way in path.read_text() for way in ways)
    ]
    return sorted(found, key=lambda path: not path.startswith(tuple(room)))


def copied(folder: Path) -> None:
    """A copy of what mutations change and tests read; the rest are links."""
    for name in ("nsysmap", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if not path.name.startswith(".") and not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)


def survives(mutation: Mutation, folder: Path, limit_s: float, *, near: bool, timed: bool) -> bool:
    """Whether every test passes in spite of the mutation.

    Tests that no longer end notice it, if they are known to end without it (``timed``); else what
    they would have noticed is not known, and counts as nothing.
    """
    path = folder / mutation.module
    source = path.read_bytes()
    changed = source[: mutation.begin] + mutation.becomes.encode() + source[mutation.end :]
    path.write_bytes(changed)
    try:
        closest = [*own_tests(mutation.module), *near_tests(mutation.module)]
        tests = closest if near and closest else [*closest, *tests_of(mutation.module)]
        status = run_tests(list(dict.fromkeys(tests)), folder, limit_s)
    finally:
        path.write_bytes(source)
    if status not in (0, _FAILED, _INTERRUPTED, None):
        raise SystemExit(f"{mutation}: pytest ended with status {status}")
    return status == 0 or (status is None and not timed)


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
    chosen: Sequence[Mutation], limit_s: Mapping[str, float], *, near: bool, timed: bool
) -> list[tuple[str, bool]]:
    """Of each mutation its room and whether it was killed, printed as they come."""
    found = []
    with tempfile.TemporaryDirectory(prefix="mutations-") as place:
        folder = Path(place)
        copied(folder)
        for mutation in chosen:
            began, room = _children_s(), room_of(mutation.module)
            survived = survives(mutation, folder, limit_s[room], near=near, timed=timed)
            word = "SURVIVED" if survived else "killed  "
            print(f"{word} {_children_s() - began:5.0f} s  {mutation}", flush=True)
            found.append((room, not survived))
    return found


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
    parser.add_argument("--list", action="store_true", help="print the mutations only")
    asked = parser.parse_args()
    every = [
        mutation
        for module in modules(asked.modules)
        for mutation in mutations(module, (ROOT / module).read_text())
    ]
    chosen = every
    if asked.sample is not None and asked.sample < len(every):
        lot = random.Random(asked.seed)
        chosen = sorted(
            lot.sample(every, asked.sample), key=lambda one: (one.module, one.begin, one.becomes)
        )
    print(f"{len(chosen)} of {len(every)} mutations", flush=True)
    if asked.list:
        print(*chosen, sep="\n")
        return
    limit_s = dict.fromkeys(TESTS, asked.limit_s)
    if not asked.untried:
        with tempfile.TemporaryDirectory(prefix="mutations-") as place:
            copied(Path(place))
            for room in sorted({room_of(one.module) for one in chosen}):
                began = _children_s()
                if run_tests(TESTS[room], Path(place), asked.limit_s) != 0:
                    raise SystemExit(f"{room}: a test fails, or hangs, without a mutation")
                limit_s[room] = _HANGS * (_children_s() - began)
    killed: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("fork")) as workers:
        parts = [chosen[first :: asked.workers] for first in range(asked.workers)]
        runs = [
            workers.submit(_tried, part, limit_s, near=asked.near, timed=not asked.untried)
            for part in parts
        ]
        for run in runs:
            for room, was_killed in run.result():
                tried[room] += 1
                killed[room] += was_killed
    for room, count in tried.items():
        print(f"{room}: {killed[room]} of {count} killed")
    share = 100 * killed.total() / max(tried.total(), 1)
    print(f"all: {killed.total()} of {tried.total()} killed, {share:.0f} %")
    if share < asked.at_least:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
