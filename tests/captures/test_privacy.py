"""What nsys knows of the machine and its user stays in the report: planted in every text of it, it
is in no output and no error.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.commands import run
from tests.places import FIXTURES

SECRET = re.compile(r"s3cr3t\w*", re.IGNORECASE)
REPORTS = (
    ("bert_trt10/sync.sqlite", "bert_trt10/engine.json"),
    ("newer/bert_sync.sqlite", "bert_trt10/engine.json"),
)

_SHOWN = {"TARGET_INFO_GPU.name", "TARGET_INFO_GPU.chipName"}  # which GPU it was is no secret
_USED_STRINGS = {  # columns whose strings are shown: names of kernels, calls and ranges
    "CUPTI_ACTIVITY_KIND_KERNEL": ("demangledName", "shortName", "mangledName"),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("nameId",),
    "NVTX_EVENTS": ("textId",),
    "PROFILER_OVERHEAD": ("nameId",),
}
_PLAIN_VALUE = re.compile(
    r"[\d.:-]*|true|false|Cuda|NvtxEvents|Graph|Node|NVIDIA Nsight Systems", re.IGNORECASE
)


def planted(source: Path, target: Path) -> int:
    """Copies an export with a secret in place of every text that is not the name of a kernel, call,
    range or GPU; how many there are.
    """
    shutil.copyfile(source, target)
    target.chmod(0o644)
    number = 0
    with closing(sqlite3.connect(target)) as connection:

        def secret(was: object) -> str:
            nonlocal number
            number += 1
            return (
                f"/home/s3cr3t{number}/--key=S3CR3T_{number} on s3cr3t{number}.example"
                f" {'' if was is None else str(was)[:0]}"
            )

        connection.create_function("secret", 1, secret)
        connection.create_function(
            "plain", 1, lambda value: value is None or bool(_PLAIN_VALUE.fullmatch(str(value)))
        )
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall():
            texts = [
                row[1]
                for row in connection.execute(f'PRAGMA table_info("{table}")')
                if "TEXT" in row[2].upper()
            ]
            if table.startswith("ENUM_"):
                continue
            for column in texts:
                if f"{table}.{column}" in _SHOWN or (
                    table.startswith(("META_DATA", "TARGET_INFO_SYSTEM")) and column == "name"
                ):
                    continue
                if table == "NVTX_EVENTS" and column == "text":
                    continue
                used = " UNION ".join(
                    f'SELECT "{one}" FROM {of} WHERE "{one}" IS NOT NULL'
                    for of, held in _USED_STRINGS.items()
                    for one in held
                )
                where = f"id NOT IN ({used})" if table == "StringIds" else f'NOT plain("{column}")'
                connection.execute(
                    f'UPDATE "{table}" SET "{column}" = secret("{column}") WHERE {where}'
                )
        connection.execute(
            "UPDATE META_DATA_CAPTURE SET value = value || ' s3cr3t' WHERE name LIKE '%ARGUMENT%'"
            " OR name LIKE '%ENVIRON%'"
        )
        connection.execute(
            "INSERT INTO META_DATA_CAPTURE VALUES ('CAPTURE_EVENT_TYPE', 's3cr3t_event')"
        )
        connection.execute("INSERT INTO META_DATA_CAPTURE VALUES ('s3cr3t_name', 's3cr3t_value')")
        connection.execute(
            "UPDATE TARGET_INFO_SYSTEM_ENV SET value = '/s3cr3t/nsight-systems-2023.4.4/s3cr3t'"
            " WHERE name = 'TargetInstallDir'"
        )
        connection.execute(
            "UPDATE META_DATA_EXPORT SET value = value || ' s3cr3t' WHERE name LIKE '%VERSION'"
        )
        connection.commit()
    return number


def contents(path: Path) -> str:
    """All that stands in a file, in any of nsysmap's formats, as one text."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        return f"{table.to_pylist()} {table.schema.metadata}"
    raw = path.read_bytes()
    return raw.decode("latin-1") + (
        gzip.decompress(raw).decode("latin-1") if raw[:2] == b"\x1f\x8b" else ""
    )


def leaked(*texts: str) -> list[str]:
    return sorted({found for text in texts for found in SECRET.findall(text)})


def beside(printed: str, command: Sequence[object]) -> str:
    """What a command printed, without the paths that the user gave it: commands that it shows are
    for these.
    """
    for part in command:
        printed = printed.replace(str(part), "") if isinstance(part, Path) else printed
    return printed


@pytest.mark.parametrize(("report", "engine"), REPORTS)
def test_no_secret_of_the_machine_is_in_any_output(
    report: str,
    engine: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("S3CR3T_TOKEN", "s3cr3t_of_this_machine")
    folder = tmp_path / "s3cr3t_folder"
    folder.mkdir()
    trace, layers = folder / "report.sqlite", folder / "engine.json"
    assert planted(FIXTURES / report, trace) > 40
    shutil.copyfile(FIXTURES / engine, layers)
    out = tmp_path / "out"
    out.mkdir()
    commands: list[list[str | Path]] = [
        [
            "analyze",
            trace,
            layers,
            *(part for end in ("md", "json", "db") for part in ("-o", out / f"a.{end}")),
        ],
        ["analyze", trace],
        [
            "map",
            trace,
            layers,
            *(part for end in ("csv", "parquet", "json") for part in ("-o", out / f"m.{end}")),
        ],
        ["map", trace, layers, "-o", "-"],
        ["map", trace, layers, "--explain", "5"],
        ["map", trace, layers, "--explain", "5", "--json"],
        ["layers", layers, trace],
        ["layers", layers, "--findings"],
        ["layers", layers, trace, "--precision"],
        ["layers", layers, trace, "--json"],
        [
            "graph",
            layers,
            trace,
            *(part for end in ("svg", "png", "dot", "html") for part in ("-o", out / f"g.{end}")),
        ],
        ["what-if", trace, layers],
        ["what-if", trace, layers, "--json"],
        ["export", "--trex", out / "trex", trace, layers],
    ]
    for command in commands:
        done = run(capfd, *command)
        assert done.status == 0, (command, done.err)
        assert leaked(beside(done.out, command), done.err) == [], command
    written = sorted(path for path in out.rglob("*") if path.is_file())
    assert len(written) == 13
    for path in written:
        assert leaked(contents(path)) == [], path.name


def cut(export: Path, share: float) -> None:
    """Leaves the first part of an export's kernels, calls and ranges, for what is run many
    times.
    """
    with closing(sqlite3.connect(export)) as connection:
        first, last = connection.execute(
            "SELECT min(start), max(start) FROM CUPTI_ACTIVITY_KIND_KERNEL"
        ).fetchone()
        for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
            connection.execute(
                f"DELETE FROM {table} WHERE start > ?", (first + int(share * (last - first)),)
            )
        connection.commit()


BUDGET = """
[time]
per_inference = ["1 us", "+0.01 %"]
[layers]
"*" = "1 us"
nothing = "1 us"
[findings]
warning = 0
info = 0
"""
IGNORED = (
    '[[ignore]]\nrule = "*reformat*"\nreason = "known"\n[[ignore]]\nrule = "x"\nreason ='
    ' "over"\nuntil = 2020-01-01\n'
)


def test_no_secret_of_the_machine_is_in_any_output_of_comparison_gate_plots_sql_and_fleet(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S3CR3T_TOKEN", "s3cr3t_of_this_machine")
    monkeypatch.setenv("HOME", str(tmp_path / "s3cr3t_home"))
    monkeypatch.delenv("NSYSMAP_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    folder = tmp_path / "s3cr3t_folder"
    (folder / "after").mkdir(parents=True)
    trace, layers, profile = (
        folder / "report.sqlite",
        folder / "engine.json",
        folder / "profile.json",
    )
    planted(FIXTURES / "bert_trt10/sync.sqlite", trace)
    cut(trace, 0.12)
    later = folder / "after" / "report.sqlite"
    shutil.copyfile(trace, later)
    other = folder / "other.sqlite"
    planted(FIXTURES / "bert_trt10/graph.sqlite", other)
    cut(other, 0.4)
    shutil.copyfile(FIXTURES / "bert_trt10/engine.json", layers)
    shutil.copyfile(FIXTURES / "bert_trt10/profile.json", profile)
    budget, ignored = folder / "budget.toml", folder / "ignored.toml"
    budget.write_text(BUDGET)
    ignored.write_text(IGNORED)
    out = folder / "out"
    out.mkdir()

    def to(name: str, suffixes: str) -> list[str | Path]:
        return [part for suffix in suffixes.split() for part in ("-o", out / f"{name}.{suffix}")]

    gate: list[str | Path] = ["gate", trace, layers, "--budget", budget, "--ignore-file", ignored]
    commands: list[tuple[int, list[str | Path]]] = [
        (
            0,
            ["analyze", trace, layers, "--profile", profile, *to("a", "html perfetto-trace md db")],
        ),
        (
            0,
            [
                "compare",
                trace,
                later,
                "--engine-before",
                layers,
                "--engine-after",
                layers,
                *to("c", "html md json"),
            ],
        ),
        (0, ["compare", trace, other, "--", later, other]),
        (2, ["compare", trace, trace, "--", later, later]),
        (0, ["compare", folder / "after", later, "--json"]),
        (0, ["compare", layers, layers]),
        (0, ["compare", profile, profile, *to("p", "html md json")]),
        (0, ["inference", trace, layers, "slowest"]),
        (0, ["inference", trace, layers, "p99", "--json"]),
        (0, ["baseline", trace, layers, *to("base", "json")]),
        (0, ["baseline", trace]),
        (1, [*gate, "--baseline", out / "base.json", *to("g", "xml sarif md json")]),
        (1, gate),
        *(
            (0, ["plot", trace, layers, kind, *to(kind, "svg")])
            for kind in ("layers", "idle", "inferences", "roofline", "what-if")
        ),
        (0, ["sql", trace, layers]),
        (0, ["sql", trace, layers, "kernels"]),
        (0, ["sql", trace, "FROM capture", *to("q", "csv json parquet")]),
        (0, ["sql", trace, "FROM devices", "--json"]),
        (0, ["sql", trace, layers, "FROM kernels", "--csv"]),
        (
            0,
            [
                "fleet",
                folder / "after",
                trace,
                "--engine",
                layers,
                "--workers",
                "1",
                "-o",
                folder / "after" / "fleet",
            ],
        ),
        (0, ["doctor"]),
        (0, ["doctor", "--json"]),
        (0, ["man"]),
        (0, ["man", "fleet"]),
    ]
    for status, command in commands:
        done = run(capfd, *command)
        assert done.status == status, (command, done.err)
        # where the user asked for it
        printed = (
            beside(done.out, command).replace(f"page: {folder}", "page: ").replace(f"→ {out}", "→ ")
        )
        assert leaked(printed, done.err.replace(str(out), "")) == [], command
    written = sorted(
        path
        for where in (out, folder / "after" / "fleet")
        for path in where.rglob("*")
        if path.is_file()
    )
    # a comparison's page has one of each side beside it
    assert len(written) == 4 + (3 + 2) + (3 + 2) + 1 + 4 + 5 + 3 + 2 * 5 + 3
    for path in written:
        assert leaked(contents(path)) == [], path.name


def test_the_search_would_find_what_it_looks_for(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    planted(FIXTURES / "bert_trt10/sync.sqlite", tmp_path / "a.sqlite")
    assert len(leaked(contents(tmp_path / "a.sqlite"))) > 40
    pq.write_table(pa.table({"a": ["x s3cr3t7"]}), tmp_path / "a.parquet")
    assert leaked(contents(tmp_path / "a.parquet")) == ["s3cr3t7"]


INTEGERS = (("CUPTI_ACTIVITY_KIND_KERNEL", "start"), ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId"), ("NVTX_EVENTS", "eventType"),  # noqa: E501
            ("TARGET_INFO_GPU", "smCount"), ("StringIds", "id"))  # fmt: skip


@pytest.mark.parametrize(("table", "column"), INTEGERS)
def test_no_error_shows_what_stands_where_a_number_should(
    table: str, column: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "report.sqlite"
    planted(FIXTURES / "bert_trt10/sync.sqlite", trace)
    with closing(sqlite3.connect(trace)) as connection:
        kept = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        named = ", ".join(f'"{name}"' for name in kept)
        connection.execute(f"CREATE TABLE other AS SELECT {named} FROM {table}")
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"ALTER TABLE other RENAME TO {table}")
        connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE rowid = 1', ("s3cr3t_text",))
        connection.commit()
    done = run(capfd, "analyze", trace)
    assert done.status in (0, 2)
    assert leaked(done.out, done.err) == []


@pytest.mark.parametrize("reader", ["own", "nsys"])
@pytest.mark.parametrize("report", ["bert_trt10/sync.nsys-rep", "newer/bert_sync.nsys-rep"])
def test_what_a_real_report_holds_of_its_machine_is_in_no_output(
    reader: str, report: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if reader == "nsys" and (shutil.which("nsys") is None or report.startswith("newer")):
        pytest.skip("there is no nsys here that reads it")
    held = real_secrets(FIXTURES / report.replace(".nsys-rep", ".sqlite"))
    assert len(held) > 5
    out = [tmp_path / name for name in ("a.json", "a.md", "a.db", "m.csv")]
    done = run(
        capfd,
        "analyze",
        FIXTURES / report,
        "--reader",
        reader,
        "-o",
        out[0],
        "-o",
        out[1],
        "-o",
        out[2],
    )
    mapped = run(capfd, "map", FIXTURES / report, "--reader", reader, "-o", out[3])
    assert (done.status, mapped.status) == (0, 0)
    texts = [done.out, done.err, mapped.err, *(contents(path) for path in out)]
    assert [secret for secret in held if any(secret in text for text in texts)] == []


def real_secrets(export: Path) -> list[str]:
    """The paths, names, arguments and variables of the capturing machine that an export of nsys's
    holds.
    """
    with closing(sqlite3.connect(f"file:{export}?mode=ro", uri=True)) as connection:
        rows = connection.execute(
            "SELECT value FROM META_DATA_CAPTURE WHERE name LIKE '%ENVIRONMENT%' OR name LIKE"
            " '%COMMAND' OR name LIKE '%UUID' UNION SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE"
            " name IN ('DeviceEnvironment', 'TargetInstallDir', 'SystemUID', 'NvDriverVersion')"
            " UNION SELECT name FROM PROCESSES UNION SELECT value FROM META_DATA_EXPORT WHERE name"
            " LIKE '%PATH%' AND value LIKE '%/%' UNION SELECT uuid FROM TARGET_INFO_GPU UNION"
            " SELECT value FROM StringIds WHERE value LIKE '/tmp/%' OR value LIKE '%PATH=%'"
        ).fetchall()
    return sorted({text for (text,) in rows if text and len(text) > 5})


def test_the_cache_is_for_its_owner_only(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cached export holds all of the report, its environment too, as nsys wrote it."""
    if shutil.which("nsys") is None:
        pytest.skip("no nsys is installed")
    monkeypatch.setenv("NSYSMAP_CACHE", str(tmp_path / "cache"))
    before = os.umask(0)
    try:
        assert (
            run(
                capfd,
                "map",
                FIXTURES / "bert_trt10/sync.nsys-rep",
                "--reader",
                "nsys",
                "-o",
                tmp_path / "m.csv",
            ).status
            == 0
        )
    finally:
        os.umask(before)
    made = list((tmp_path / "cache").rglob("*"))
    assert [path.stat().st_mode & 0o077 for path in ((tmp_path / "cache"), *made)] == [0] * (
        len(made) + 1
    )
    assert [path.suffix for path in made] == [".sqlite"]
