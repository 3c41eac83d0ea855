"""SQLite is the oracle: what is decoded from the pages is what SQLite says, or it is left to
SQLite.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import MISSING, Text
from nsysmap.inputs.nsys.sqlite_columns import Database, _percent, read_rows, sqlite_tables
from nsysmap.inputs.nsys.sqlite_pages import Stored, UnsupportedError, leaves_of, read_table
from tests.places import FIXTURES, SHARED
from tests.sqlite_mutants import run

EXPORTS = sorted(FIXTURES.glob("*/*.sqlite"))
PUBLIC_TRACE = SHARED / "traces" / "h100_2gpu_1s.sqlite"
PAGE_SIZES = (512, 1024, 4096, 8192, 65536)
WIDTHS = (
    0,
    1,
    2,
    127,
    128,
    255,
    32767,
    32768,
    2**23 - 1,
    2**23,
    2**31,
    2**32,
    2**47 - 1,
    2**47,
    2**63 - 1,
)
TEXTS = (
    "",
    "a",
    "conv1",
    "layer 7",
    "größer",
    "日本語",
    "x" * 57,
    "y" * 58,
    "z\0z",
    "w" * 64,
    "w" * 63 + "v",
    "u" * 65,
)

Value = int | float | str | bytes | None


def made(path: Path, *statements: str, rows: Sequence[Sequence[Value]] = ()) -> Path:
    """A file that these statements make; the rows go into table t after the first that creates
    it.
    """
    with closing(sqlite3.connect(path)) as connection:
        connection.isolation_level = None
        for statement in statements:
            connection.execute(statement)
            if statement.startswith("CREATE TABLE t") and rows:
                connection.execute("BEGIN")
                connection.executemany(
                    f"INSERT INTO t VALUES ({', '.join('?' for _ in rows[0])})", rows
                )
                connection.execute("COMMIT")
    return path


def told(path: Path, table: str, column: str) -> list[Value]:
    """What SQLite says."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        return [
            row[0] for row in connection.execute(f'SELECT "{column}" FROM "{table}" NOT INDEXED')
        ]


def plain(data: object) -> list[int | str | None]:
    if isinstance(data, Text):
        return list(data.list())
    return [None if value == MISSING else value for value in data.tolist()]  # type: ignore[attr-defined]


def decoded(
    file: Path | Database, table: str, column: str, *, text: bool
) -> list[int | str | None] | None:
    """What is decoded from the pages; None where it is left to SQLite."""
    database = Database.open(file) if isinstance(file, Path) else file
    stored = database.stored.get(table)
    if stored is None:
        return None
    try:
        return plain(
            read_table(database.path, stored, () if text else (column,), (column,) if text else ())[
                column
            ]
        )
    except UnsupportedError:
        return None


def agrees(file: Path | Database, table: str, column: str) -> bool:
    """Whether the column could be decoded, as integers or as text; it must then be what SQLite
    says.
    """
    database = Database.open(file) if isinstance(file, Path) else file
    integers, texts = (
        decoded(database, table, column, text=False),
        decoded(database, table, column, text=True),
    )
    if integers is None and texts is None:
        return False
    truth = told(database.path, table, column)
    if integers is not None:
        assert not {type(value) for value in truth} - {int, type(None)}
        assert integers == [None if value == MISSING else value for value in truth]
        assert [
            value for block in database.blocks(table, (column,)) for value in plain(block[column])
        ] == integers
    if texts is not None:
        assert not {type(value) for value in truth} - {str, type(None)}
        assert texts == [value or None for value in truth]
    return True


# --- tables of all kinds
# --------------------------------------------------------------------------------------------


def an_integer(random: Random) -> int:
    return random.choice((1, -1)) * random.choice(WIDTHS)


def a_value(random: Random, kind: str) -> Value:
    if kind == "mixed":
        kind = random.choice(("integer", "text", "null", "real", "blob"))
    if kind == "null" or random.random() < 0.15:
        return None
    if kind == "integer":
        return an_integer(random)
    if kind == "small":
        return random.randrange(-3, 300)
    if kind == "text":
        return random.choice(TEXTS)
    if kind == "long":
        return random.choice("pq") * random.choice((0, 3, 400, 477, 478, 1000, 4061, 4062, 9000))
    return random.choice((0.0, 1.5, -3.0)) if kind == "real" else bytes(random.randrange(20))


KINDS = {
    "integer": "INTEGER",
    "small": "INT",
    "text": "TEXT",
    "long": "TEXT",
    "null": "NUMERIC",
    "real": "REAL",
    "blob": "BLOB",
    "mixed": "",
}


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32),
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=9),
    rows=st.sampled_from((0, 1, 3, 50, 700)),
    key=st.sampled_from(("", "INTEGER PRIMARY KEY", "INTEGER PRIMARY KEY DESC", "INT PRIMARY KEY")),
)
def test_a_table_is_decoded_as_sqlite_reads_it_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, seed: int, kinds: list[str], rows: int, key: str
) -> None:
    random = Random(seed)
    path = tmp_path_factory.mktemp("pages") / "x.sqlite"
    columns = [f"c{i} {KINDS[kind]}" for i, kind in enumerate(kinds)]
    numbers = (
        random.sample(range(-5, 5 * rows), rows)
        if random.random() < 0.7
        else list({an_integer(random) for _ in range(rows)})
    )
    contents = [
        (*([number] if key else []), *(a_value(random, kind) for kind in kinds))
        for number in numbers
    ]
    statements = [
        f"PRAGMA page_size = {random.choice(PAGE_SIZES)}",
        f"PRAGMA auto_vacuum = {random.randrange(3)}",
        "CREATE TABLE other (a, b)",
        f"CREATE TABLE t ({', '.join([f'k {key}', *columns] if key else columns)})",
        "INSERT INTO other VALUES (1, 'one')",
    ]
    if random.random() < 0.5:
        statements += [
            f"DELETE FROM t WHERE rowid % {random.randrange(1, 9)} = 0",
            f"UPDATE t SET c0 = {random.choice((7, 2**40, -1))} WHERE rowid % 5 = 1",
        ]
    if random.random() < 0.3:
        statements += ["ALTER TABLE t ADD COLUMN late", "INSERT INTO t (c0, late) VALUES (5, 6)"]
    if random.random() < 0.2:
        statements += ["ALTER TABLE t ADD COLUMN later INTEGER DEFAULT 9"]
    if random.random() < 0.2:
        statements += ["CREATE INDEX covering ON t (c0 DESC)"]
    made(path, *statements, rows=contents)
    database = Database.open(path)
    read = {column for column in database.columns["t"] if agrees(database, "t", column)}
    integers, texts = (
        [f"c{at}" for at, kind in enumerate(kinds) if kind in of]
        for of in (("integer", "small", "null"), ("text", "long"))
    )
    assert read >= {*integers, *texts}  # what is plain is not left to SQLite
    if not integers and not texts:
        return
    whole = read_table(path, database.stored["t"], integers, texts)
    slowly = read_rows(path, "t", integers, texts)
    assert {name: plain(data) for name, data in whole.items()} == {
        name: plain(data) for name, data in slowly.items()
    }


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_integers_of_every_width_null_and_text_are_decoded(tmp_path: Path, page_size: int) -> None:
    integers = [
        sign * (number + near) for number in WIDTHS[:-1] for sign in (1, -1) for near in (-1, 0, 1)
    ] + [2**63 - 1, None]
    rows = [
        (integers[i % len(integers)], TEXTS[i % len(TEXTS)], i, None if i % 3 else "t")
        for i in range(3000)
    ]
    path = made(
        tmp_path / "x.sqlite",
        f"PRAGMA page_size = {page_size}",
        "CREATE TABLE t (a INTEGER, b TEXT, c INTEGER, d TEXT)",
        rows=rows,
    )
    assert [agrees(path, "t", column) for column in "abcd"] == [True] * 4


def test_row_numbers_are_the_values_of_an_integer_primary_key(tmp_path: Path) -> None:
    numbers = [
        -(2**63) + 1,
        -5,
        0,
        1,
        127,
        128,
        2**14,
        2**21,
        2**28,
        2**35,
        2**42,
        2**49,
        2**56 - 1,
        2**56,
        2**63 - 1,
    ]
    path = made(
        tmp_path / "x.sqlite",
        "CREATE TABLE t (a TEXT, k INTEGER PRIMARY KEY)",
        rows=[("x", number) for number in numbers],
    )
    assert decoded(path, "t", "k", text=False) == numbers
    assert decoded(path, "t", "k", text=True) is None


def test_row_numbers_of_pages_full_of_short_rows_are_told(tmp_path: Path) -> None:
    path = made(
        tmp_path / "x.sqlite",
        "CREATE TABLE t (a INTEGER, k INTEGER PRIMARY KEY)",
        rows=[(2, number) for number in range(10, 120)],
    )
    assert decoded(path, "t", "k", text=False) == list(range(10, 120))


def test_rows_longer_than_a_page_are_decoded(tmp_path: Path) -> None:
    rows = [
        (i, "n" * size, -i)
        for i, size in enumerate((0, 5, 4040, 4050, 4060, 4070, 5000, 20000, 100_000) * 30)
    ]
    path = made(tmp_path / "x.sqlite", "CREATE TABLE t (a INTEGER, b TEXT, c INTEGER)", rows=rows)
    assert [agrees(path, "t", column) for column in "abc"] == [True] * 3


def test_the_texts_of_many_rows_are_told_apart(tmp_path: Path) -> None:
    random = Random(1)
    texts = [
        "".join(
            random.choice("ab")
            for _ in range(random.choice((1, 2, 7, 8, 9, 15, 16, 17, 40, 63, 64, 65, 90)))
        )
        for _ in range(20_000)
    ]
    path = made(tmp_path / "x.sqlite", "CREATE TABLE t (a TEXT)", rows=[(text,) for text in texts])
    assert decoded(path, "t", "a", text=True) == texts


def test_texts_that_are_no_utf8_are_replaced_and_stay_one_value_each(tmp_path: Path) -> None:
    path = made(
        tmp_path / "x.sqlite",
        "CREATE TABLE t (a TEXT)",
        "INSERT INTO t VALUES (CAST(x'ff' AS TEXT)), (CAST(x'fe' AS TEXT)), ('b')",
    )
    column = sqlite_tables(path).read("t", (), ("a",))["a"]
    assert column.list() == ["\ufffd", "\ufffd", "b"]
    assert len(column.values) == 2


def test_a_column_added_later_is_null_in_earlier_rows(tmp_path: Path) -> None:
    path = made(
        tmp_path / "x.sqlite",
        "CREATE TABLE t (a INTEGER)",
        "ALTER TABLE t ADD COLUMN b INTEGER",
        "INSERT INTO t VALUES (8, 9)",
        rows=[(i,) for i in range(100)],
    )
    assert decoded(path, "t", "b", text=False) == [*[None] * 100, 9]


def test_what_is_unusual_is_left_to_sqlite_which_reads_the_same(tmp_path: Path) -> None:
    statements = {
        "default": (
            "CREATE TABLE t (z)",
            "INSERT INTO t VALUES (1)",
            "ALTER TABLE t ADD COLUMN a INTEGER DEFAULT 7",
        ),
        "without": (
            "CREATE TABLE t (a INTEGER PRIMARY KEY) WITHOUT ROWID",
            "INSERT INTO t VALUES (7)",
        ),
        "generated": ("CREATE TABLE t (z AS (1), a INTEGER)", "INSERT INTO t VALUES (7)"),
        "utf16": (
            "PRAGMA encoding = 'UTF-16'",
            "CREATE TABLE t (a INTEGER)",
            "INSERT INTO t VALUES (7)",
        ),
    }
    for name, made_by in statements.items():
        path = made(tmp_path / name, *made_by)
        assert decoded(path, "t", "a", text=False) is None, name
        assert sqlite_tables(path).read("t", ("a", "absent"))["a"].tolist() == [7], name


def test_real_numbers_are_left_to_sqlite_and_taken_for_integers_where_they_are_some(
    tmp_path: Path,
) -> None:
    path = made(
        tmp_path / "x.sqlite",
        "CREATE TABLE t (a DOUBLE, b INTEGER, c DOUBLE)",
        "INSERT INTO t VALUES (3, 4, 3.5)",
    )
    tables = sqlite_tables(path)
    assert decoded(path, "t", "a", text=False) is None
    assert [tables.read("t", (name,))[name].tolist() for name in "ab"] == [[3], [4]]
    with pytest.raises(NsysmapError, match=r"t\.c .*3\.5"):
        tables.read("t", ("c",))


def test_unfinished_changes_beside_the_file_are_left_to_sqlite(tmp_path: Path) -> None:
    path = made(tmp_path / "x.sqlite", "CREATE TABLE t (a INTEGER)", rows=[(1,)])
    (tmp_path / "x.sqlite-journal").write_bytes(b"x")
    assert decoded(path, "t", "a", text=False) is None


@pytest.mark.parametrize(
    "path", [*EXPORTS, PUBLIC_TRACE], ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_real_exports_are_decoded_whole_and_as_sqlite_reads_them(path: Path) -> None:
    if not path.exists():
        pytest.skip("the public trace is not beside this checkout")
    database = Database.open(path)
    for table, columns in database.columns.items():
        if not table.startswith("ENUM_"):
            read = [agrees(database, table, column) for column in columns]
            assert all(
                done or column in database.stored[table].reals
                for done, column in zip(read, columns, strict=True)
            ), table


def test_what_sqlite_hands_out_is_the_same_as_what_the_pages_say(tmp_path: Path) -> None:
    rows = [(i if i % 7 else None, TEXTS[i % len(TEXTS)], i % 3) for i in range(20_000)]
    path = made(tmp_path / "x.sqlite", "CREATE TABLE t (a INTEGER, b TEXT, c INTEGER)", rows=rows)
    database = Database.open(path)
    pages = read_table(path, database.stored["t"], ("c", "a"), ("b",))
    slowly = read_rows(path, "t", ("c", "a"), ("b",))
    assert {name: plain(data) for name, data in pages.items()} == {
        name: plain(data) for name, data in slowly.items()
    }


@pytest.mark.parametrize("width", [1, 40, 47, 48, 49, 60, 130])
def test_rows_about_as_long_as_what_is_read_at_once_are_decoded(tmp_path: Path, width: int) -> None:
    """``width`` is that of a text in front of the integers, which is not asked for."""
    rows = [
        (("x" * (width - i % 2)), i % 3, 2**31 + i, 5 * (i % 7 - 3), None if i % 5 else 2**50)
        for i in range(3000)
    ]
    path = made(
        tmp_path / "x.sqlite",
        "CREATE TABLE t (t TEXT, a INTEGER, b INTEGER, c INTEGER, d INTEGER)",
        rows=rows,
    )
    database = Database.open(path)
    read = read_table(path, database.stored["t"], ("a", "b", "c", "d"), ())
    assert [plain(read[name]) for name in "abcd"] == [
        [row[at] for row in rows] for at in (1, 2, 3, 4)
    ]


def test_pieces_of_a_table_go_on_where_the_pages_must_be_left_to_sqlite(tmp_path: Path) -> None:
    rows = [(i, -i) for i in range(200_000)]
    path = made(
        tmp_path / "x.sqlite", "CREATE TABLE t (a, b)", "INSERT INTO t VALUES (7.0, 8)", rows=rows
    )
    with pytest.raises(UnsupportedError):
        read_table(path, Database.open(path).stored["t"], ("a", "b"), ())
    pieces = list(sqlite_tables(path).blocks("T", ("A", "b")))
    assert len(pieces) > 2
    assert [
        (a, b)
        for piece in pieces
        for a, b in zip(piece["A"].tolist(), piece["b"].tolist(), strict=True)
    ] == [*rows, (7, 8)]


def test_a_column_that_is_not_there_is_missing_in_pieces_too(tmp_path: Path) -> None:
    path = made(tmp_path / "x.sqlite", "CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (7)")
    assert [piece["b"].tolist() for piece in sqlite_tables(path).blocks("t", ("a", "b"))] == [
        [MISSING]
    ]


# --- files that are damaged, or made to do damage
# ---------------------------------------------------------------------


def a_file(path: Path, random: Random) -> Path:
    rows = [
        (
            an_integer(random),
            i,
            random.choice(TEXTS),
            random.choice((1, 0, None)),
            "v" * random.choice((3, 700)),
        )
        for i in range(300)
    ]
    table = "CREATE TABLE t (a INTEGER, k INTEGER PRIMARY KEY, b TEXT, c INTEGER, d TEXT)"
    return made(path, f"PRAGMA page_size = {random.choice((512, 1024))}", table, rows=rows)


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32),
    flips=st.sampled_from((1, 1, 2, 5, 30)),
    region=st.sampled_from(("anywhere", "heads", "ends")),
)
def test_a_damaged_file_gives_what_sqlite_gives_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, seed: int, flips: int, region: str
) -> None:
    random = Random(seed)
    path = a_file(tmp_path_factory.mktemp("pages") / "x.sqlite", random)
    contents = bytearray(path.read_bytes())
    page = int.from_bytes(contents[16:18], "big")
    for _ in range(flips):
        begin = random.randrange(len(contents) // page) * page
        place = {"anywhere": page, "heads": 40, "ends": page}[region]
        at = begin + (
            page - 1 - random.randrange(60) if region == "ends" else random.randrange(place)
        )
        contents[at] = random.choice(
            (0, 1, 0x05, 0x0D, 0x7F, 0x80, 0xFF, contents[at] ^ 1 << random.randrange(8))
        )
    path.write_bytes(contents)
    try:
        database = Database.open(path)
    except NsysmapError:
        return
    for column in database.columns.get("t", ()):
        # where SQLite reports the damage and the pages do not, `told` raises
        agrees(database, "t", column)


def test_mutants_of_whole_files_are_read_as_sqlite_reads_them_or_left_to_it(tmp_path: Path) -> None:
    found, wrong = run(0, 240, tmp_path)
    assert wrong == []
    assert min(found["same"], found["handed over"], found["refused by both"]) > 20


@pytest.mark.parametrize("seed", [9401, 9761])
def test_a_record_without_a_single_type_is_left_to_sqlite(seed: int, tmp_path: Path) -> None:
    """Mutants that were once read as rows of NULL, where SQLite says that the file is damaged."""
    found, wrong = run(seed, 1, tmp_path)
    assert wrong == []
    assert found["handed over"]


def changed(path: Path, at: int, *values: int) -> Path:
    """The file with these bytes from there on."""
    contents = bytearray(path.read_bytes())
    contents[at : at + len(values)] = bytes(values)
    path.write_bytes(contents)
    return path


def a_page_of_ones(folder: Path) -> tuple[Path, int]:
    """A file whose table t has a single page with three rows, and where that page begins."""
    path = made(
        folder / "x.sqlite",
        "PRAGMA page_size = 512",
        "CREATE TABLE t (a INTEGER, b TEXT)",
        rows=[(1000, "one")] * 3,
    )
    root = Database.open(path).stored["t"].root
    assert plain(read_table(path, Database.open(path).stored["t"], ("a",), ())["a"]) == [1000] * 3
    return path, (root - 1) * 512


@pytest.mark.parametrize(
    ("at", "values", "why"),
    [
        (18, (3,), "not a plain"),  # a version of the format to come
        (19, (3,), "not a plain"),
        (20, (8,), "not a plain"),  # bytes of each page that are somebody else's
        (21, (65,), "not a plain"),
        (0, (0x73,), "not a plain"),
        (59, (2,), "not a plain"),  # UTF-16
        (16, (1, 0), "not a plain"),  # pages of 256 bytes
        (16, (2, 8), "not a plain"),  # … and of 520
    ],
)
def test_the_head_of_the_file_must_be_plain(
    at: int, values: tuple[int, ...], why: str, tmp_path: Path
) -> None:
    path, _ = a_page_of_ones(tmp_path)
    stored = Database.open(path).stored["t"]
    with pytest.raises(UnsupportedError, match=why):
        read_table(changed(path, at, *values), stored, ("a",), ())


@pytest.mark.parametrize("versions", [(1, 1), (2, 2), (2, 1)])
def test_both_versions_of_the_format_are_read(versions: tuple[int, int], tmp_path: Path) -> None:
    path, _ = a_page_of_ones(tmp_path)
    stored = Database.open(path).stored["t"]
    assert plain(read_table(changed(path, 18, *versions), stored, ("a",), ())["a"]) == [1000] * 3


@pytest.mark.parametrize(
    ("at", "values", "why"),
    [
        (0, (0x0A,), "does not belong"),  # the leaf of an index
        (3, (0, 85), "does not belong"),  # more cells than 512 bytes have room for
        (8, (0, 10), "outside its page"),  # a cell within the pointers
        (8, (1, 253), "outside its page"),  # … and one that ends behind the page
    ],
)
def test_a_page_that_is_not_as_it_must_be_is_left_to_sqlite(
    at: int, values: tuple[int, ...], why: str, tmp_path: Path
) -> None:
    path, page = a_page_of_ones(tmp_path)
    stored = Database.open(path).stored["t"]
    stored = Stored(
        stored.root, stored.columns, None, frozenset(), frozenset(), np.array([stored.root])
    )
    with pytest.raises(UnsupportedError, match=why):
        read_table(changed(path, page + at, *values), stored, ("a",), ())


@pytest.mark.parametrize(
    ("at", "value", "why"),
    [
        (0, 0, "of no length"),
        (0, 0x70, "leave their page|overlap"),
        (2, 2, "ends within a type|longer or shorter"),  # a header that ends before its types
        (2, 9, "longer than itself"),
        (3, 4, "longer or shorter"),  # an integer of 4 bytes where 2 are left
        (3, 7, "longer or shorter|no integer"),  # a real number
        (4, 18, "longer or shorter|no text"),
    ],
)
def test_a_record_that_is_not_as_long_as_its_values_is_left_to_sqlite(
    at: int, value: int, why: str, tmp_path: Path
) -> None:
    """A cell is a length, a row number, and a record of a header and its values."""
    path, page = a_page_of_ones(tmp_path)
    data = path.read_bytes()
    cell = page + int.from_bytes(data[page + 8 : page + 10], "big")
    assert data[cell : cell + 5] == bytes((8, 1, 3, 2, 19))
    stored = Database.open(path).stored["t"]
    with pytest.raises(UnsupportedError, match=why):
        read_table(changed(path, cell + at, value), stored, ("a",), ("b",))


@pytest.mark.parametrize("root", [0, -1, 10_000])
def test_a_tree_whose_root_is_no_page_is_left_to_sqlite(root: int, tmp_path: Path) -> None:
    path, _ = a_page_of_ones(tmp_path)
    stored = Stored(root, ("a", "b"), None, frozenset(), frozenset())
    with pytest.raises(UnsupportedError, match="out of range"):
        read_table(path, stored, ("a",), ())


def test_a_file_that_was_cut_off_is_left_to_sqlite(tmp_path: Path) -> None:
    path = made(
        tmp_path / "x.sqlite",
        "PRAGMA page_size = 512",
        "CREATE TABLE t (a INTEGER)",
        rows=[(number,) for number in range(2000)],
    )
    stored = Database.open(path).stored["t"]
    leaves = leaves_of(path, stored)
    whole = Stored(stored.root, ("a",), None, frozenset(), frozenset(), leaves)
    assert plain(read_table(path, whole, ("a",), ())["a"]) == list(range(2000))
    path.write_bytes(path.read_bytes()[: -512 - 1])
    with pytest.raises(UnsupportedError, match="beyond the end"):
        read_table(path, whole, ("a",), ())


def test_it_is_told_how_much_of_the_file_was_read(tmp_path: Path) -> None:
    rows = [(number, "x" * 300) for number in range(20_000)]
    path = made(tmp_path / "x.sqlite", "CREATE TABLE t (a INTEGER, b TEXT)", rows=rows)
    stored = Database.open(path).stored["t"]
    told_bytes: list[int] = []
    read_table(path, stored, ("a",), (), told_bytes.append)
    assert sum(told_bytes) == len(leaves_of(path, stored)) * 4096
    assert len(told_bytes) > 1
    assert max(told_bytes) <= 1 << 20


def test_a_tree_that_leads_back_to_itself_ends_in_an_error(tmp_path: Path) -> None:
    path = made(
        tmp_path / "x.sqlite",
        "PRAGMA page_size = 512",
        "CREATE TABLE t (a INTEGER)",
        rows=[(i,) for i in range(20_000)],
    )
    root = Database.open(path).stored["t"].root
    contents = bytearray(path.read_bytes())
    begin = (root - 1) * 512
    cell = int.from_bytes(contents[begin + 12 : begin + 14], "big")
    contents[begin + cell : begin + cell + 4] = root.to_bytes(4, "big")
    path.write_bytes(contents)
    assert decoded(path, "t", "a", text=False) is None
    with pytest.raises(NsysmapError, match="cannot be read"):
        Database.open(path).read("t", ("a",))


def test_a_tree_that_has_each_page_many_times_ends_in_an_error(tmp_path: Path) -> None:
    """Twelve levels, each with all its cells on the one below: SQLite would read a leaf 60^12
    times.
    """
    path = made(
        tmp_path / "x.sqlite",
        "PRAGMA page_size = 512",
        "CREATE TABLE t (a INTEGER)",
        rows=[(i,) for i in range(20_000)],
    )
    root = Database.open(path).stored["t"].root
    contents = bytearray(path.read_bytes())
    levels = [root, *[number for number in range(3, 40) if number != root][:12]]
    for level, below in pairwise(levels):
        cells = b"".join(below.to_bytes(4, "big") + b"\1" for _ in range(60))
        pointers = b"".join((512 - 300 + 5 * i).to_bytes(2, "big") for i in range(60))
        head = (
            b"\5\0\0\0\x3c" + (212).to_bytes(2, "big") + b"\0" + below.to_bytes(4, "big") + pointers
        )
        contents[(level - 1) * 512 : level * 512] = (
            head + bytes(512 - len(head) - len(cells)) + cells
        )
    path.write_bytes(contents)
    assert decoded(path, "t", "a", text=False) is None
    with pytest.raises(NsysmapError, match="more in t"):
        Database.open(path).read("t", ("a",))


def test_a_page_that_has_one_long_text_many_times_ends_in_an_error(tmp_path: Path) -> None:
    table = ("PRAGMA page_size = 65536", "CREATE TABLE t (a TEXT)", "PRAGMA user_version = 1")
    path = made(tmp_path / "x.sqlite", *table, rows=[("a" * 30_000,), ("b" * 20_000,)])
    begin = (Database.open(path).stored["t"].root - 1) * 65536
    contents = bytearray(path.read_bytes())
    contents[begin + 3 : begin + 5] = (5000).to_bytes(2, "big")
    contents[begin + 8 : begin + 8 + 2 * 5000] = contents[begin + 8 : begin + 10] * 5000
    path.write_bytes(contents)
    assert decoded(path, "t", "a", text=True) is None
    with pytest.raises(NsysmapError, match="more in t"):
        Database.open(path).read("t", (), ("a",))


def test_reading_writes_nothing(tmp_path: Path) -> None:
    path = made(
        tmp_path / "x.sqlite", "CREATE TABLE t (a INTEGER)", rows=[(i,) for i in range(1000)]
    )
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    Database.open(path).read("t", ("a",))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.sqlite"]


def test_headers_of_one_byte_of_length_and_of_two_are_decoded_together(tmp_path: Path) -> None:
    """A header of 126 types has 127 bytes, with the length of a long text one more."""
    names = [f"c{at}" for at in range(126)]
    rows = [(at, *[None] * 124, "x" * (200 if at % 3 else 5)) for at in range(50)]
    rows = sorted(rows, key=lambda row: len(str(row[-1])))
    for held in (rows, rows[::-1]):
        path = made(
            tmp_path / f"{held is rows}.sqlite", f"CREATE TABLE t ({', '.join(names)})", rows=held
        )
        read = read_table(path, Database.open(path).stored["t"], ("c0", "c1"), ("c125",))
        assert plain(read["c0"]) == [row[0] for row in held]
        assert plain(read["c1"]) == [None] * 50
        assert plain(read["c125"]) == [row[-1] for row in held]


def test_pages_behind_those_that_the_head_tells_of_are_left_to_sqlite(tmp_path: Path) -> None:
    path = made(
        tmp_path / "a.sqlite", "CREATE TABLE t (a INTEGER)", rows=[(at,) for at in range(9_000)]
    )
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    for told_pages, whole in ((0, True), (len(data) // size, True), (3, False)):
        data[28:32] = told_pages.to_bytes(4, "big")
        path.write_bytes(data)
        found = decoded(path, "t", "a", text=False)
        assert found == (list(range(9_000)) if whole else None)


def test_the_share_read_is_told_percent_by_percent_and_never_above_a_hundred() -> None:
    told: list[int] = []
    passed = _percent(200, told.append)
    for more in (1, 1, 1, 1, 96, 0, 300, 5):
        passed(more)
    assert told == [1, 2, 50, 100]
    _percent(0, told.append)(0)
    assert told == [1, 2, 50, 100]
