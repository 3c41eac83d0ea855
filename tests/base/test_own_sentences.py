"""No code reads our own sentences: what functions that make words return, and the fields of records
that hold words, are shown and joined, never cut, split, matched or searched.

What is checked: in the rooms that make or show the answer, the result of such a function, a
variable that was given one, or such a field, is no receiver of an operation on text, is not
subscripted, is no argument of `re`, and is not searched with `in`.  A sentence that goes through a
parameter, a table or a template is not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import nsysmap
from nsysmap.core.result_schema import ROOFLINE, ROOFLINE_FROM_COUNTERS

PACKAGE = Path(nsysmap.__file__).parent
ROOMS = ("answer", "comparison", "output", "whatif", "fleet", "cli", "counters", "timing", "rules")
WORDS = ("words", "gains", "costs", "whose", "next_steps", "ranks", "hardware", "first_use")
PHRASES = (
    "text/units.py",
    "core/idle_causes.py",
    "comparison/pages.py",
    "comparison/inference_page.py",
    *(f"answer/{name}.py" for name in WORDS),
)
MODULES = frozenset({*WORDS, "answer", "units"})
"""Names under which these modules are imported whole."""
CUTS = "startswith endswith partition rpartition split rsplit splitlines removeprefix removesuffix"
SEARCHES = "replace find rfind index lower casefold strip rstrip lstrip"
OPERATIONS = frozenset(f"{CUTS} {SEARCHES}".split())
FIELDS = frozenset(
    "unit what reason phase drift test told title assumptions host_work whose because".split()  # noqa: SIM905
)


def test_no_code_reads_our_own_sentences() -> None:
    phrases = set(_phrase_functions())
    assert {"rounded", "title", "gain", "costs_heading", "idle_words"} <= phrases
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for room in ROOMS
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for tree in [ast.parse(path.read_text("utf-8"))]
        for line in _operated(tree, phrases, phrases & _own_names(path, tree))
    ]
    assert not found


def test_the_check_finds_what_it_is_for() -> None:
    cuts = {
        "rounded(3).split()[0]": True,
        "told = rounded(3)\ntold.partition(' (')": True,
        "words.title(summary).removeprefix('x')": True,
        "'together' in words.title(summary)": True,
        "told = rounded(3)\nre.sub('a', 'b', told)": True,
        "summary.unit.startswith('pass')": True,
        "rounded(3)[0]": True,
        "f'{rounded(3)} and {title}'": False,
        "name.partition('(')": False,
        "np.title(rows)[0]": False,
    }
    for code, cut in cuts.items():
        phrases = {"rounded", "title"}
        assert bool([*_operated(ast.parse(code), phrases, phrases)]) == cut, code


def _phrase_functions() -> Iterator[str]:
    """The functions that return a text, of the modules that make words."""
    for name in PHRASES:
        for node in ast.parse((PACKAGE / name).read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and ast.unparse(node.returns or node) == "str":
                yield node.name


def _own_names(path: Path, tree: ast.Module) -> set[str]:
    """The names that stand for functions of those modules in a module."""
    modules = {f"nsysmap/{name}".removesuffix(".py").replace("/", ".") for name in PHRASES}
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in modules
        for alias in node.names
    }
    if str(path.relative_to(PACKAGE)) in PHRASES:
        names |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return names


def _operated(tree: ast.Module, phrases: set[str], bare: set[str]) -> Iterator[int]:
    """The lines where words are operated on; ``bare`` are the functions without a module."""
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    scopes: list[ast.AST] = [*functions] or [tree]
    for scope in scopes:
        targets = [
            (target, node.value)
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign | ast.NamedExpr)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        ]
        given = {
            target.id
            for target, value in targets
            if isinstance(target, ast.Name) and _is_phrase(value, phrases, bare)
        }
        yield from (
            node.lineno
            for node in ast.walk(scope)
            if isinstance(node, ast.expr)
            for read in _read(node)
            if _is_phrase(read, phrases, bare)
            or (isinstance(read, ast.Name) and read.id in given)
            or (isinstance(node, ast.Call) and _is_field(read))
        )


def _read(node: ast.expr) -> list[ast.expr]:
    """The values that an expression reads as text."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        receiver = node.func.value
        if isinstance(receiver, ast.Name) and receiver.id == "re":
            return node.args
        return [receiver] if node.func.attr in OPERATIONS else []
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return [node.comparators[0]]
    return []


def _is_phrase(node: ast.expr, phrases: set[str], bare: set[str]) -> bool:
    """Whether a value is what a function that makes words returned."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Attribute):
        of = called.value
        return isinstance(of, ast.Name) and of.id in MODULES and called.attr in phrases
    return isinstance(called, ast.Name) and called.id in bare


def _is_field(node: ast.expr) -> bool:
    """Whether a value is a field that holds words."""
    return isinstance(node, ast.Attribute) and node.attr in FIELDS


def test_the_columns_that_counters_fill_are_those_that_say_so() -> None:
    said = {one.name for one in ROOFLINE.columns if one.comment.endswith("from counters")}
    assert said == ROOFLINE_FROM_COUNTERS
