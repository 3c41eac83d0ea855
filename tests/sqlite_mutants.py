"""Damaged SQLite files for the page reader, and what it must be held to: it answers as SQLite does,
or hands over.

A long run, in slices that can go on in several processes:  python -m tests.sqlite_mutants --first 0
--number 50000
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import IntArray, Text
from nsysmap.inputs.nsys.sqlite_columns import Database, read_rows
from nsysmap.inputs.nsys.sqlite_pages import UnsupportedError, read_table
from tests.places import FIXTURES

SMALL_EXPORT_ROWS = 120
Columns = dict[str, IntArray | Text]


def originals(folder: Path) -> tuple[Path, ...]:
    """Whole files of a few dozen pages to damage: rows of every kind, long rows, a deep tree, and a
    shortened export of nsys.
    """
    random = Random(0)
    words = ("", "conv1", "größer", "w" * 64, "z\0z", "layer 7")
    made = []
    for page_size, long in ((512, 300), (512, 3000), (1024, 5), (1024, 2500), (4096, 9000)):
        rows = [
            (random.choice((1, -1)) * random.choice((0, 1, 300, 2**31, 2**47, 2**62)), i, random.choice(words), random.choice((1, 0, None)),  # noqa: E501
             random.choice("pq") * random.choice((3, long)))
            for i in range(40 if long > 1000 else 260)
        ]  # fmt: skip
        path = folder / f"made_{page_size}_{long}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA page_size = {page_size}")
            connection.execute(
                "CREATE TABLE t (a INTEGER, k INTEGER PRIMARY KEY, b TEXT, c INTEGER, d TEXT)"
            )
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute("DELETE FROM t WHERE k % 9 = 4")
            connection.execute("CREATE TABLE u (a INTEGER, b TEXT)")
            connection.executemany(
                "INSERT INTO u VALUES (?, ?)", [(i * i, f"u{i}") for i in range(30)]
            )
            connection.commit()
        made.append(path)
    path = folder / "export.sqlite"
    path.write_bytes((FIXTURES / "bert_trt10" / "graph_whole.sqlite").read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        connection.isolation_level = None
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall():
            if table.startswith("ENUM_"):
                connection.execute(f'DROP TABLE "{table}"')
            else:
                connection.execute(f'DELETE FROM "{table}" WHERE rowid > {SMALL_EXPORT_ROWS}')
        connection.execute("PRAGMA page_size = 1024")
        connection.execute("VACUUM")
    return (*made, path)


def mutant(original: bytes, random: Random) -> bytes:
    """The file with one to a few things changed, mostly where it matters: heads of pages, pointers
    to cells, heads of records, links.
    """
    contents = bytearray(original)
    size = int.from_bytes(contents[16:18], "big")
    pages = len(contents) // size
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        page = random.randrange(pages) * size
        kind = random.random()
        if kind < 0.35:
            contents[page + random.randrange(12)] = _byte(random)
        elif kind < 0.5:
            contents[page + 8 + random.randrange(40)] = _byte(random)
        elif kind < 0.75:  # the head of a cell or of its record
            head = 12 if contents[page] == 5 else 8
            number = int.from_bytes(contents[page + 3 : page + 5], "big")
            pointer = page + head + 2 * random.randrange(max(1, min(number, (size - head) // 2)))
            cell = int.from_bytes(contents[pointer : pointer + 2], "big")
            at = page + min(cell + random.randrange(16), size - 1)
            contents[min(at, len(contents) - 1)] = _byte(random)
        elif kind < 0.85:
            contents[page + random.randrange(size)] ^= 1 << random.randrange(8)
        elif kind < 0.9:  # one page over another
            other = random.randrange(pages) * size
            contents[page : page + size] = contents[other : other + size]
        elif kind < 0.95:
            at = page + random.randrange(size - 8)
            contents[at : at + 4] = random.choice(
                (0, 1, 2, pages, pages + 1, random.randrange(pages), 2**31)
            ).to_bytes(4, "big")
        else:
            contents[16 + random.randrange(84)] = _byte(random)
    if random.random() < 0.02:
        del contents[random.randrange(len(contents)) :]
    return bytes(contents)


def _byte(random: Random) -> int:
    return random.choice(
        (0, 1, 2, 5, 7, 8, 9, 12, 13, 0x7F, 0x80, 0x81, 0xFF, random.randrange(256))
    )


def compared(path: Path, random: Random) -> Iterator[tuple[str, str]]:
    """For each reading of a table: `same`, `handed over`, `refused by both` or `wrong`, and
    where.
    """
    try:
        database = Database.open(path)
    except NsysmapError:
        yield "refused by both", "the file"
        return
    for table, stored in database.stored.items():
        typed = {row[1]: str(row[2]).upper() for row in _declared(path, table)}
        whole = [
            name
            for name in stored.columns
            if "TEXT" not in typed.get(name, "") and name not in stored.reals
        ]
        texts = [name for name in stored.columns if "TEXT" in typed.get(name, "")]
        one = random.choice([*whole, *texts]) if whole or texts else ""
        for integers, words in (
            (whole, texts),
            ([one] if one in whole else [], [one] if one in texts else []),
        ):
            try:
                pages = read_table(path, stored, integers, words)
            except UnsupportedError:
                yield "handed over", table
                continue
            try:
                rows = read_rows(path, table, integers, words)
            except NsysmapError as error:
                yield "wrong", f"{table} {integers} {words}: SQLite refuses: {error.what}"
                continue
            yield (
                ("same", table)
                if _same(pages, rows)
                else ("wrong", f"{table} {integers} {words}: other values")
            )


def _declared(path: Path, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute(f'PRAGMA table_info("{table}")').fetchall()


def _same(pages: Columns, rows: Columns) -> bool:
    def alike(one: IntArray | Text, other: IntArray | Text) -> bool:
        if isinstance(one, Text) or isinstance(other, Text):
            return isinstance(one, Text) and isinstance(other, Text) and one.list() == other.list()
        return bool(np.array_equal(one, other))

    return pages.keys() == rows.keys() and all(alike(pages[name], rows[name]) for name in pages)


def run(first: int, number: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """How the readings of these mutants came out, and those that were wrong, each with its
    number.
    """
    files = [path.read_bytes() for path in originals(folder)]
    found: Counter[str] = Counter()
    wrong = []
    path = folder / "mutant.sqlite"
    for seed in range(first, first + number):
        random = Random(seed)
        path.write_bytes(mutant(files[seed % len(files)], random))
        for outcome, where in compared(path, random):
            found[outcome] += 1
            if outcome == "wrong":
                wrong.append(f"mutant {seed}: {where}")
    return found, wrong


def main() -> None:
    """Compare so many mutants, print the outcomes; exit status 1 where any reading is wrong."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--number", type=int, default=50_000)
    told = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, wrong = run(told.first, told.number, Path(folder))
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(found.items()))
    sys.stdout.write(
        "\n".join([f"{told.number:,} mutants, readings of tables: {outcomes}", *wrong[:50]]) + "\n"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
