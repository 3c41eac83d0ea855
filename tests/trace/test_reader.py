"""What is read from an nsys export, whatever its schema."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.trace_schema import HOSTS, OTHER_HOST, PYTHON, TENSORRT_RTX, TRTEXEC
from nsysmap.trace.capture_facts import host_program
from tests.nsys_file import PID, PROCESS, THREAD, NsysFile
from tests.places import SHARED
from tests.reports import read_trace

PUBLIC_TRACE = SHARED / "traces" / "h100_2gpu_1s.sqlite"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = NsysFile()
    file.domain("TensorRT", 3)
    file.range("conv1", 100, 150, domain=3)
    file.launch("gemm", 110, 7)
    return file.write(tmp_path / "small.sqlite")


def alter(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_a_kernel_knows_its_launch_call_and_its_process(small: Path) -> None:
    (kernel,) = read_trace(small).kernels.records()
    assert (kernel["name"], kernel["launch_start_ns"], kernel["pid"], kernel["thread"]) == (
        "gemm",
        110,
        PID,
        THREAD,
    )


def test_a_function_name_loses_its_version_suffix_and_gets_a_kind(small: Path) -> None:
    (call,) = read_trace(small).api_calls.records()
    assert (call["api"], call["kind"]) == ("cudaLaunchKernel", "launch")


def test_a_range_has_the_name_of_its_domain_which_differs_from_report_to_report(
    small: Path,
) -> None:
    (row,) = read_trace(small).nvtx_ranges.records()
    assert (row["domain"], row["name"], row["push_pop"]) == ("TensorRT", "conv1", True)


def test_registered_and_inline_range_texts_are_the_same_to_the_reader(tmp_path: Path) -> None:
    file = NsysFile()
    file.range("inline", 1, 2)
    file.add(
        "NVTX_EVENTS",
        start=3,
        end=4,
        eventType=59,
        textId=file.string("registered"),
        globalTid=THREAD,
        domainId=0,
    )
    file.add("NVTX_EVENTS", start=5, end=6, eventType=59, globalTid=THREAD, domainId=0)
    assert read_trace(file.write(tmp_path / "x.sqlite")).nvtx_ranges.text("name").list() == [
        "inline",
        "registered",
        "",
    ]


def test_a_domain_whose_name_was_lost_is_known_by_ranges_that_only_tensorrt_writes(
    tmp_path: Path,
) -> None:
    file = NsysFile()
    file.range("ExecutionContext::enqueueV3", 100, 200, domain=1)
    file.range("myelinGraphExecute ", 110, 190, domain=2)
    file.range("__myl_Fc_myl0_1", 120, 130, domain=2)
    file.range("tokenize", 10, 20, domain=3)
    ranges = read_trace(file.write(tmp_path / "report.sqlite")).nvtx_ranges
    assert dict(zip(ranges.text("name").list(), ranges.text("domain").list(), strict=True)) == {
        "ExecutionContext::enqueueV3": "TensorRT",
        "myelinGraphExecute ": "myelin-exec",
        "__myl_Fc_myl0_1": "myelin-exec",
        "tokenize": "domain 3",
    }


def test_calls_of_mpi_in_tables_of_their_own_are_ranges_of_its_domain(tmp_path: Path) -> None:
    file = NsysFile()
    file.domain("TensorRT", 1)
    file.range("ExecutionContext::enqueueV3", 100, 200, domain=1)
    file.add(
        "MPI_P2P_EVENTS", start=50, end=90, globalTid=THREAD, textId=file.string("MPI_Recv"), size=8
    )
    ranges = read_trace(file.write(tmp_path / "x.sqlite")).nvtx_ranges
    assert [
        *zip(
            ranges.text("domain").list(),
            ranges.text("name").list(),
            ranges.ints("start_ns").tolist(),
            strict=True,
        )
    ] == [
        ("MPI", "MPI_Recv", 50),
        ("TensorRT", "ExecutionContext::enqueueV3", 100),
    ]
    assert set(ranges.ints("thread").tolist()) == {THREAD}


def test_a_range_left_open_lasts_as_long_as_the_trace_and_a_mark_is_no_range(
    tmp_path: Path,
) -> None:
    file = NsysFile()
    file.range("open", 10, None)
    file.range("closed", 20, 90)
    file.add("NVTX_EVENTS", start=30, eventType=34, text="mark", globalTid=THREAD)
    rows = read_trace(file.write(tmp_path / "x.sqlite")).nvtx_ranges.records()
    assert [(row["name"], row["end_ns"]) for row in rows] == [("open", 90), ("closed", 90)]


def test_a_payload_is_kept_and_an_absent_one_is_none(tmp_path: Path) -> None:
    file = NsysFile()
    file.range("a", 1, 2, payload='{"Name": "a"}')
    file.range("b", 3, 4)
    assert read_trace(file.write(tmp_path / "x.sqlite")).nvtx_ranges.text("payload").list() == [
        '{"Name": "a"}',
        None,
    ]


def test_rows_that_make_no_sense_are_left_out_and_counted(tmp_path: Path) -> None:
    file = NsysFile()
    file.launch("good", 100, 1)
    file.add("CUPTI_ACTIVITY_KIND_KERNEL", start=0, end=0, globalPid=PROCESS, demangledName=0)
    file.add("CUPTI_ACTIVITY_KIND_KERNEL", start=50, end=40, globalPid=PROCESS, demangledName=0)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    assert trace.kernels.text("name").list() == ["good"]
    assert {(one.table, one.rows) for one in trace.dropped} == {("kernels", 1)}
    told = sorted(one.reason for one in trace.dropped)
    assert len(told) == 2
    assert "has no time" in told[0]
    assert "before the session" in told[1]


def test_rows_out_of_order_are_sorted_by_time(tmp_path: Path) -> None:
    file = NsysFile()
    file.kernel("second", 200, None)
    file.kernel("first", 100, None)
    kernels = read_trace(file.write(tmp_path / "x.sqlite")).kernels
    assert kernels.text("name").list() == ["first", "second"]
    assert kernels.ints("kernel_id").tolist() == [0, 1]


def test_an_absent_table_is_empty_and_named_as_absent(small: Path) -> None:
    trace = read_trace(small)
    assert len(trace.memcpys) == 0
    assert "memcpys" in trace.absent and "kernels" not in trace.absent


def test_an_absent_column_is_no_value(small: Path) -> None:
    alter(
        small,
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN graphNodeId",
        "ALTER TABLE NVTX_EVENTS DROP COLUMN jsonText",
    )
    trace = read_trace(small)
    assert trace.kernels.records()[0]["graph_node_id"] is None
    assert trace.nvtx_ranges.records()[0]["payload"] is None


def test_node_ids_of_zero_mean_no_graph_as_old_files_write_them(tmp_path: Path) -> None:
    file = NsysFile(version=None)
    file.kernel("k", 100, 1, node=0)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    assert trace.kernels.records()[0]["graph_node_id"] is None
    assert trace.schema_version is None


def test_graph_events_of_newer_files_under_the_old_name_are_not_taken_for_nodes(
    tmp_path: Path,
) -> None:
    file = NsysFile()
    file.launch("k", 100, 1)
    path = file.write(tmp_path / "x.sqlite")
    alter(
        path,
        "CREATE TABLE CUDA_GRAPH_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, graphId"
        " INTEGER)",
        "INSERT INTO CUDA_GRAPH_EVENTS VALUES (1, 1, 1, 5)",
        "CREATE TABLE CUDA_GRAPH_NODE_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER,"
        " graphNodeId INTEGER, originalGraphNodeId INTEGER)",
        f"INSERT INTO CUDA_GRAPH_NODE_EVENTS VALUES (3, 3, {THREAD}, 9, 0)",
    )
    (node,) = read_trace(path).cuda_graph_nodes.records()
    assert (node["graph_node_id"], node["original_graph_node_id"]) == (9, None)


def test_whole_graph_rows_are_read(tmp_path: Path) -> None:
    file = NsysFile()
    file.call("cudaGraphLaunch_v10000", 100, 110, 5)
    file.add(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        start=120,
        end=400,
        deviceId=0,
        streamId=1,
        correlationId=5,
        globalPid=PROCESS,
        graphId=2,
        graphExecId=3,
    )
    (run,) = read_trace(file.write(tmp_path / "x.sqlite")).cuda_graph_traces.records()
    assert (run["launch_start_ns"], run["graph_exec_id"]) == (100, 3)


def test_a_copy_says_kind_memory_and_whether_the_call_was_asynchronous(tmp_path: Path) -> None:
    file = NsysFile()
    for correlation, api in ((1, "cudaMemcpy_v3020"), (2, "cudaMemcpyAsync_ptsz_v7000")):
        file.call(api, 100 * correlation, 100 * correlation + 5, correlation)
        file.add(
            "CUPTI_ACTIVITY_KIND_MEMCPY", start=100 * correlation + 1, end=100 * correlation + 4,
            deviceId=0, streamId=7,
            correlationId=correlation, globalPid=PROCESS, bytes=64, copyKind=1, srcKind=0,
            dstKind=2,
        )  # fmt: skip
    rows = read_trace(file.write(tmp_path / "x.sqlite")).memcpys.records()
    assert [(row["kind"], row["source"], row["target"], row["asynchronous"]) for row in rows] == [
        ("HtoD", "pageable", "device", False),
        ("HtoD", "pageable", "device", True),
    ]


def test_a_wait_that_cuda_itself_causes_is_no_overhead_of_the_profiler(tmp_path: Path) -> None:
    file = NsysFile()
    for name in ("Command Buffer Full", "CUPTI: Buffer flush"):
        file.add(
            "PROFILER_OVERHEAD",
            start=5,
            end=9,
            globalTid=THREAD,
            nameId=file.string(name),
            returnValue=0,
        )
    assert read_trace(file.write(tmp_path / "x.sqlite")).overheads.text("name").list() == [
        "CUPTI: Buffer flush"
    ]


def test_the_users_file_is_not_written_and_nothing_is_left_beside_it(small: Path) -> None:
    before = hashlib.sha256(small.read_bytes()).hexdigest()
    read_trace(small)
    assert hashlib.sha256(small.read_bytes()).hexdigest() == before
    assert [entry.name for entry in small.parent.iterdir()] == [small.name]


def test_an_sqlite_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = alter(tmp_path / "x.sqlite", "CREATE TABLE recipes (name TEXT)")
    with pytest.raises(
        NsysmapError,
        match="found: recipes; expected: StringIds",
    ):
        read_trace(path)


@pytest.mark.parametrize(
    ("version", "levels"),
    [
        (None, []),
        ("2.9.1", []),
        ("3.28.1", []),
        ("3.29.0", ["info"]),
        ("4.0.0", ["warning"]),
        ("1.2.3", ["warning"]),
    ],
)
def test_a_schema_that_is_not_known_is_read_and_said(
    tmp_path: Path, version: str | None, levels: list[str]
) -> None:
    file = NsysFile(version=version)
    file.launch("k", 100, 1)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    assert trace.kernels.text("name").list() == ["k"]
    assert [note.level for note in trace.notes] == levels
    assert all(str(version) in note.text for note in trace.notes)


def test_a_table_without_times_is_left_out_and_said_and_without_those_of_kernels_nothing_is_told(
    small: Path,
) -> None:
    alter(small, "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (startNs INTEGER, endNs INTEGER)")
    trace = read_trace(small)
    assert "memcpys" in trace.absent
    (note,) = trace.notes
    assert "memcpys" in note.text
    alter(small, "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN start TO startNs")
    with pytest.raises(
        NsysmapError,
        match=r"KERNEL .*start.* \(schema 3\.7\.2\)",
    ):
        read_trace(small)


def test_tables_and_columns_are_found_in_any_case_of_letters_and_with_a_version_behind_them(
    small: Path,
) -> None:
    alter(
        small,
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO k",
        "ALTER TABLE k RENAME TO Cupti_Activity_Kind_Kernel_V10",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL_V2 (start INTEGER, end INTEGER)",
        "ALTER TABLE NVTX_EVENTS RENAME COLUMN eventType TO EVENTTYPE",
        "ALTER TABLE StringIds RENAME TO s",
        "ALTER TABLE s RENAME TO STRINGIDS",
    )
    trace = read_trace(small)
    assert trace.kernels.text("name").list() == ["gemm"]
    assert trace.nvtx_ranges.text("name").list() == ["conv1"]


def test_string_ids_may_be_sparse_and_may_lack_some(tmp_path: Path) -> None:
    file = NsysFile()
    file.launch("k", 100, 1)
    path = file.write(tmp_path / "x.sqlite")
    alter(
        path,
        "UPDATE StringIds SET id = id + 3400000",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = demangledName + 3400000",
    )
    trace = read_trace(path)
    assert trace.kernels.text("name").list() == ["k"]
    assert trace.api_calls.text("api").list() == ["other"]  # its id is no more in the file


def test_times_since_1970_are_kept_and_a_row_far_from_the_others_is_left_out(
    tmp_path: Path,
) -> None:
    file = NsysFile()
    epoch = 1_795_267_845_140_856_317  # as nsys export --ts-normalize=true writes them
    for number in range(3):
        file.launch("k", epoch + 100 * number, number)
    file.kernel("stray", 500, 9)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    assert trace.kernels.ints("start_ns").tolist() == [epoch + 10, epoch + 110, epoch + 210]
    assert [(one.table, one.rows) for one in trace.dropped] == [("kernels", 1)]
    assert "beyond any session" in trace.dropped[0].reason


def test_integers_that_another_program_wrote_as_real_numbers_or_text_are_read(small: Path) -> None:
    alter(
        small,
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN graphId TEXT",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId = 4294967297, graphId = '12'",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME RENAME TO r",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME AS "
        "SELECT start + 0.0 AS start, end + 0.0 AS end, globalTid, correlationId, nameId FROM r",
    )
    trace = read_trace(small)
    assert trace.kernels.ints("graph_id").tolist() == [12]
    assert trace.api_calls.ints("start_ns").tolist() == [110]


def test_a_profile_of_nvprof_is_named_for_what_it_is(tmp_path: Path) -> None:
    path = alter(
        tmp_path / "x.sqlite",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end)",
        "CREATE TABLE StringTable (_id_, value)",
    )
    with pytest.raises(NsysmapError, match="nvprof"):
        read_trace(path)


def test_text_where_numbers_belong_is_refused(small: Path) -> None:
    alter(small, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'yesterday'")
    with pytest.raises(NsysmapError, match=r"CUPTI_ACTIVITY_KIND_KERNEL\.start"):
        read_trace(small)


def test_a_virtual_table_that_is_dressed_up_as_a_plain_one_is_not_run(small: Path) -> None:
    columns = "start, end, deviceId, streamId, bytes"
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i, i, i, i FROM"
        " n WHERE i < 0"
    )
    alter(
        small,
        f"CREATE VIEW v (start, end, deviceId, streamId, bytes) AS {endless}",
        f'CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_MEMCPY USING fts4(content="v", {columns})',
        "PRAGMA writable_schema = on",
        "UPDATE sqlite_master SET sql = replace(sql, 'CREATE VIRTUAL', 'CREATE/**/VIRTUAL'),"
        " rootpage = 2 WHERE name LIKE '%MEMCPY'",
    )
    assert len(read_trace(small).memcpys) == 0


def test_a_link_to_a_file_with_unfinished_changes_is_refused_as_the_file_is(
    small: Path, tmp_path: Path
) -> None:
    connection = sqlite3.connect(small)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
    connection.commit()
    link = tmp_path / "links" / "x.sqlite"
    link.parent.mkdir()
    link.symlink_to(small)
    try:
        for path in (small, link):
            with pytest.raises(NsysmapError, match=r"beside it \(small\.sqlite-wal\)"):
                read_trace(path)
    finally:
        connection.close()


def test_a_view_in_place_of_a_table_is_not_run(small: Path) -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS"
        " end FROM n"
    )
    alter(small, f"CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS {endless}")
    assert len(read_trace(small).memcpys) == 0


def test_a_truncated_file_is_refused(small: Path) -> None:
    small.write_bytes(small.read_bytes()[:-4096])
    with pytest.raises(NsysmapError, match="cut short"):
        read_trace(small)


def test_the_newest_public_schema_is_read() -> None:
    if not PUBLIC_TRACE.exists():
        pytest.skip("the public trace is not beside this checkout")
    trace = read_trace(PUBLIC_TRACE)
    assert trace.schema_version == "3.25.0"
    with sqlite3.connect(PUBLIC_TRACE) as connection:
        (kernels,) = connection.execute(
            "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"
        ).fetchone()
    assert len(trace.kernels) == kernels
    assert set(trace.kernels.ints("device").tolist()) == {0, 1}


def test_launches_and_sizes_that_cannot_be_are_as_good_as_not_told(tmp_path: Path) -> None:
    file = NsysFile()
    for number in range(4):
        file.launch("k", 100 * number, number)
    rows = file.rows["CUPTI_ACTIVITY_KIND_KERNEL"]
    rows[1] |= {"gridX": 2**63 - 1, "gridY": 2**63 - 1, "dynamicSharedMemory": 2**63 - 1}
    rows[2] |= {"blockX": -1, "registersPerThread": -5}
    rows[3] |= {"gridX": 2**31 - 1, "gridY": 65535}
    kernels = read_trace(file.write(tmp_path / "r.sqlite")).kernels
    assert kernels.ints("grid_x").tolist() == [1, 0, 1, 2**31 - 1]
    assert kernels.ints("grid_y").tolist() == [1, 0, 1, 65535]
    assert kernels.ints("block_x").tolist() == [32, 32, 0, 32]
    assert kernels.ints("registers").tolist() == [16, 16, 0, 16]
    assert kernels.ints("dynamic_shared_bytes").tolist() == [0, 0, 0, 0]


def test_times_whose_sum_does_not_fit_64_bits_are_refused(tmp_path: Path) -> None:
    file = NsysFile()
    for number in range(1000):
        file.launch("k", 100 * number, number)
        file.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]["end"] = 10**16 - 1
    with pytest.raises(NsysmapError, match="its 1,000 gpu_kernels last 317 years in total"):
        read_trace(file.write(tmp_path / "r.sqlite"))


def test_an_overhead_without_a_time_is_left_out_and_counted(tmp_path: Path) -> None:
    file = NsysFile()
    file.launch("k", 100, 1)
    file.add(
        "PROFILER_OVERHEAD",
        start=None,
        end=50,
        globalTid=THREAD,
        nameId=file.string("CUPTI_OVERHEAD"),
    )
    file.add(
        "PROFILER_OVERHEAD",
        start=10,
        end=50,
        globalTid=THREAD,
        nameId=file.string("CUPTI_OVERHEAD"),
    )
    trace = read_trace(file.write(tmp_path / "r.sqlite"))
    assert len(trace.overheads) == 1
    assert [(one.table, one.rows) for one in trace.dropped] == [("overheads", 1)]
    assert "has no time" in trace.dropped[0].reason


def test_of_the_environment_only_the_version_of_tensorrt_is_known(small: Path) -> None:
    rows = [
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'KEY="8.1 s3cr3t"'),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'TENSORRT_VERSION="8.2.1-1+cuda s3cr3t"'),
    ]
    made = "CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT)"
    trace = read_trace(
        alter(small, made, *(f"INSERT INTO META_DATA_CAPTURE VALUES {row!r}" for row in rows))
    )
    assert trace.recording.environment_tensorrt == "8.2.1"
    assert "s3cr3t" not in str(trace.recording)
    other = "UPDATE META_DATA_CAPTURE SET value = 'MY_TENSORRT_VERSION=\"9.1\"'"
    assert read_trace(alter(small, other)).recording.environment_tensorrt is None


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("/usr/src/tensorrt/bin/trtexec", TRTEXEC), ("trtexec.exe", TRTEXEC),
        ("tensorrt_rtx", TENSORRT_RTX), ("/bin/python3.10", PYTHON),
        ("python3 /home/me/trtexec.py", PYTHON), ("pt_main_thread", PYTHON),
        ("./my_trtexec", OTHER_HOST), ("trtexec-wrapper", OTHER_HOST),
        ("C:\\tools\\trtexec.exe", TRTEXEC),
    ],
)  # fmt: skip
def test_what_launched_is_told_by_the_name_of_its_process(
    small: Path, name: str, host: str
) -> None:
    made = "CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)"
    trace = read_trace(
        alter(small, made, f"INSERT INTO PROCESSES VALUES ({PROCESS}, {PID}, '{name}')")
    )
    assert host_program(trace, {PROCESS}) == host
    # another process, of which nothing is known
    assert host_program(trace, {PROCESS, PROCESS + (1 << 24)}) is None
    assert name not in str(trace.hosts) or name in HOSTS


def test_without_names_of_processes_that_of_the_main_thread_tells(small: Path) -> None:
    made = "CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER)"
    names = "INSERT INTO StringIds VALUES (901, 'pt_autograd_0'), (900, 'trtexec')"
    trace = read_trace(
        alter(
            small,
            made,
            names,
            f"INSERT INTO ThreadNames VALUES (901, 0, {PROCESS + PID + 1}), (900, 0,"
            f" {PROCESS + PID})",
        )
    )
    assert host_program(trace, {PROCESS}) == TRTEXEC
    assert (
        host_program(
            read_trace(alter(small, f"DELETE FROM ThreadNames WHERE globalTid = {PROCESS + PID}")),
            {PROCESS},
        )
        is None
    )
