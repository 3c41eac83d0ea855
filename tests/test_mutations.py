"""What `benchmarks/mutations.py` changes."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from tests.places import ROOT

TOOL = runpy.run_path(str(ROOT / "benchmarks" / "mutations.py"))


@pytest.mark.parametrize(
    ("source", "becomes"),
    [
        ("x = a < 7", ["x = ((a) <= (7))", "x = ((a) >= (7))", "x = a < 8"]),
        ("x = a and b", ["x = ((a))", "x = ((b))"]),
        ("x = not a", ["x = (a)"]),
        ("x = ~a & b", ["x = (b)", "x = (~a)", "x = (a) & b"]),
        ("x = min(a, b)", ["x = max(a, b)"]),
        ("x = np.maximum(a, b)", ["x = np.minimum(a, b)"]),
        ("x = -2.5", ["x = 2.5"]),
        ("x = 5_000", ["x = 10000"]),
        ("x = a - b", ["x = ((a) + (b))"]),
        ("x = True", ["x = False"]),
        ("x: int | None = f'{3}'", []),  # types and texts are left alone
        ("é = 'é', 1", ["é = 'é', 2"]),
        ("Amount = Array | int", []),
        ("x = zip(a, b, strict=True)", []),
        ("_BOTH = _ONE | _TWO", ["_BOTH = (_ONE)", "_BOTH = (_TWO)"]),
    ],
)
def test_one_expression_is_changed_at_a_time(source: str, becomes: list[str]) -> None:
    data = source.encode()
    made = [
        (data[: one.begin] + one.becomes.encode() + data[one.end :]).decode()
        for one in TOOL["mutations"]("m.py", source)
    ]
    assert sorted(made) == sorted(becomes)


def test_every_module_that_is_mutated_has_tests() -> None:
    modules = TOOL["modules"]([])
    assert len(modules) > 50
    for module in modules:
        assert all((ROOT / path).exists() for path in TOOL["tests_of"](module))


@pytest.mark.parametrize("same", TOOL["EQUIVALENT"], ids=lambda one: one.module)
def test_what_is_called_equivalent_is_still_there_and_is_not_tried(same: Any) -> None:
    source = (ROOT / same.module).read_text()
    assert same.reason
    assert same.line in [line.strip() for line in source.splitlines()]
    lines = source.splitlines()
    assert not [
        one
        for one in TOOL["mutations"](same.module, source)
        if one.becomes == same.becomes and lines[one.line - 1].strip() == same.line
    ]
