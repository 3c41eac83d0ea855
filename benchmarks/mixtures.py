"""Measures the mapping without ranges on mixtures made of captures whose truth is known: right and
wrong by case, and by confidence.

usage: python benchmarks/mixtures.py CAPTURES [--seeds N] [--only WORD] [--work FOLDER]

CAPTURES holds one folder an engine (or several engines) with a `sync` report, engine files, and
truth.tsv or sync.kernels.tsv. Each mixture launches inferences of one engine (A) or two (A and B)
on one stream, with random pauses between any two kernels, kernels of other programs with random
names, and kernels missing.  A kernel of an engine whose file is not given, and one of another
program, is right when it has no layer.

The last table holds the confidences to what was right, for each engine.
"""

from __future__ import annotations

import argparse
import csv
import random
import shutil
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from nsysmap.inputs.nsys.export import export
from nsysmap.mapping.mapped_trace import map_trace, read_engines
from nsysmap.trace.open_report import open_trace

# the files of folders with several engines, in the order in which the truth numbers them
ENGINES = {
    "decode_loop": ("context.engine.json", "generation.engine.json"),
    "torch_mixed": ("backbone.engine.json", "head.engine.json"),
    "two_gpus": ("tp.engine.json",),
}
EMPTIED = (
    "NVTX_EVENTS",
    "PROFILER_OVERHEAD",
    "CUDA_GRAPH_NODE_EVENTS",
    *(
        f"CUPTI_ACTIVITY_KIND_{name}"
        for name in ("SYNCHRONIZATION", "MEMCPY", "MEMSET", "RUNTIME", "KERNEL")
    ),
)
WORDS = (
    "resize",
    "crop",
    "norm",
    "blend",
    "scan",
    "hash",
    "mask",
    "yuv",
    "warp",
    "sort",
    "mean",
    "fill",
    "decode",
    "gather",
    "box",
    "roi",
)
ENDINGS = ("_kernel", "Kernel<float>", "<int, 4>", "", "::apply<__half>(int)")
# ns before a kernel; before the first one of an inference
PAUSES, FIRST_PAUSES = (
    (300, 800, 2000, 9000),
    (2000, 9000, 30_000),
)
TURNS = 16
BINS = (0.0, 0.5, 0.7, 0.9, 0.99, 1.01)


@dataclass(frozen=True)
class Launch:
    """One kernel, the layer that it is right in (None for none), and how long the host paused
    before it.
    """

    name: str
    short: str
    took_ns: int
    grid: tuple[int, int, int]
    block: int
    layer: str | None
    pause_ns: int = 800


@dataclass(frozen=True)
class Source:
    """One engine, and inferences of it as they were captured."""

    name: str
    engine: Path
    base: Path  # the export that they are from
    layers: tuple[str, ...]  # files with the same layers are not told apart
    inferences: tuple[tuple[Launch, ...], ...]


@dataclass
class Tally:
    """What a case came to."""

    kernels: int = 0
    right: int = 0
    wrong: int = 0

    def add(self, other: Tally) -> None:
        """Counts another case too."""
        self.kernels, self.right, self.wrong = (
            self.kernels + other.kernels,
            self.right + other.right,
            self.wrong + other.wrong,
        )


@dataclass
class Record:
    """Every placed kernel: whose mixture it is in, its confidence, whether it is right."""

    source: list[str] = field(default_factory=list)
    sure: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)


def sources(folder: Path, work: Path) -> Iterator[Source]:
    for report in sorted(folder.glob("*/sync.nsys-rep")):
        where = report.parent
        base = work / f"{where.name}.sqlite"
        if not base.exists():
            shutil.copy(export(report), base)
        truth = where / "sync.kernels.tsv"
        for number, name in enumerate(ENGINES.get(where.name, ("engine.json",))):
            if not (where / name).exists():
                continue
            engine = read_engines([where / name])[0]
            names = [layer.name for layer in engine.layers]
            if truth.exists():
                found = by_kernel(base, truth, number, names)
            elif (where / "truth.tsv").exists():
                found = by_position(base, where / "truth.tsv", names)
            else:
                continue
            longest = max(map(len, found))
            whole = tuple(one for one in found if len(one) >= 0.9 * longest)
            yield Source(
                f"{where.name}/{name.partition('.')[0]}", where / name, base, tuple(names), whole
            )


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as text:
        return list(csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE))


def launches(base: Path) -> list[tuple[int, int, Launch]]:
    """The kernels in the order of their launches, each with its start and device."""
    with sqlite3.connect(f"file:{base}?mode=ro", uri=True) as tables:
        found = tables.execute(
            "SELECT k.start, k.deviceId, n.value, s.value, k.end - k.start, k.gridX, k.gridY,"
            " k.gridZ, k.blockX FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME"
            " r ON r.correlationId = k.correlationId AND r.globalTid / 0x1000000 = k.globalPid /"
            " 0x1000000 JOIN StringIds n ON n.id = k.demangledName JOIN StringIds s ON s.id ="
            " k.shortName ORDER BY r.start"
        ).fetchall()
    return [
        (row[0], row[1], Launch(row[2], row[3], row[4], (row[5], row[6], row[7]), row[8], None))
        for row in found
    ]


def by_position(base: Path, truth: Path, names: Sequence[str]) -> list[tuple[Launch, ...]]:
    layers = [names[int(row["layer_index"])] for row in rows_of(truth)]
    kernels = [launch for _, _, launch in launches(base)]
    size = len(layers)
    return [
        tuple(
            replace(launch, layer=layer)
            for launch, layer in zip(kernels[at : at + size], layers, strict=True)
        )
        for at in range(0, len(kernels) - size + 1, size)
    ]


def by_kernel(
    base: Path, truth: Path, number: int, names: Sequence[str]
) -> list[tuple[Launch, ...]]:
    mine = [row for row in rows_of(truth) if int(row["engine"]) == number]
    told = {int(row["start_ns"]): row for row in mine if row["device"] == mine[0]["device"]}
    found: list[list[Launch]] = []
    for start, device, launch in launches(base):
        row = told.get(start)
        if row is None or str(device) != row["device"]:
            continue
        if int(row["position"]) == 0 or not found:
            found.append([])
        found[-1].append(replace(launch, layer=names[int(row["layer_index"])]))
    return [tuple(one) for one in found]


# --- the mixtures
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mixing:
    """What a mixture is made of."""

    chance: random.Random
    ours: Source
    theirs: Source
    guests: tuple[str, ...]  # names of another program's kernels

    def run(
        self, source: Source, turn: int, missing: float = 0.0, *, given: bool = True
    ) -> list[Launch]:
        """An inference without some of its kernels; of an engine that is not ``given`` no kernel
        has a layer.
        """
        whole = source.inferences[turn % len(source.inferences)]
        return [
            replace(
                one,
                layer=one.layer if given else None,
                pause_ns=self.chance.choice(PAUSES if at else FIRST_PAUSES),
            )
            for at, one in enumerate(whole)
            if self.chance.random() >= missing
        ]

    def foreign(self, most: int) -> list[Launch]:
        """Up to so many kernels of another program."""
        names = [self.chance.choice(self.guests) for _ in range(self.chance.randint(0, most))]
        return [
            Launch(
                name,
                name.split("<")[0],
                3000,
                (64, 1, 1),
                256,
                None,
                self.chance.choice((500, 3000)),
            )
            for name in names
        ]

    def hole(self, inference: list[Launch]) -> list[Launch]:
        """The inference without a stretch of up to a fifth of it, as where a profiler dropped
        events.
        """
        size = self.chance.randint(1, max(len(inference) // 5, 1))
        at = self.chance.randrange(len(inference) - size + 1)
        return inference[:at] + inference[at + size :]


Made = tuple[bool, list[Launch]]  # whether B's engine file is given too


def missing(share: float) -> Callable[[Mixing], Made]:
    return lambda mix: (
        False,
        [one for turn in range(TURNS) for one in mix.run(mix.ours, turn, share)],
    )


def holes(mix: Mixing) -> Made:
    made: list[Launch] = []
    for turn in range(TURNS):
        whole = mix.run(mix.ours, turn)
        made += mix.hole(whole) if turn % 4 == 1 else whole
    return False, made


def foreign_around(mix: Mixing) -> Made:
    return False, [
        one
        for turn in range(TURNS)
        for one in mix.foreign(6) + mix.run(mix.ours, turn) + mix.foreign(3)
    ]


def in_turn(mix: Mixing) -> Made:
    return True, [
        one for turn in range(TURNS) for one in mix.run(mix.ours, turn) + mix.run(mix.theirs, turn)
    ]


def a_b_a(mix: Mixing) -> Made:
    order = (mix.ours, mix.theirs, mix.ours)
    return True, [
        one for turn in range(TURNS) for source in order for one in mix.run(source, turn, 0.1)
    ]


def sometimes_b(mix: Mixing) -> Made:
    made: list[Launch] = []
    for turn in range(TURNS):
        made += mix.foreign(2) + mix.run(mix.ours, turn, 0.03) + mix.foreign(2)
        made += mix.run(mix.theirs, turn, 0.03) if mix.chance.random() < 0.4 else []
    return True, made


def only_a_given(share: float) -> Callable[[Mixing], Made]:
    def made(mix: Mixing) -> Made:
        found: list[Launch] = []
        for turn in range(TURNS):
            found += mix.run(mix.ours, turn, 0.02) + mix.foreign(2)
            found += mix.run(mix.theirs, turn, given=False) if mix.chance.random() < share else []
        return False, found

    return made


MIXTURES: dict[str, Callable[[Mixing], Made]] = {
    "1% of the kernels missing": missing(0.01),
    "3% of the kernels missing": missing(0.03),
    "5% of the kernels missing": missing(0.05),
    "10% of the kernels missing": missing(0.10),
    "stretches of inferences missing": holes,
    "foreign kernels around each inference": foreign_around,
    "A and B in turn": in_turn,
    "A, B, A in turn; 10% missing": a_b_a,
    "A, sometimes B; 3% missing; foreign kernels": sometimes_b,
    "only A given; sometimes B, foreign kernels; 2% missing": only_a_given(0.7),
    "only A given; B in turn, foreign kernels; 2% missing": only_a_given(1.0),
}


def written(base: Path, target: Path, items: Sequence[Launch]) -> dict[int, str | None]:
    """Puts the launches into a copy of an export as all that is in it; returns the layer of the
    kernel that starts at each moment.
    """
    shutil.copy(base, target)
    truth: dict[int, str | None] = {}
    with sqlite3.connect(target) as tables:
        tables.row_factory = sqlite3.Row
        there = {
            name
            for (name,) in tables.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        kernel = dict(tables.execute("SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1").fetchone())
        call = dict(
            tables.execute(
                "SELECT r.* FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = ? AND"
                " r.globalTid / 0x1000000 = ?",
                (kernel["correlationId"], kernel["globalPid"] // 0x1000000),
            ).fetchone()
        )
        for name in set(EMPTIED) & there:
            tables.execute(f"DELETE FROM {name}")
        ids = {value: number for number, value in tables.execute("SELECT id, value FROM StringIds")}
        kernels, calls, now = [], [], 10_000_000
        for number, one in enumerate(items, 1000):
            for name in (one.name, one.short):
                if name not in ids:
                    ids[name] = max(ids.values()) + 1
                    tables.execute("INSERT INTO StringIds VALUES (?, ?)", (ids[name], name))
            start = now + one.pause_ns + 1200
            now = start + one.took_ns
            grid = dict(zip(("gridX", "gridY", "gridZ"), one.grid, strict=True))
            said = {
                "demangledName": ids[one.name],
                "shortName": ids[one.short],
                "mangledName": ids[one.name],
                "blockX": one.block,
            }
            moment = {"start": start, "end": now, "correlationId": number}
            kernels.append(
                {
                    **kernel,
                    **moment,
                    **grid,
                    **{key: value for key, value in said.items() if key in kernel},
                }
            )
            calls.append(
                {**call, "start": start - 7000, "end": start - 3500, "correlationId": number}
            )
            truth[start] = one.layer
        for name, rows in (
            ("CUPTI_ACTIVITY_KIND_KERNEL", kernels),
            ("CUPTI_ACTIVITY_KIND_RUNTIME", calls),
        ):
            marks = ", ".join("?" * len(rows[0]))
            tables.executemany(
                f"INSERT INTO {name} ({', '.join(rows[0])}) VALUES ({marks})",
                [tuple(row.values()) for row in rows],
            )
    return truth


def measured(mix: Mixing, made: Made, target: Path, record: Record) -> Tally:
    both, items = made
    truth = written(mix.ours.base, target, items)
    given = [mix.ours.engine, mix.theirs.engine] if both else [mix.ours.engine]
    mapped = map_trace(open_trace(target), read_engines(given))
    table = mapped.kernels
    tally = Tally()
    for start, layer, sure in zip(
        table.ints("start_ns").tolist(),
        table.text("layer").list(),
        table.floats("confidence").tolist(),
        strict=True,
    ):
        right = layer == truth[start]
        tally.kernels += 1
        tally.right += right
        tally.wrong += layer is not None and not right
        if layer is not None:
            record.source.append(mix.ours.name)
            record.sure.append(sure)
            record.right.append(right)
    return tally


def bins(
    sure: np.ndarray[tuple[int], np.dtype[np.float64]],
    right: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> str:
    """For each range of confidences how many kernels there are, and the share of them that is
    right.
    """
    told = []
    for low, high in pairwise(BINS):
        inside = (sure >= low) & (sure < high)
        told.append(
            f"{int(inside.sum()):7} {right[inside].mean():8.2%}"
            if inside.any()
            else f"{0:7} {'':8}"
        )
    return "  ".join(told)


def by_engine(record: Record) -> list[str]:
    """The same for each engine, and for all together."""
    source, right = np.array(record.source), np.array(record.right, np.bool_)
    sure = np.array(record.sure)
    head = "  ".join(f"{f'{low:.2f} to {min(high, 1):.2f}':>16}" for low, high in pairwise(BINS))
    lines = [f"{'engine':32}  {head}"]
    for name in [*sorted(set(record.source)), None]:
        mine = source == name if name else np.ones(len(source), np.bool_)
        lines.append(f"{name or 'all together':32}  {bins(sure[mine], right[mine])}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("captures", type=Path)
    parser.add_argument("--seeds", type=int, default=1, help="random draws of each mixture")
    parser.add_argument("--only", default="", help="mixtures with this in their name")
    parser.add_argument("--work", type=Path, help="a folder that keeps the exports")
    asked = parser.parse_args()
    record = Record()
    tallies: dict[str, Tally] = defaultdict(Tally)
    with tempfile.TemporaryDirectory() as name:
        work = asked.work or Path(name)
        found = list(sources(asked.captures, work))
        for seed in range(asked.seeds):
            for at, ours in enumerate(found):
                theirs = next(
                    other
                    for other in found[at + 1 :] + found[:at]
                    if other.base != ours.base and other.layers != ours.layers
                )
                for what, make in MIXTURES.items():
                    chance = random.Random(f"{seed} {ours.name} {what}")
                    guests = tuple(
                        chance.choice(WORDS) + chance.choice(WORDS) + chance.choice(ENDINGS)
                        for _ in range(6)
                    )
                    mix = Mixing(chance, ours, theirs, guests)
                    if asked.only in what:
                        one = measured(mix, make(mix), Path(name) / "mixture.sqlite", record)
                        tallies[what].add(one)
                        if one.right < 0.97 * one.kernels or one.wrong > 0.005 * one.kernels:
                            shares = (
                                f"{one.right / one.kernels:.2%} right,"
                                f" {one.wrong / one.kernels:.2%} wrong"
                            )
                            print(f"  {what}: {ours.name}, {theirs.name}: {shares}", flush=True)
    print(f"{'mixture':58}{'kernels':>9}{'right':>9}{'wrong':>8}{'no layer':>10}")
    for what, all_of in tallies.items():
        none = all_of.kernels - all_of.right - all_of.wrong
        parts = (part / max(all_of.kernels, 1) for part in (all_of.right, all_of.wrong, none))
        print(
            f"{what:58}{all_of.kernels:9}"
            + "".join(f"{share:{width}.2%}" for share, width in zip(parts, (9, 8, 10), strict=True))
        )
    print()
    for line in by_engine(record):
        print(line)


if __name__ == "__main__":
    main()
