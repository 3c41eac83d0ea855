"""The CPU samples of a report, block by block, and the stacks of chosen ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import MISSING
from nsysmap.inputs.nsys.report_samples import sample_blocks, stacks_of
from tests.made_report import Made, message

Frame = tuple[int | None, int | None]


def sample(start: int, *frames: Frame, thread: int = 9) -> bytes:
    stack = [
        (4, [(field, one) for field, one in zip((1, 2), frame, strict=True) if one is not None])
        for frame in frames
    ]
    return message((1, 31), (104, [(1, start), *stack, (11, thread)]))


def written(folder: Path, *events: bytes) -> Path:
    path = folder / "made.nsys-rep"
    path.write_bytes(Made(events=list(events), strings=["a", "b"], per_block=2).data())
    return path


STACKS: tuple[tuple[Frame, ...], ...] = (
    ((1, 2),),
    ((3, 4), (5, 6)),
    (),
    ((7, None), (None, 8)),
    ((9, 10),),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(
        tmp_path, *(sample(100 * at, *stack, thread=at) for at, stack in enumerate(STACKS))
    )


def test_samples_are_numbered_from_1_through_all_blocks(path: Path) -> None:
    blocks = list(sample_blocks(path))
    assert len(blocks) > 1
    columns = [np.concatenate([block[name] for block in blocks]).tolist() for name in blocks[0]]
    assert columns == [[1, 2, 3, 4, 5], [0, 100, 200, 300, 400], [0, 1, 2, 3, 4]]


@pytest.mark.parametrize(
    "ids", [[1, 2, 3, 4, 5], [2], [3], [4], [1, 5], [2, 3], [5], [], [4, 5, 6, 99]]
)
def test_the_stacks_of_chosen_samples_are_theirs_by_depth(path: Path, ids: list[int]) -> None:
    found = stacks_of(path, np.array(ids, np.int64))
    rows = list(zip(*(column.tolist() for column in found.values()), strict=True))
    assert rows == [
        (number, *(MISSING if one is None else one for one in frame), depth)
        for number in ids
        if number <= len(STACKS)
        for depth, frame in enumerate(STACKS[number - 1])
    ]


@pytest.mark.parametrize("frame", [(1 << 63, 1), (1, 1 << 63)])
def test_a_name_s_number_is_one_that_there_can_be(tmp_path: Path, frame: Frame) -> None:
    with pytest.raises(NsysmapError):
        stacks_of(written(tmp_path, sample(1, frame)), np.array([1]))
    most = (1 << 63) - 1
    found = stacks_of(written(tmp_path, sample(1, (most, most))), np.array([1]))
    assert [column.tolist() for column in found.values()][1:3] == [[most], [most]]
