"""Every number that stands alone at the head of a module says what it is, or why it is that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import nsysmap

PACKAGE = Path(nsysmap.__file__).parent


def test_every_constant_has_its_reason() -> None:
    bare = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in _bare(path.read_text("utf-8"))
    ]
    assert not bare


def test_a_reason_stands_beside_before_or_behind_it() -> None:
    assert [*_bare("A = 1\nB = 2  # seconds\n# of those\nC = 3\nD = 4\n'''Of these.'''")] == [1]


def _bare(source: str) -> Iterator[int]:
    """The lines of the constants that are numbers and have neither a comment nor a text."""
    lines, body = source.split("\n"), ast.parse(source).body
    for at, node in enumerate(body):
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        after = body[at + 1] if at + 1 < len(body) else None
        told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        inside = any("#" in lines[line - 1] for line in range(node.lineno, _end(node) + 1))
        above = node.lineno > 1 and lines[node.lineno - 2].lstrip().startswith("#")
        if _is_number(node.value) and not (told or inside or above):
            yield node.lineno


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.BinOp) and _is_number(node.left) and _is_number(node.right)
