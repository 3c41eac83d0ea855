"""Sends SIGINT, SIGTERM and SIGHUP to every command at random moments: python
benchmarks/signals.py [SIGNALS [SEED]].

Each run must end within 2 s of the signal, with the status that says so (or its own, where it was
done already), without a traceback, and leave no process, no unfinished file and no folder: in the
output's folder, in the cache, and in the folder of temporary files. Prints a line a command, and
every run that did not; exit status 1 if there is one.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
BERT = ROOT / "fixtures" / "bert_trt10"
SQLITE, REPORT, ENGINE = (
    str(BERT / name) for name in ("sync.sqlite", "graph.nsys-rep", "engine.json")
)
LIMIT_S = 2.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

COMMANDS: Mapping[str, Sequence[str]] = {
    "map": ("map", SQLITE, ENGINE, "-o", "m.csv", "-o", "m.parquet", "-o", "m.json"),
    "map, .nsys-rep": ("map", REPORT, "--reader", "own", "-o", "m.csv"),
    "map, through nsys": ("map", REPORT, "--reader", "nsys", "-o", "m.csv"),
    "analyze": ("analyze", SQLITE, ENGINE, "--no-cache", "-o", "r.html", "-o", "r.json",
                "-o", "r.db", "-o", "r.md", "-o", "r.perfetto-trace"),
    "analyze with given rules": ("analyze", SQLITE, "--rules", "pack", "--json"),
    "compare": ("compare", SQLITE, str(BERT / "graph.sqlite"), "-o", "c.html"),
    "inference": ("inference", SQLITE, ENGINE, "slowest"),
    "gate": ("gate", SQLITE, "--budget", "budget.toml"),
    "baseline": ("baseline", SQLITE, "-o", "b.json"),
    "layers": ("layers", ENGINE, SQLITE),
    "graph": ("graph", ENGINE, "-o", "g.svg"),
    "what-if": ("what-if", SQLITE, ENGINE, "--change", "cuda-graph"),
    "plot": ("plot", SQLITE, ENGINE, "layers", "-o", "p.png"),
    "export": ("export", "--trex", "trex", SQLITE, ENGINE),
    "sql": ("sql", SQLITE, "SELECT count(*) FROM kernels a, kernels b WHERE a.start_ns < b.end_ns"),
    "decode": ("decode", SQLITE),
    "rules": ("rules", "test", str(ROOT / "rules" / "copy")),
    "doctor": ("doctor",),
    "fleet": ("fleet", "in", "-o", "fleet"),
}  # fmt: skip


@dataclass
class Tried:
    """What came of the runs of one command."""

    whole_s: float
    status: int  # of the whole run
    runs: int = 0
    longest_s: float = 0.0
    starting: int = 0  # interrupts while Python itself starts, which are Python's own
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def prepared(folder: Path) -> dict[str, str]:
    """The environment of a run, with folders of its own."""
    for name in ("out", "cache", "tmp"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
    (folder / "out" / "in").mkdir()
    for name in ("sync.sqlite", "graph.sqlite"):
        os.link(folder / name, folder / "out" / "in" / name)
    (folder / "out" / "pack").mkdir()
    rule = ROOT / "rules" / "copy" / "pageable-copy.yaml"
    text = rule.read_text("utf-8").replace("name: pageable-copy", "name: strange-copy")
    (folder / "out" / "pack" / "strange-copy.yaml").write_text(text, "utf-8")
    (folder / "out" / "budget.toml").write_text('[time]\nrecorded = "9 s"\n')
    return {
        **os.environ,
        "NSYSMAP_CACHE": str(folder / "cache"),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": str(ROOT),
    }


def started(command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """The command, in the folder of outputs; with the signals as a shell leaves them."""
    env = prepared(folder)
    return subprocess.Popen(
        [sys.executable, "-m", "nsysmap", *command],
        cwd=folder / "out",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=as_in_a_shell,  # noqa: PLW1509  # this process has no other thread
    )


def as_in_a_shell() -> None:
    """A background job of a script ignores interrupts, which is not what is tried."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def left_processes(folder: Path) -> list[str]:
    """The processes that have this run's cache in their environment."""
    marked = f"NSYSMAP_CACHE={folder / 'cache'}\0".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if marked in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:120])
        except OSError:
            continue
    return found


def left_files(folder: Path) -> list[str]:
    """What a run may not leave: anything that is unfinished."""
    hidden = [str(path) for path in (folder / "out").rglob(".*")]
    working = [str(path) for path in (folder / "cache").iterdir() if path.is_dir()]
    return [*hidden, *working, *map(str, (folder / "tmp").iterdir())]


def tried_once(
    command: Sequence[str], folder: Path, after_s: float, number: int, told: Tried
) -> None:
    process = started(command, folder)
    time.sleep(after_s)
    sent = time.monotonic()
    process.send_signal(number)
    wrong = []
    try:
        _, said = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        wrong.append("did not end in 20 s")
        process.kill()
        _, said = process.communicate()
    took = time.monotonic() - sent
    told.runs += 1
    told.longest_s = max(told.longest_s, took)
    told.statuses[process.returncode] += 1
    if took > LIMIT_S:
        wrong.append(f"took {took:.1f} s")
    starting = process.returncode in (-number, 1) and b"nsysmap/cli" not in said
    starting = starting and b"KeyboardInterrupt" in said
    if process.returncode not in (128 + number, -number, told.status) and not starting:
        wrong.append(f"status {process.returncode}")
    told.starting += starting
    if b"Traceback" in said and not starting:
        wrong.append(said.decode(errors="replace").strip().splitlines()[-1])
    end = time.monotonic() + LIMIT_S
    while (processes := left_processes(folder)) and time.monotonic() < end:
        time.sleep(0.02)
    wrong += [f"left the process {one}" for one in processes]
    wrong += [f"left {one}" for one in left_files(folder)]
    told.wrong += [f"after {after_s:.3f} s, {signal.Signals(number).name}: {one}" for one in wrong]


def main(given: Sequence[str]) -> int:
    number, seed = (*map(int, given), *(500, 1)[len(given) :])
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="nsysmap-signals."))
    for name in ("sync.sqlite", "graph.sqlite"):
        shutil.copy(BERT / name, folder / name)
    failed = 0
    print("command | runs | whole run, s (status) | longest after a signal, s | statuses")
    try:
        for place, (name, command) in enumerate(COMMANDS.items()):
            began = time.monotonic()
            with started(command, folder) as process:
                try:
                    process.communicate(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
            told = Tried(time.monotonic() - began, process.returncode)
            share = number // len(COMMANDS) + (place < number % len(COMMANDS))
            for run in range(share):
                after_s = chance.uniform(0, 1.05) * told.whole_s
                tried_once(command, folder, after_s, SIGNALS[run % len(SIGNALS)], told)
            statuses = ", ".join(f"{one}: {count}" for one, count in sorted(told.statuses.items()))
            whole = f"{told.whole_s:.2f} ({told.status})"
            print(f"{name} | {told.runs} | {whole} | {told.longest_s:.2f} | {statuses}")
            if told.starting:
                print(f"  {told.starting} while Python itself was starting, which told so")
            for line in told.wrong:
                print(f"  {line}")
            failed += len(told.wrong)
            sys.stdout.flush()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{failed} wrong")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
