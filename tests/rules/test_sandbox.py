"""What a stranger's SQL can not do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from nsysmap.core.result_schema import GAPS, KERNELS
from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import CAPTURE
from nsysmap.rules.sandbox.limits import LimitError, QueryError, Sandbox, own_query


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(RULE_TABLES) as opened:
        yield opened


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    return path


READING = (
    "SELECT * FROM '{path}'",
    "SELECT * FROM read_csv('{path}')",
    "SELECT * FROM read_csv_auto('{path}')",
    "SELECT * FROM read_text('{path}')",
    "SELECT * FROM read_blob('{path}')",
    "SELECT * FROM read_json('{path}')",
    "SELECT * FROM read_parquet('{path}')",
    "SELECT * FROM parquet_metadata('{path}')",
    "SELECT * FROM sniff_csv('{path}')",
    "SELECT * FROM glob('{path}*')",
    "SELECT (SELECT content FROM read_text('{path}')) FROM gaps",
    "WITH t AS (FROM read_csv('{path}')) SELECT * FROM t",
    "SELECT * FROM gaps WHERE EXISTS (SELECT 1 FROM read_text('{path}'))",
    "SELECT * FROM query('FROM read_text(''{path}'')')",
    "SELECT * FROM query_table('{path}')",
    "SELECT * FROM read_csv('https://example.com/x.csv')",
    "SELECT * FROM read_ndjson_objects('{path}')",
    "SELECT * FROM sqlite_scan('{path}', 'a')",
    "FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{path}'')'))",
)


@pytest.mark.parametrize("sql", READING)
def test_sql_reads_no_file(sandbox: Sandbox, secret: Path, sql: str) -> None:
    with pytest.raises(QueryError):
        sandbox.parse(sql.format(path=secret))


@pytest.mark.parametrize("sql", READING)
def test_the_engine_itself_would_read_none_either(sandbox: Sandbox, secret: Path, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        sandbox._engine.cursor().execute(sql.format(path=secret)).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t AS SELECT 1",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE MACRO m(a) AS a",
        "INSERT INTO gaps VALUES (1)",
        "WITH t AS (INSERT INTO gaps VALUES (1) RETURNING *) SELECT * FROM t",
        "UPDATE gaps SET cause = 'host'",
        "DELETE FROM gaps",
        "DROP TABLE gaps",
        "COPY gaps TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}/out'",
        "ATTACH '{folder}/out.db'",
        "ATTACH 'https://example.com/x.db'",
        "CREATE SECRET (TYPE S3)",
        "FORCE INSTALL spatial FROM community",
        "PRAGMA enable_profiling",
        "SET temp_directory = '{folder}'",
        "USE memory",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 64",
        "SET VARIABLE x = 1",
        "RESET lock_configuration",
        "PRAGMA database_list",
        "CALL checkpoint()",
        "CHECKPOINT",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "EXPLAIN ANALYZE SELECT 1",
        "DESCRIBE gaps",
        "SUMMARIZE gaps",
        "SHOW TABLES",
        "SELECT * FROM (DESCRIBE gaps)",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE gaps",
        "",
        "-- nothing",
        "no sql",
    ],
)
def test_nothing_but_one_select_is_run(sandbox: Sandbox, tmp_path: Path, sql: str) -> None:
    with pytest.raises(QueryError):
        sandbox.parse(sql.format(folder=tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT getenv('HOME')",
        "SELECT current_setting('threads')",
        "SELECT getvariable('x')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_settings",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM duckdb_variables()",
        "SELECT * FROM duckdb_tables()",
        "SELECT * FROM duckdb_prepared_statements()",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM pg_catalog.pg_tables",
        "SELECT * FROM sqlite_master",
        "WITH duckdb_settings AS (SELECT 1 AS a) SELECT a FROM duckdb_settings",
        "SELECT * FROM main.gaps",
        "SELECT * FROM temp.gaps",
        "SELECT write_log('x')",
        "SELECT * FROM enable_logging()",
        "SELECT * FROM checkpoint()",
        "SELECT * FROM arrow_scan(1, 2, 3)",
        "SELECT * FROM python_arrow_scan(1)",
        "SELECT nextval('s')",
        "SELECT json_execute_serialized_sql('x')",
        "SELECT list_transform([1], x -> getenv('HOME'))",
        "SELECT COLUMNS(lambda c: getenv('HOME')) FROM gaps",
        "VALUES (getenv('HOME'))",
        "SELECT error(getenv('HOME'))",
        "SELECT * FROM which_secret('s3://x', 's3')",
    ],
)
def test_settings_environment_and_the_catalogue_are_out_of_reach(
    sandbox: Sandbox, sql: str
) -> None:
    with pytest.raises(QueryError):
        sandbox.parse(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT random()",
        "SELECT uuid()",
        "SELECT now()",
        "SELECT current_date",
        "SELECT CURRENT_TIMESTAMP",
        "SELECT current_user",
        "SELECT cause FROM gaps USING SAMPLE 10%",
        "SELECT cause FROM gaps TABLESAMPLE 10%",
    ],
)
def test_what_changes_from_run_to_run_is_refused(sandbox: Sandbox, sql: str) -> None:
    with pytest.raises(QueryError):
        sandbox.parse(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('a', 1000000000)",
        "SELECT range(1000000000)",
        "SELECT lpad('a', 1000000000, 'b')",
        f"SELECT {'replace(' * 12}'a'{', chr(97), cause)' * 12} FROM gaps",
        f"SELECT {'||'.join(['cause'] * 40)} FROM gaps",
        "SELECT list_transform([1], x -> x)",
        "SELECT sleep_ms(100000)",
    ],
)
def test_answers_that_grow_out_of_proportion_are_refused_before_they_run(
    sandbox: Sandbox, sql: str
) -> None:
    with pytest.raises(QueryError):
        sandbox.parse(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) SELECT max(a) FROM r",
        (
            "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) SELECT a FROM r"
            " ORDER BY a"
        ),
        (
            "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range % 7 ="
            " b.range % 11"
        ),
        "SELECT sum(range) FROM range(100000000000000)",
    ],
)
def test_an_endless_statement_is_stopped_at_its_time_limit(sandbox: Sandbox, sql: str) -> None:
    with pytest.raises(LimitError, match=r"time limit of 0\.3 s"):
        sandbox.run(sandbox.parse(sql), {}, {}, time_limit_s=0.3, max_rows=10)


def test_an_endless_statement_of_which_a_few_rows_are_wanted_ends_with_them(
    sandbox: Sandbox,
) -> None:
    query = sandbox.parse("SELECT range FROM range(100000000000000)")
    assert len(sandbox.run(query, {}, {}, time_limit_s=5, max_rows=3).rows) == 3


def test_a_statement_that_needs_too_much_memory_is_stopped_and_spills_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Sandbox(RULE_TABLES, memory_limit_bytes=32 << 20) as small:
        query = small.parse("SELECT list(range) FROM range(100000000)")
        with pytest.raises(LimitError, match="memory"):
            small.run(query, {}, {}, time_limit_s=60, max_rows=1)
    assert list(tmp_path.iterdir()) == []


def test_a_rule_sees_only_the_tables_it_was_given(sandbox: Sandbox) -> None:
    kernels = Table.of_rows(KERNELS, [{"kernel_id": 1}]).arrow()
    query = sandbox.parse("SELECT count(*) FROM kernels")
    assert sandbox.run(query, {"kernels": kernels}, {}, time_limit_s=5, max_rows=1).rows == [(1,)]
    assert sandbox.run(
        query, {"kernels": kernels.slice(0, 0)}, {}, time_limit_s=5, max_rows=1
    ).rows == [(0,)]
    with pytest.raises(duckdb.CatalogException):
        sandbox._engine.cursor().execute("SELECT count(*) FROM kernels")


def test_a_stranger_s_statement_never_meets_another_s_connection(sandbox: Sandbox) -> None:
    tables = {"kernels": Table.of_rows(KERNELS, [{"kernel_id": 1}]).arrow()}
    query = sandbox.parse("SELECT count(*) FROM kernels")
    own = own_query("SELECT count(*) FROM kernels", RULE_TABLES)
    first, second, shared = (sandbox._connection(each, tables) for each in (query, query, own))
    first.execute("CREATE TEMP TABLE left_behind AS SELECT 1 AS a")
    first.execute("SET VARIABLE secret = 7")
    for other in (second, shared, sandbox._connection(query, tables)):
        with pytest.raises(duckdb.CatalogException):
            other.execute("SELECT a FROM left_behind")
        assert other.execute("SELECT getvariable('secret')").fetchall() == [(None,)]
    assert sandbox._connection(own, tables) is shared


def test_a_statement_of_nsysmap_reads_the_tables_it_is_given_now(sandbox: Sandbox) -> None:
    own = own_query("SELECT count(*) FROM kernels", RULE_TABLES)
    table = Table.of_rows(KERNELS, [{"kernel_id": number} for number in range(3)]).arrow()
    for rows in (3, 1, 3):
        assert sandbox.run(
            own, {"kernels": table.slice(0, rows)}, {}, time_limit_s=5, max_rows=1
        ).rows == [(rows,)]


def test_a_statement_of_nsysmap_that_is_stopped_or_not_read_to_its_end_leaves_nothing_behind(
    sandbox: Sandbox,
) -> None:
    tables = {"kernels": Table.of_rows(KERNELS, [{"kernel_id": 1}]).arrow()}
    count = own_query("SELECT count(*) FROM kernels", RULE_TABLES)
    endless = own_query(
        "SELECT range + kernel_id FROM range(100000000000000), kernels", RULE_TABLES
    )
    for _ in range(2):
        assert sandbox.run(endless, tables, {}, time_limit_s=5, max_rows=2).rows == [(1,), (2,)]
        assert sandbox.run(count, tables, {}, time_limit_s=5, max_rows=1).rows == [(1,)]
        with pytest.raises(LimitError, match="time limit"):
            sandbox.run(
                own_query("SELECT sum(range) FROM range(100000000000000)", RULE_TABLES),
                {},
                {},
                time_limit_s=0.3,
                max_rows=1,
            )
        assert sandbox.run(count, tables, {}, time_limit_s=5, max_rows=1).rows == [(1,)]
        with pytest.raises(QueryError, match="Could not convert"):
            sandbox.run(
                own_query("SELECT CAST('a' AS INTEGER)", RULE_TABLES),
                {},
                {},
                time_limit_s=5,
                max_rows=1,
            )


def test_a_large_table_is_read_in_place_with_the_same_answer(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        {"kernel_id": number, "name": "ab"[number % 2], "layer": None if number % 3 else "l"}
        for number in range(50)
    ]
    tables = {"kernels": Table.of_rows(KERNELS, made).arrow()}
    sql = "SELECT name, layer, count(*), sum(kernel_id) FROM kernels GROUP BY ALL ORDER BY ALL"
    for query in (sandbox.parse(sql), own_query(sql, RULE_TABLES)):
        monkeypatch.setattr("nsysmap.rules.sandbox.limits._COPIED_ROWS", 100)
        copied = sandbox.run(query, tables, {}, time_limit_s=5, max_rows=10)
        monkeypatch.setattr("nsysmap.rules.sandbox.limits._COPIED_ROWS", 10)
        in_place = sandbox.run(
            query, {"kernels": tables["kernels"].slice(0)}, {}, time_limit_s=5, max_rows=10
        )
        assert copied == in_place
        assert len(copied.rows) == 4


def test_python_variables_are_no_tables(sandbox: Sandbox) -> None:
    capture = Table.of_rows(CAPTURE, [{"kernels": 1}]).arrow()
    assert capture.num_rows == 1
    with pytest.raises(duckdb.CatalogException):
        sandbox._engine.cursor().execute("SELECT * FROM capture")


def test_a_query_says_what_it_reads(sandbox: Sandbox) -> None:
    query = sandbox.parse(
        "WITH long AS (SELECT device, dur_ns FROM gaps WHERE dur_ns > $least) SELECT count(*) FROM"
        " long JOIN inferences USING (device)"
    )
    assert query.tables == {"gaps", "inferences"}
    assert query.parameters == {"least"}
    assert query.columns == frozenset({"device", "dur_ns"})
    assert sandbox.parse("SELECT * FROM gaps").columns is None


@pytest.mark.parametrize(
    "sql",
    [
        (
            "SELECT cause, sum(dur_ns) FILTER (cause = 'host') AS s FROM gaps GROUP BY cause HAVING"
            " count(*) > 1 ORDER BY s LIMIT 3"
        ),
        (
            "SELECT lag(end_ns) OVER (PARTITION BY device ORDER BY start_ns) AS before FROM gaps"
            " QUALIFY before < 3"
        ),
        (
            "SELECT g.cause FROM gaps g ASOF JOIN inferences i ON i.device = g.device AND"
            " i.start_ns <= g.start_ns"
        ),
        (
            "SELECT CASE WHEN dur_ns BETWEEN 1 AND 5 THEN 'a' ELSE cause END, CAST(dur_ns AS"
            " DOUBLE), cause LIKE 'h%', dur_ns // 2 FROM gaps"
        ),
        (
            "SELECT DISTINCT cause FROM gaps WHERE cause IN (SELECT name FROM names) AND NOT EXISTS"
            " (SELECT 1 FROM layers) UNION SELECT 'x'"
        ),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 5) SELECT"
            " sum(a) FROM r"
        ),
        (
            "SELECT string_agg(DISTINCT cause, ', ' ORDER BY cause), arg_max(cause, dur_ns),"
            " quantile_cont(dur_ns, 0.9) FROM gaps"
        ),
        (
            "SELECT regexp_matches(name, '^h'), coalesce(nullif(name, ''), 'none'),"
            " json_extract_string(payload, '$.Name') FROM nvtx_ranges"
        ),
        (
            "SELECT * FROM (VALUES (1), (2)) AS v(a), range(3), unnest((SELECT list(dur_ns) FROM"
            " gaps)) AS u(b);  -- done"
        ),
    ],
)
def test_ordinary_analysis_is_allowed(sandbox: Sandbox, sql: str) -> None:
    query = sandbox.parse(sql)
    assert sandbox.columns(query, {})
    tables = {spec.name: Table.empty(spec).arrow() for spec in RULE_TABLES}
    sandbox.run(query, tables, {}, time_limit_s=10, max_rows=5)


def test_columns_are_known_without_running(sandbox: Sandbox) -> None:
    query = sandbox.parse(
        "SELECT dur_ns, cause, dur_ns / 2 AS half, dur_ns > 1 AS long, DATE '2020-01-01' AS day"
        " FROM gaps"
    )
    assert sandbox.columns(query, {}) == {
        "dur_ns": "int",
        "cause": "text",
        "half": "float",
        "long": "bool",
        "day": None,
    }
    with pytest.raises(QueryError, match="duration"):
        sandbox.columns(sandbox.parse("SELECT duration FROM gaps"), {})
    assert {column.name for column in GAPS.columns} == set(
        sandbox.columns(sandbox.parse("FROM gaps"), {})
    )
