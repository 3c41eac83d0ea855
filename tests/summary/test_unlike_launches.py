"""A kernel that is launched many times, each time for data of another size, leads what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap.answer.next_steps import long_kernel
from nsysmap.answer.summarize import summarize
from nsysmap.api import analyze
from tests.nsys_file import NsysFile

US = 1000


@pytest.mark.parametrize("grids", [range(5, 95, 3), [8] * 30])
def test_a_loop_is_asked_for_only_where_launches_are_alike(
    tmp_path: Path, grids: list[int]
) -> None:
    """Thirty images, and before each a few kernels that are no turn of a loop."""
    file, now, correlation = NsysFile(), 1000, 0
    for number, grid in enumerate(grids):
        for name, took in ((f"once_{number}", 5 * US), ("scan", 10 * grid * US)):
            correlation += 1
            file.call("cudaLaunchKernel_v7000", now, now + 2, correlation)
            file.kernel(name, now + 10, correlation, grid=grid, took=took)
            now += took + US * (1 + number % 7)
    tables = analyze(file.write(tmp_path / "x.sqlite"), rules=[]).tables.by_name()
    assert not len(tables["inferences"])
    found = long_kernel(tables)
    if len(set(grids)) > 1:
        assert found is not None and (found.name, found.launches) == ("scan", 30)
    else:
        assert found is None
    asked = any("record" in step.command for step in summarize(tables).next_steps)
    assert asked == (found is None)
