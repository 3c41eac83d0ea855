"""What a file that is no report looks like, by its first bytes and its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap.inputs.nsys.looks import looks_like

HEADER = b"NVIDIA Tegra Profiler Report"


@pytest.mark.parametrize(
    ("name", "head", "word"),
    [
        ("a", b"", "empty"),
        ("a.engine", b"", "empty"),
        ("a.qdstrm", b"anything", "QDSTRM"),
        ("A.QDSTRM", HEADER, "QDSTRM"),
        ("a", b"\x1f\x8b", "gzip"),
        ("a", b"\x1f\x8c", "not an nsys report"),
        ("a", b"\xfd7zXZ\0", "xz"),
        ("a", b"\x28\xb5\x2f\xfd", "zstd"),
        ("a", b"BZh9", "bzip2"),
        ("a", b"PK\x03\x04", "zip"),
        ("a", b"\x89HDF\r\n\x1a", "HDF5"),
        ("a", b"NVR\0", "Nsight Compute"),
        ("a", b"version https://git-lfs.github.com/spec/v1", "LFS"),
        ("a", b"\x7fELF\2", "program"),
        *(("a", magic + b"\0", "engine") for magic in (b"ftrt", b"ptrt", b"vtrt")),
        *((f"a{suffix}", b"xyz", "TensorRT engine") for suffix in (".engine", ".PLAN", ".trt")),
        ("a.rtx", b"xyz", "TensorRT engine"),
        ("a", b'  {"traceEvents": []}', "Chrome"),
        ("a", b'{"schemaVersion": 1}', "Chrome"),
        ("a", b'[{"a": 1}]', "JSON"),
        ("a", b'\n{"a": 1}', "JSON"),
        ("a", b"NVIDIA T", "cut off"),
        ("a", b"NVIDIA " + b"x" * 56, "cut off"),
        ("a", b"NVI", "cut off"),
        ("a", b"abc", '"abc"'),
        ("a", b"a" * 20, '"' + "a" * 16 + '"'),
        ("a", b" ~", '" ~"'),
        ("a", b"\x7fa", "bytes 7f 61"),
        ("a", b"\x1fa", "bytes 1f 61"),
        ("a", bytes(range(128, 140)), "bytes 80 81 82 83 84 85 86 87,"),
    ],
)
def test_it_is_said_what_a_file_looks_like(name: str, head: bytes, word: str) -> None:
    found = looks_like(Path(name), head)
    assert found is not None
    what, remedy = found
    assert word in what
    assert remedy


@pytest.mark.parametrize(
    "head", [HEADER + b"\n", b"NVIDIA x\n", b"NVIDIA " + b"x" * 57, HEADER + b" 2025" * 20]
)
def test_what_begins_as_a_report_may_be_one(head: bytes) -> None:
    assert looks_like(Path("a.nsys-rep"), head) is None
