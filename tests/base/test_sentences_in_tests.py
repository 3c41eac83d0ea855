"""How many tests hold a sentence of ours: a phrase that changes ought to change golden files, and
no other test.

A test holds one if something that it asserts, or the `match` of an error that it expects, has four
words in a row that stand so in a text of the package or of a built-in rule.  A few words that name
what is meant, and figures, are no sentence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = 4
MOST = 118
"""Tests that hold one today; fewer is better, and this number then follows."""

STRANGERS = ("Reformatting CopyNode for Input Tensor", "NVIDIA Nsight Systems Report")
"""What TensorRT and nsys write, which the package only reads."""

Run = tuple[str, ...]


def test_few_tests_hold_our_sentences() -> None:
    ours = _ours()
    sentence, name = "a b is not a plain column name", "plain column name"
    for text, holds in ((sentence, ["test_a"]), (name, [])):
        assert _held(ast.parse(f"def test_a():\n    assert {text!r} in told"), ours) == holds
    holding = [
        f"{path.relative_to(ROOT)}::{name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in _held(ast.parse(path.read_text("utf-8")), ours)
    ]
    assert len(holding) <= MOST, f"{len(holding)}: assert on what the words are made of"


def _held(tree: ast.Module, ours: set[Run]) -> list[str]:
    """The tests of a module that hold a sentence of these."""
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if any(not ours.isdisjoint(_runs(text)) for text in _asserted(node))
    ]


def _asserted(test: ast.FunctionDef) -> Iterator[str]:
    """The texts that a test expects."""
    for node in ast.walk(test):
        if isinstance(node, ast.Assert):
            expected = [node.test]
        elif isinstance(node, ast.Call):
            expected = [one.value for one in node.keywords if one.arg == "match"]
        else:
            continue
        for one in expected:
            yield from (re.sub(r"\\(.)", r"\1", text) for text in _constants(one))


def _constants(tree: ast.AST, but: frozenset[int] = frozenset()) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in but:
            yield node.value


def _runs(text: str) -> Iterator[Run]:
    """The words of a text, so many in a row: what is neither a word nor stands between two of one
    sentence ends a row.
    """
    for part in re.split(r"\{[^}]*\}|[^A-Za-z' ,;:()-]+", text):
        words = [word.lower() for word in re.findall(r"[A-Za-z][A-Za-z'-]*", part)]
        yield from (tuple(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1))


def _ours() -> set[Run]:
    """What stands in the texts of the package, of its pages and of the built-in rules."""
    found: set[Run] = set()
    for path in (ROOT / "nsysmap").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        docs = frozenset(
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        )
        for text in _constants(tree, docs):
            found.update(_runs(_filled(text)))
    for path in (ROOT / "rules").rglob("*.yaml"):
        found.update(_runs(_filled(path.read_text("utf-8").partition("\ncases:")[0])))
    for suffix in ("j2", "js"):
        for path in (ROOT / "nsysmap").rglob(f"*.{suffix}"):
            found.update(_runs(re.sub(r"<[^>]*>", "<", path.read_text("utf-8"))))
    return found - {run for text in STRANGERS for run in _runs(text)}


def _filled(template: str) -> str:
    """A template with the word for what runs (see `nsysmap.text.units.worded`)."""
    return re.sub(r"\{:([^}]*)\}", r"\1", template)
