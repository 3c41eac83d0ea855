"""A signal ends the process wherever it comes, also where the main thread holds a lock of the
interpreter's own; a second one ends it although tidying up hangs.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nsysmap.core.system import SIGNALS

_HEAD = """
import os, signal, sys, threading, time
from pathlib import Path
from nsysmap.core import ending
from nsysmap.core.marked_folder import marked_folder
here = Path(sys.argv[1])
number = int(sys.argv[2])
def signalled():
    os.kill(os.getpid(), number)
ending.end_at_signals()
"""
_HELD = {
    "the import lock": "import _imp; _imp.acquire_lock(); signalled(); _imp.release_lock()",
    "a lock of an import": (
        "import importlib._bootstrap as b; lock = b._get_module_lock('x'); lock.acquire();"
        " signalled()"
    ),
    "the lock of starting threads": "threading._active_limbo_lock.acquire(); signalled()",
    "standard output": "sys.stdout.buffer.write(b'x'); signalled()",
    "our own gate": "ending._gate.acquire(); signalled()",
    "nothing, in a loop": (
        "threading.Timer(0.2, signalled).start()\nwhile True:\n    sum(range(1000))"
    ),
    "nothing, asleep": "threading.Timer(0.2, signalled).start(); time.sleep(600)",
    "a finished block": "signalled()",
}
_SECOND = """
import shutil
ending.MOST_S = 600.0
def for_ever(*given, **named):
    os.write(1, b'tidying')
    time.sleep(600)
shutil.rmtree = for_ever
with marked_folder(here / "x.part"):
    signalled()
"""


def run(program: str, *given: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", _HEAD + program, *map(str, given)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("held", _HELD)
def test_a_signal_ends_it_whatever_is_held(
    held: str, number: signal.Signals, tmp_path: Path
) -> None:
    program = (
        'with marked_folder(here / "x.part") as folder:\n    (folder / "half").write_text("x")'
    )
    done = run(program + "".join(f"\n    {line}" for line in _HELD[held].split("\n")),
               tmp_path, int(number))  # fmt: skip
    assert (done.returncode, done.stderr) == (128 + number, b"")
    assert list(tmp_path.iterdir()) == []


def test_the_child_is_killed_with_what_it_started(tmp_path: Path) -> None:
    grandchild = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    waiting = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(__import__('os').getpid()));"
    program = (
        f"command = [sys.executable, '-c', {grandchild!r}, {waiting + ' input()'!r}]\n"
        "import subprocess\n"
        "with ending.process_noted(command, stdin=subprocess.PIPE):\n"
        "    while not (here / 'pid').exists() or not (here / 'pid').read_text():\n"
        "        time.sleep(0.02)\n"
        "    signalled()"
    )
    assert run(program, tmp_path, int(signal.SIGTERM)).returncode == 128 + signal.SIGTERM
    status = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    for _ in range(500):  # it is killed, which takes the system a moment
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    raise AssertionError("it is still there")


def test_a_second_signal_ends_it_although_tidying_up_hangs(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HEAD + _SECOND, str(tmp_path), str(int(signal.SIGTERM))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(7) == b"tidying"
        for _ in range(100):  # one that comes at once is part of the first
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(0.1)
                break
            except subprocess.TimeoutExpired:
                continue
        assert process.wait(30) == 128 + signal.SIGTERM


def test_tidying_up_that_hangs_ends_by_itself(tmp_path: Path) -> None:
    done = run(_SECOND.replace("600.0", "0.5"), tmp_path, int(signal.SIGINT))
    assert done.returncode == 128 + signal.SIGINT


def test_what_is_made_while_the_signal_comes_is_noted_before_the_end(tmp_path: Path) -> None:
    program = (
        "def make():\n"
        "    (here / 'late').mkdir(); signalled(); time.sleep(0.1)\n"
        "    return here / 'late'\n"
        "with ending.folder_noted(make):\n    print('never')"
    )
    done = run(program, tmp_path, int(signal.SIGTERM))
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, b"")
    assert list(tmp_path.iterdir()) == []


def test_as_a_library_an_interrupt_is_pythons_own_and_tidies_up(tmp_path: Path) -> None:
    program = 'with marked_folder(here / "x.part"):\n    signalled()'
    head = _HEAD.replace("ending.end_at_signals()", "")
    command = [sys.executable, "-c", head + program, str(tmp_path), str(int(signal.SIGINT))]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert b"KeyboardInterrupt" in done.stderr
    assert list(tmp_path.iterdir()) == []
