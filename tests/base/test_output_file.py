"""Output files: whole or not there, and nothing of a killed run left; nothing of anybody else's
removed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.marked_folder import MARK, MARK_TEXT, is_abandoned, marked_folder
from nsysmap.core.output_file import check_output, replacing

_WRITES_AND_IS_KILLED = """
import os, sys
from pathlib import Path
from nsysmap.core.output_file import replacing
with replacing(Path(sys.argv[1])) as fresh:
    fresh.write_text("half")
    print(*os.listdir(Path(sys.argv[1]).parent), flush=True)
    os.kill(os.getpid(), int(sys.argv[2]))
"""


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    with replacing(target) as fresh:
        fresh.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    with pytest.raises(ZeroDivisionError), replacing(target) as fresh:
        fresh.write_text("half")
        raise ZeroDivisionError
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_what_a_killed_run_left_goes_with_the_next_run(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    command = [sys.executable, "-c", _WRITES_AND_IS_KILLED, str(target), str(int(signal.SIGKILL))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    left = [path.name for path in tmp_path.iterdir()]
    assert (done.returncode, done.stdout.split()) == (-signal.SIGKILL, left)
    assert len(left) == 1
    assert left[0].startswith(".out.json.")
    with replacing(target) as fresh:
        fresh.write_text("new")
    assert list(tmp_path.iterdir()) == [target]


def test_only_what_carries_the_mark_and_is_not_in_use_is_removed(tmp_path: Path) -> None:
    theirs = tmp_path / ".out.json.1.part"
    theirs.mkdir()
    (theirs / MARK).write_text("no, by me")
    (tmp_path / ".download.part").write_text("precious")
    (tmp_path / ".link.part").symlink_to(theirs)
    before = sorted(tmp_path.iterdir())
    with marked_folder(tmp_path / ".used.part") as used:
        assert not is_abandoned(used)
        with replacing(tmp_path / "out.json") as fresh:
            fresh.write_text("new")
        assert used.is_dir()
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "out.json"])


def test_a_folder_that_is_taken_is_left_and_another_made(tmp_path: Path) -> None:
    taken = tmp_path / "work.part"
    taken.mkdir()
    (taken / "data").write_text("precious")
    with marked_folder(taken) as folder:
        assert folder != taken
        assert (folder / MARK).read_bytes() == MARK_TEXT
    assert [path.name for path in tmp_path.rglob("*")] == ["work.part", "data"]


def test_a_name_of_the_longest_length_and_of_any_bytes_is_written(tmp_path: Path) -> None:
    for name in ("漢" * 80 + ".json", os.fsdecode(b"\xff" * 100 + b".json")):
        with replacing(tmp_path / name) as fresh:
            fresh.write_text("new")
        assert (tmp_path / name).read_text() == "new"


def test_a_loop_of_links_is_one_line(tmp_path: Path) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    with pytest.raises(NsysmapError, match=r"loop\.json: cannot be written"):
        check_output(loop, (".json",), [])
    with (
        pytest.raises(NsysmapError, match=r"loop\.json: cannot be written"),
        replacing(loop) as fresh,
    ):
        fresh.write_text("new")


def test_a_link_into_a_folder_that_is_not_there_is_refused_before_any_work(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "nowhere" / "file.json")
    with pytest.raises(NsysmapError, match=r"no folder .*nowhere"):
        check_output(link, (".json",), [])
