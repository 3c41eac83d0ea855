"""Reports made to take much: refused in one line where their own size does not explain what they
hold, and read in bounded memory otherwise.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.nsys.own_reader import own_tables
from tests import report_bombs as bombs

SMALL = 100_000
REFUSED = {
    "empty_strings": "strings are",
    "large_strings": "strings are",
    "empty_events": "which no real events are",
    "long_events": "a count of",
    "large_blocks": "when decompressed",
}


@pytest.mark.parametrize("name", bombs.BOMBS)
def test_each_is_read_or_is_one_line(name: str, tmp_path: Path) -> None:
    path = bombs.BOMBS[name](SMALL).write(tmp_path / "bomb.nsys-rep")
    try:
        own_tables(path)
    except NsysmapError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(("name", "what"), REFUSED.items())
def test_what_the_size_of_the_file_does_not_explain_is_refused(
    name: str, what: str, tmp_path: Path
) -> None:
    path = bombs.BOMBS[name](1 << 20).write(tmp_path / "bomb.nsys-rep")
    with pytest.raises(NsysmapError, match="is damaged") as raised:
        own_tables(path)
    assert what in raised.value.what


@pytest.mark.parametrize("name", ["empty_strings", "many_strings", "idle_samples"])
def test_memory_is_at_most_64_times_the_file_and_256_mib(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.nsys-rep"
    status, memory, _ = bombs.tried(name, 1 << 20, path, "map")
    assert status in (0, 2)
    assert memory <= bombs.TIMES * path.stat().st_size + bombs.FREE_BYTES
