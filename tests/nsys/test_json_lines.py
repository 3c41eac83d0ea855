"""Each line of JSON is the row of the table that nsys means, value by value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import MISSING
from nsysmap.inputs.nsys.json_lines import is_json_lines, json_tables
from nsysmap.inputs.nsys.tables import NsysTables

CUPTI = "CUPTI_ACTIVITY_KIND_"


@pytest.mark.parametrize(
    ("head", "is_one"),
    [
        (b'{"data":["a"', True),
        (b'{"type":"String","id":"1"', True),
        (b'{"Type":79', True),
        (b'{"other":1}', False),
        (b"[]", False),
    ],
)
def test_how_such_a_file_begins(head: bytes, is_one: bool) -> None:
    assert is_json_lines(head) == is_one


def read(folder: Path, *lines: object) -> NsysTables:
    path = folder / "x.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return json_tables(path)


def row(tables: NsysTables, table: str, *columns: str) -> list[tuple[int, ...]]:
    held = tables.read(table, columns)
    return list(zip(*(held[name].tolist() for name in columns), strict=True))


LAUNCH = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
SHARED = ("staticSharedMemory", "dynamicSharedMemory", "registersPerThread")


def test_work_on_the_gpu_has_its_times_and_its_own_columns(tmp_path: Path) -> None:
    gpu = {"startNs": "11", "endNs": 12, "deviceId": 1, "contextId": 2, "streamId": 3}
    gpu |= {"correlationId": 4, "globalPid": "5"}
    kernel = {name: 20 + at for at, name in enumerate((*LAUNCH, *SHARED))}
    kernel |= {"demangledName": 6, "shortName": 7, "graphNodeId": 8, "graphId": 9}
    memcpy = {"sizebytes": 31, "copyKind": 1, "srcKind": 2, "dstKind": 3, "graphNodeId": 34}
    memset = {"sizebytes": 41, "value": 42, "memKind": 43, "graphNodeId": 44}
    tables = read(
        tmp_path,
        *(
            {"Type": 79, "CudaEvent": {**gpu, key: body}}
            for key, body in {
                "kernel": kernel,
                "memcpy": memcpy,
                "memset": memset,
                "sync": {"syncType": 51, "eventId": 52},
                "graph": {"graphId": 61, "graphExecId": 62},
            }.items()
        ),
    )
    times = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
    for kind in ("KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION", "GRAPH_TRACE"):
        assert row(tables, CUPTI + kind, *times) == [(11, 12, 1, 2, 3, 4, 5)]
    names = ("demangledName", "shortName", "graphNodeId", "graphId")
    assert row(tables, f"{CUPTI}KERNEL", *names) == [(6, 7, 8, 9)]
    assert row(tables, f"{CUPTI}KERNEL", *LAUNCH, *SHARED) == [tuple(range(20, 29))]
    copied = ("bytes", "copyKind", "srcKind", "dstKind", "graphNodeId")
    assert row(tables, f"{CUPTI}MEMCPY", *copied) == [(31, 1, 2, 3, 34)]
    assert row(tables, f"{CUPTI}MEMSET", "bytes", "value", "memKind", "graphNodeId") == [
        (41, 42, 43, 44)
    ]
    assert row(tables, f"{CUPTI}SYNCHRONIZATION", "syncType", "eventId") == [(51, 52)]
    assert row(tables, f"{CUPTI}GRAPH_TRACE", "graphId", "graphExecId") == [(61, 62)]


@pytest.mark.parametrize(
    ("event_class", "table"),
    [
        *((one, f"{CUPTI}RUNTIME") for one in (0, 1, 13, 26)),
        (3, "PROFILER_OVERHEAD"),
        *((one, "OSRT_API") for one in (27, 31, 32)),
        (2, None),
        (99, None),
    ],
)
def test_calls_of_the_host_are_of_the_table_of_their_class(
    event_class: int, table: str | None, tmp_path: Path
) -> None:
    body = {"startNs": 1, "endNs": 2, "name": 3, "eventClass": event_class, "globalTid": 4}
    body |= {"returnValue": 5, "correlationId": 6, "nestingLevel": 7}
    tables = read(
        tmp_path,
        {"data": ["zero"]},
        {"Type": 48, "TraceProcessEvent": body},
        # without a name, or with something of its own inside, it is another event
        {"Type": 48, "TraceProcessEvent": {**body, "name": None}},
        {"Type": 48, "TraceProcessEvent": {**body, "inside": {}}},
    )
    for one in (f"{CUPTI}RUNTIME", "PROFILER_OVERHEAD", "OSRT_API"):
        times = ("start", "end", "nameId", "eventClass", "globalTid", "returnValue")
        held = row(tables, one, *times)
        assert held == ([(1, 2, 3, event_class, 4, 5)] if one == table else [])
    if table == f"{CUPTI}RUNTIME":
        assert row(tables, table, "correlationId") == [(6,)]
    if table == "OSRT_API":
        assert row(tables, table, "nestingLevel") == [(7,)]


def test_the_creation_of_a_graph_s_node(tmp_path: Path) -> None:
    node = {"graphNodeId": 8, "originalGraphNodeId": 9}
    body = {"startNs": 1, "endNs": 2, "globalTid": 4, "cudaGraphNodeCreation": node}
    tables = read(tmp_path, {"Type": 48, "TraceProcessEvent": body})
    columns = ("start", "end", "globalTid", "graphNodeId", "originalGraphNodeId")
    assert row(tables, "CUDA_GRAPH_NODE_EVENTS", *columns) == [(1, 2, 4, 8, 9)]


def test_ranges_have_their_texts_and_none_where_there_is_none(tmp_path: Path) -> None:
    names = ("Timestamp", "EndTimestamp", "Type", "RangeId", "GlobalTid")
    more = ("EndGlobalTid", "TextId", "DomainId")
    whole = {name: 10 + at for at, name in enumerate((*names, *more))}
    tables = read(
        tmp_path,
        {"Type": 59, "NvtxEvent": {**whole, "Text": "b"}},
        {"Type": 59, "NvtxEvent": {"Timestamp": 1, "Text": ""}},
        {"Type": 59, "NvtxEvent": {"Timestamp": 2, "Text": "a"}},
        {"Type": 59, "NvtxEvent": {"Timestamp": 3, "Text": 7}},
        {"Type": 59, "NvtxEvent": {"Timestamp": 4, "Text": "b"}},
    )
    columns = ("start", "end", "eventType", "rangeId", "globalTid")
    others = ("endGlobalTid", "textId", "domainId")
    held = row(tables, "NVTX_EVENTS", *columns, *others)
    assert held[0] == tuple(range(10, 18))
    assert held[1] == (1, *[MISSING] * 7)
    texts = tables.read("NVTX_EVENTS", (), ("text",))["text"]
    assert texts.list() == ["b", None, "a", None, "b"]
    assert len(texts.values) == 2


def test_strings_stand_alone_or_in_one_list(tmp_path: Path) -> None:
    for lines in (
        [{"data": ["zero", 7, "two"]}],
        [
            {"type": "String", "id": "0", "value": "zero"},
            {"type": "String", "id": 2, "value": "two"},
        ],
    ):
        tables = read(tmp_path, *lines)
        held = tables.read("StringIds", ("id",), ("value",))
        assert dict(zip(held["id"].tolist(), held["value"].list(), strict=True)) == {
            0: "zero",
            2: "two",
        }
    # an empty one is none, and what is neither says nothing
    tables = read(tmp_path, {"type": "String", "id": 5, "value": ""}, {"type": "Other"})
    held = tables.read("StringIds", ("id",), ("value",))
    assert (held["id"].tolist(), held["value"].list()) == ([5], [None])
    assert [note.level for note in tables.notes] == ["info"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (7, 7),
        ("-8", -8),
        (2**63 - 1, 2**63 - 1),
        (str(2**63), -(2**63)),
        (2**64 - 1, -1),
        (None, MISSING),
    ],
)
def test_integers_have_64_bits_as_text_and_without_a_sign(
    written: object, value: int, tmp_path: Path
) -> None:
    body = {"startNs": 1, "kernel": {"graphNodeId": written}}
    tables = read(tmp_path, {"Type": 79, "CudaEvent": body})
    assert row(tables, f"{CUPTI}KERNEL", "graphNodeId") == [(value,)]


@pytest.mark.parametrize("written", [2**64, -(2**63) - 1, 1.5, "x", [1]])
def test_what_is_no_integer_of_64_bits_is_an_error_of_its_line(
    written: object, tmp_path: Path
) -> None:
    body = {"kernel": {"graphNodeId": written}}
    with pytest.raises(NsysmapError, match="line 3 is not"):
        read(tmp_path, {"data": []}, {"Type": 1, "O": {}}, {"Type": 79, "CudaEvent": body})
    with pytest.raises(NsysmapError, match="line 2 is not"):
        read(tmp_path, {"data": []}, {"type": "String", "id": written, "value": "x"})


def test_damaged_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for text, told in (
        ('{"data":["a"]}\n\n  \n{"Type"', "line 4 .*cut short"),
        ('{"data":["a"]}\n{"Type"\n', "line 2 is not JSON"),
        ('{"data":["a"]}\n[1]\n', "line 2 is not"),
        ("\n", "no events"),
    ):
        path.write_text(text)
        with pytest.raises(NsysmapError, match=told):
            json_tables(path)
    path.write_text("".join(f'{{"Type":1,"E{at}":{{}}}}\n' for at in range(6)))
    with pytest.raises(NsysmapError, match=r"\(E0, E1, E2, E3\)"):
        json_tables(path)
    # an event of a kind that is not known beside strings is passed over
    path.write_text('{"data":["a"]}\n{"Type":1,"E":{}}\n{"Type":2}\n')
    assert json_tables(path).read("StringIds", ("id",))["id"].tolist() == [0]
